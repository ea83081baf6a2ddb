"""PDFs through opendataloader-pdf for real, where it and Java are installed; without them, one clear line."""

from __future__ import annotations

import os
import shutil
from importlib import metadata
from itertools import pairwise
from pathlib import Path

import pytest

from citeloom.documents.pdf import PdfRefusedError
from citeloom.errors import InputError
from citeloom.ingestion import opendataloader_process
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.opendataloader_process import read_layout, require_java
from citeloom.ingestion.pdf_subprocess import PdfReading, read_pdf_apart
from citeloom.ingestion.rebuild import rebuild
from citeloom.stores.library import Library
from tests.support import cli_process
from tests.support.nearest import nearest
from tests.support.pdf_pages import pages_by_pdfium, share_on, words

QUOTE = "the samples are clustered based on not only a distance metric calculated from the features"


def _installed() -> bool:
    try:
        metadata.version("opendataloader-pdf")
    except metadata.PackageNotFoundError:
        return False
    return True


with_package = pytest.mark.skipif(not _installed(), reason="the extra 'opendataloader' is not installed")
with_java = pytest.mark.skipif(shutil.which("java") is None, reason="there is no Java")


@pytest.fixture
def pdf(shared_dir: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return Path(shutil.copyfile(shared_dir / "corpus" / "pdfs" / "le2020treeheatr.pdf", folder / "tree.pdf"))


@pytest.fixture
def fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A `java` whose version is in the file beside it, and which else never answers."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.mkfifo(folder / "never")
    java = folder / "java"
    java.write_text(
        f'#!/bin/sh\n[ "$1" = -version ] && exec cat "{folder}/version" >&2\nexec cat "{folder}/never"\n', "utf-8"
    )
    java.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)
    return java


@with_package
@with_java
async def test_a_real_paper_is_found_on_its_page(pdf: Path, library: Library) -> None:
    report = await ingest(library, [pdf], pdf=PdfReading("opendataloader"))
    assert report.added == ("tree",) and not report.refused
    assert library.paper("tree").title == "treeheatr: an R package for interpretable decision tree visualizations"
    headings = {section.title: section.level for section in library.sections("tree")}
    assert headings["Introduction"] == headings["Methods"] == headings["Abstract"] == 2
    assert headings["Availability and implementation"] == 3
    ((found, _), *_) = nearest(library, await library.embedding.embed_query(QUOTE), 1)
    assert found.key == "tree"
    pages = pages_by_pdfium(pdf)
    chunks = library.paper_chunks("tree")
    (holding,) = [chunk for chunk in chunks if QUOTE in chunk.text][:1]
    assert holding.page_at(holding.text.index(QUOTE)) == 3
    for chunk in chunks:
        assert chunk.page is not None
        for number, (start, end) in enumerate(pairwise([0, *chunk.page_breaks, len(chunk.text)])):
            part = words(chunk.text[start:end])
            assert share_on(part, pages[chunk.page - 1 + number]) >= 0.7 or len(part) < 8, (chunk.id, number)
    assert not [chunk.id for chunk in chunks if chunk.section == "References"]


@with_package
@with_java
async def test_another_reader_reads_again_and_the_same_one_does_not(
    pdf: Path, library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    await ingest(library, [pdf])
    ours = library.paper("tree").content_hash
    assert (await ingest(library, [pdf], pdf=PdfReading("opendataloader"))).updated == ("tree",)
    assert library.paper("tree").content_hash != ours
    with monkeypatch.context() as without_java:
        without_java.setenv("PATH", "")
        assert (await ingest(library, [pdf], pdf=PdfReading("opendataloader"))).unchanged == ("tree",)
        assert (await rebuild(library, pdf=PdfReading("opendataloader"))).updated == ("tree",)
    await rebuild(library)
    assert library.paper("tree").content_hash == ours


@with_package
@with_java
def test_a_file_that_cannot_be_taken_has_the_same_reason(shared_dir: Path) -> None:
    nasty = shared_dir / "corpus" / "pdfs" / "nasty"
    with pytest.raises(PdfRefusedError, match="password"):
        read_pdf_apart(nasty / "zietz2018network-encrypted.pdf", how=PdfReading("opendataloader"))


@with_package
def test_a_java_that_hangs_is_stopped(pdf: Path, fake_java: Path) -> None:
    with pytest.raises(PdfRefusedError, match="was not read by opendataloader-pdf within 1 seconds"):
        read_layout(pdf, str(fake_java), 1)


@with_package
def test_without_java_one_line_names_the_remedy_and_nothing_is_changed(
    pdf: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "")
    settings = {"HOME": str(tmp_path / "home"), "PDF_READER": "opendataloader"}
    done = cli_process.run("ingest", pdf, cwd=tmp_path, settings=settings)
    assert done.code == 2 and "Traceback" not in done.err
    (line,) = done.errors
    assert "needs Java: no 'java' in PATH" in line
    assert "Install Java 11 or newer" in done.err and "CITELOOM_PDF_READER=pdf-oxide" in done.err
    doctor = cli_process.run("doctor", "--json", cwd=tmp_path, settings=settings)
    assert doctor.json["settings"]["pdf_reader"] == ["opendataloader", "environment"]
    assert doctor.json["library"]["papers"] == 0 and doctor.code == 1
    assert [finding["topic"] for finding in doctor.json["findings"] if finding["level"] == "problem"] == ["PDF reader"]


async def test_without_the_package_too(pdf: Path, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opendataloader_process, "_PACKAGE", "no-such-package-anywhere")
    with pytest.raises(InputError, match="is not installed") as caught:
        await ingest(library, [pdf], pdf=PdfReading("opendataloader"))
    assert "pip install -e '.[opendataloader]'" in caught.value.help
    assert library.papers() == [] and not library.home.converted.exists()


@pytest.mark.parametrize(
    ("said", "wrong"),
    [('java version "1.8.0_292"', "is Java 8"), ("No Java runtime present", "does not start")],
)
def test_an_old_java_and_one_that_does_not_start_are_reported(fake_java: Path, said: str, wrong: str) -> None:
    (fake_java.parent / "version").write_text(said, encoding="utf-8")
    with pytest.raises(InputError, match=wrong):
        require_java()


def test_a_new_java_is_taken(fake_java: Path) -> None:
    (fake_java.parent / "version").write_text('openjdk version "21" 2023-09-19', encoding="utf-8")
    assert require_java() == str(fake_java)
