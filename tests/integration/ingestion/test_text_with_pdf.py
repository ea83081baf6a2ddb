"""The markdown and the PDF of one paper are one paper: the text of the one with the pages of the other."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from citeloom.documents import chunk_id
from citeloom.documents.markdown import ParsedPaper
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.reading import parse_file, read_pdf_apart
from citeloom.ingestion.sources import align_pages
from citeloom.stores.library import Library

KEY = "le2020treeheatr"
QUOTE = "Decision tree models comprise a set of machine learning algorithms"  # on page 2
METHODS = "## Methods"  # on page 4


def files(shared: Path, folder: Path, *endings: str) -> Path:
    folder.mkdir(exist_ok=True)
    for ending in endings:
        shutil.copy(shared / "corpus" / ("pdfs" if ending == ".pdf" else "papers") / f"{KEY}{ending}", folder)
    return folder


def pages(library: Library) -> list[int | None]:
    return [chunk.page for chunk in library.chunks([chunk_id(KEY, n) for n in range(library.chunk_count(KEY))])]


@pytest.mark.parametrize("apart", [False, True])
async def test_a_text_and_its_pdf_are_one_paper(
    library: Library, shared_dir: Path, tmp_path: Path, apart: bool
) -> None:
    text = files(shared_dir, tmp_path / "a", ".md")
    report = await ingest(library, [text, files(shared_dir, tmp_path / ("b" if apart else "a"), ".pdf")])
    assert (report.added, report.refused) == ((KEY,), ())
    paper = library.paper(KEY)
    assert paper.source.endswith(".md") and paper.pages == 7
    assert pages(library)[0] == 2 and pages(library) == sorted(pages(library), key=lambda page: page or 0)


async def test_a_pdf_added_later_provides_the_pages(library: Library, shared_dir: Path, tmp_path: Path) -> None:
    await ingest(library, [files(shared_dir, tmp_path / "a", ".md")])
    assert set(pages(library)) == {None}
    report = await ingest(library, [files(shared_dir, tmp_path / "a", ".pdf")])
    assert (report.updated, report.refused) == ((KEY,), ()) and None not in pages(library)
    assert (await ingest(library, [tmp_path / "a"])).unchanged == (KEY,)


async def test_a_pdf_of_a_different_text_is_reported(library: Library, shared_dir: Path, tmp_path: Path) -> None:
    folder = files(shared_dir, tmp_path / "a", ".md")
    shutil.copy(shared_dir / "corpus" / "pdfs" / "zietz2018network.pdf", folder / f"{KEY}.pdf")
    report = await ingest(library, [folder])
    assert report.added == (KEY,) and set(pages(library)) == {None}
    assert any(f"{KEY}.pdf: skipped" in warning and "a different text" in warning for warning in report.warnings)


@pytest.mark.parametrize("key", [KEY, "zietz2018network", "lee2022ten"])
def test_every_passage_is_on_its_page(key: str, shared_dir: Path) -> None:
    text = parse_file(shared_dir / "corpus" / "papers" / f"{key}.md", None, None)
    pdf = read_pdf_apart(shared_dir / "corpus" / "pdfs" / f"{key}.pdf")
    assert isinstance(text, ParsedPaper)
    paged = align_pages(text, pdf)
    assert paged is not None
    compared = right = 0
    for section in pdf.sections:
        for block in pdf.section_blocks(section):
            words = pdf.text[block.start : block.end].split(". ")[0]
            place = paged.text.find(words)
            if section.searchable and len(words) > 50 and place >= 0 and paged.text.count(words) == 1:
                compared += 1
                right += paged.page_at(place) == pdf.page_at(block.start)
    assert compared >= 5 and right >= 0.9 * compared
