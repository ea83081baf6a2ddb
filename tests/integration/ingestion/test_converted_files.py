"""An unchanged PDF is not read again, an edited one is, and its cache entry is deleted with its paper."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest

from citeloom.documents import sandbox
from citeloom.ingestion.ingest import ingest, remove_all
from citeloom.stores.library import Library


@pytest.fixture
def pdf(shared_dir: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return Path(shutil.copyfile(shared_dir / "corpus" / "pdfs" / "le2020treeheatr.pdf", folder / "tree.pdf"))


def entries(library: Library) -> list[Path]:
    return sorted(library.home.converted.glob("*"))


def test_an_unchanged_file_is_not_converted_again(pdf: Path, library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    assert asyncio.run(ingest(library, [pdf])).added == ("tree",)
    monkeypatch.setattr(sandbox, "_THIS", "no_such_module_anywhere")
    again = asyncio.run(ingest(library, [pdf]))
    assert again.unchanged == ("tree",) and not again.refused
    pdf.write_bytes(pdf.read_bytes() + b"\n% changed\n")
    assert "the PDF reader ended with exit code 1" in asyncio.run(ingest(library, [pdf])).refused[0].reason


def test_a_broken_cache_entry_is_converted_again(pdf: Path, library: Library) -> None:
    asyncio.run(ingest(library, [pdf]))
    (entry,) = entries(library)
    entry.write_text('{"stamp": ', encoding="utf-8")
    assert asyncio.run(ingest(library, [pdf])).unchanged == ("tree",)


def test_a_cache_entry_is_deleted_with_its_paper(pdf: Path, library: Library) -> None:
    asyncio.run(ingest(library, [pdf]))
    asyncio.run(remove_all(library, ["tree"]))
    assert entries(library) == []
    asyncio.run(ingest(library, [pdf.parent]))
    pdf.rename(pdf.with_suffix(".old"))
    (pdf.parent / "other.md").write_text("# Other\n\nA paper that has some words to be searched for.", encoding="utf-8")
    assert asyncio.run(ingest(library, [pdf.parent], prune=True)).removed == ("tree",)
    assert entries(library) == []


def test_a_refused_file_is_read_again_next_time(library: Library, tmp_path: Path, pdf: Path) -> None:
    cut = tmp_path / "in" / "cut.pdf"
    cut.write_bytes(pdf.read_bytes()[:50_000])
    assert len(asyncio.run(ingest(library, [cut])).refused) == 1
    assert entries(library) == []
    cut.write_bytes(pdf.read_bytes())
    assert asyncio.run(ingest(library, [cut])).added == ("cut",)
