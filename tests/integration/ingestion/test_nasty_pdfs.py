"""Damaged, locked, scanned and mislabelled PDFs: each is ingested correctly or refused with its true reason."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from citeloom.documents import sandbox
from citeloom.documents.pdf.reader import PdfRefusedError
from citeloom.errors import InputError
from citeloom.ingestion.doctor import examine
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.reading import read_pdf_apart
from citeloom.stores.library import Library

NO_MAP = "no Unicode map"
REFUSED = {
    "empty": "is empty (0 bytes)",
    "francais": "without any text (scanned?)",
    "habibi": "written from right to left",
    "html-named": "is not a PDF but an HTML page",
    "invalid": "there is nothing between its head and its end",
    "kcs": "without any text (scanned?)",
    "le2020treeheatr-scanned": "without any text (scanned?)",
    "le2020treeheatr-truncated": "is cut off: its end is missing",
    "libreoffice-writer-password": "is encrypted",
    "livecycle": "its pages are blank",
    "no_contents": "its pages are blank",
    "truetype_font_nomapping": NO_MAP,
    "type3_font_nomapping": NO_MAP,
    "unreadablemetadata": NO_MAP,
    "zietz2018network-encrypted": "is encrypted",
}


@pytest.fixture
def nasty(shared_dir: Path) -> Path:
    return shared_dir / "corpus" / "pdfs" / "nasty"


def test_every_bad_pdf_has_an_expected_reason(nasty: Path) -> None:
    assert {file.stem for file in nasty.glob("*.pdf")} == {*REFUSED, "multicolumn"}


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_a_bad_pdf_is_refused_with_its_true_reason_in_one_line(nasty: Path, name: str) -> None:
    with pytest.raises(PdfRefusedError) as caught:
        read_pdf_apart(nasty / f"{name}.pdf")
    assert REFUSED[name] in str(caught.value)
    assert "\n" not in str(caught.value) and "Traceback" not in str(caught.value)


def test_two_columns_are_indexed_in_reading_order(nasty: Path, library: Library) -> None:
    report = asyncio.run(ingest(library, [nasty / "multicolumn.pdf"]))
    assert report.added == ("multicolumn",) and not report.refused
    paper = library.paper("multicolumn")
    assert (paper.title, paper.pages) == ("Two-Column Document with Lorem Ipsum", 3)
    chunks = library.store.get_chunks(sorted(library.store.stored_ids()))
    first = chunks["multicolumn:00000"]
    assert "This is a sample document with two columns filled with Lorem Ipsum text." in first.text
    assert "consectetuer adipiscing elit" in " ".join(chunk.text for chunk in chunks.values())


@pytest.mark.long
def test_a_folder_of_bad_pdfs_leaves_nothing_half_done(nasty: Path, library: Library) -> None:
    report = asyncio.run(ingest(library, [nasty]))
    assert report.added == ("multicolumn",)
    assert {Path(item.path).stem for item in report.refused} == set(REFUSED)
    assert [record.paper.key for record in library.records().values()] == ["multicolumn"]
    assert library.catalog.unfinished() == []
    assert [finding.level for finding in examine(library) if finding.level != "fine"] == []
    again = asyncio.run(ingest(library, [nasty]))
    assert again.unchanged == ("multicolumn",) and again.chunks_embedded == 0 and len(again.refused) == len(REFUSED)


def test_a_hanging_reader_is_stopped(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.pdf"
    os.mkfifo(pipe)  # nobody ever writes to it
    with pytest.raises(PdfRefusedError, match="the PDF reader took longer than 2 seconds"):
        read_pdf_apart(pipe, seconds=2)


def test_a_crashing_reader_is_reported(nasty: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "_THIS", "no_such_module_anywhere")
    with pytest.raises(PdfRefusedError, match="the PDF reader ended with exit code 1"):
        read_pdf_apart(nasty / "multicolumn.pdf")


def test_markdown_is_preferred_to_the_pdf_beside_it(shared_dir: Path, library: Library, tmp_path: Path) -> None:
    folder = tmp_path / "both"
    folder.mkdir()
    shutil.copy(shared_dir / "corpus" / "papers" / "le2020treeheatr.md", folder)
    shutil.copyfile(shared_dir / "corpus" / "pdfs" / "le2020treeheatr.pdf", folder / "le2020treeheatr.PDF")
    report = asyncio.run(ingest(library, [folder]))
    assert report.added == ("le2020treeheatr",) and not report.refused
    assert library.paper("le2020treeheatr").source.endswith(".md")
    assert library.paper("le2020treeheatr").pages == 7
    (folder / "le2020treeheatr.md").unlink()
    assert asyncio.run(ingest(library, [folder])).updated == ("le2020treeheatr",)
    assert library.paper("le2020treeheatr").pages == 7


def test_a_folder_without_papers_lists_the_accepted_types(library: Library, tmp_path: Path) -> None:
    (tmp_path / "notes.xyz").write_text("x")
    with pytest.raises(InputError, match=r"no papers found .*\.pdf"):
        asyncio.run(ingest(library, [tmp_path]))
