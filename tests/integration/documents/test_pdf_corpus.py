"""The real PDFs: headings are compared with the same papers in markdown, and pages of chunks with another library."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents.chunking import chunk_paper
from citeloom.documents.markdown import ParsedPaper, parse_markdown
from citeloom.documents.types import Chunk
from citeloom.ingestion.reading import read_pdf_apart
from tests.support.pdf_pages import pages_by_pdfium, share_on, words
from tests.support.word_embedding import WordEmbedding

ALSO_MARKDOWN = (
    "banerjee2023machine",
    "ching2018opportunities",
    "irber2022lightweight",
    "le2020treeheatr",
    "lee2022ten",
    "susmann2024adaptiveconformal",
    "zietz2018network",
)
KEYS = (*ALSO_MARKDOWN, "gao2023enabling")
LONGEST = "ching2018opportunities"  # of 122 pages
_NUMBER = re.compile(r"^(?:appendix )?(?:\d+(?:\.\d+)*|[A-Z](?:\.\d+)*)[.:]?\s+(?=\S)")


@cache
def read(path: Path) -> ParsedPaper:
    return read_pdf_apart(path)


@pytest.fixture
def pdfs(shared_dir: Path) -> Path:
    return shared_dir / "corpus" / "pdfs"


def each(keys: Sequence[str]) -> list[Any]:
    """The papers as parameters of a test."""
    return [pytest.param(key, marks=pytest.mark.long if key == LONGEST else ()) for key in keys]


def chunks_of(paper: ParsedPaper) -> list[Chunk]:
    return chunk_paper("k", paper, WordEmbedding().count_tokens_each)


def headings(paper: ParsedPaper) -> set[str]:
    """The titles as letters and digits, numbering aside."""
    plain = (_NUMBER.sub("", unicodedata.normalize("NFKD", section.title)).lower() for section in paper.sections)
    return {letters for title in plain if (letters := re.sub(r"[^a-z0-9]+", "", title))}


def scores(pdfs: Path, key: str) -> tuple[float, float]:
    """Recall and precision of the PDF's headings against the markdown's."""
    markdown = (pdfs.parent / "papers" / f"{key}.md").read_text(encoding="utf-8")
    wanted, found = headings(parse_markdown(markdown)), headings(read(pdfs / f"{key}.pdf"))
    return len(wanted & found) / len(wanted), len(wanted & found) / len(found)


@pytest.mark.parametrize("key", each(ALSO_MARKDOWN))
def test_headings_match_those_of_the_markdown(pdfs: Path, key: str) -> None:
    recall, precision = scores(pdfs, key)
    assert recall >= 0.8
    assert precision >= 0.6


@pytest.mark.parametrize("key", each(KEYS))
def test_every_chunk_is_on_the_pages_that_it_names(pdfs: Path, key: str) -> None:
    paper = read(pdfs / f"{key}.pdf")
    pages = pages_by_pdfium(pdfs / f"{key}.pdf")
    assert len(paper.page_starts) == len(pages)
    chunks = chunks_of(paper)
    assert chunks
    for chunk in chunks:
        assert chunk.page is not None
        bounds = [0, *chunk.page_breaks, len(chunk.text)]
        for number, (start, end) in enumerate(pairwise(bounds)):
            # A word cut in two by the page's end is on neither page.
            part = words(chunk.text[start:end])
            assert share_on(part, pages[chunk.page - 1 + number]) >= 0.7 or len(part) < 8, (chunk.id, number)


@pytest.mark.parametrize("key", each(KEYS))
def test_text_repeated_on_every_page_and_references_are_left_out(pdfs: Path, key: str) -> None:
    chunks = chunks_of(read(pdfs / f"{key}.pdf"))
    assert not [chunk.section for chunk in chunks if chunk.section.lower().strip("0123456789 ") == "references"]
    assert not [chunk.id for chunk in chunks if str(chunk.page) in chunk.text.split("\n\n")]


def test_columns_are_read_one_after_another(pdfs: Path) -> None:
    text = read(pdfs / "gao2023enabling.pdf").text
    assert "a widely-used tool for information seeking, but their generated outputs are prone to hallucination" in text
    assert "improving their factual correctness and verifiability" in text
    assert text.index("3.3 Citation Quality") < text.index("3.4 ALCE is Robust") < text.index("4 Modeling")


def test_ligatures_without_a_mapping_are_restored(pdfs: Path) -> None:
    text = read(pdfs / "banerjee2023machine.pdf").text
    assert "The advent of high-throughput profiling methods" in text
    assert "specifically that of rare diseases" in text
    assert "different" in text and "sufficient" in text


def test_lines_of_code_stay_separate(pdfs: Path) -> None:
    paper = read(pdfs / "susmann2024adaptiveconformal.pdf")
    code = [paper.text[block.start : block.end] for block in paper.blocks if block.kind == "code"]
    assert any("N_sims <- 100\nsimulation_data <- expand_grid(" in block for block in code)


@pytest.mark.parametrize(
    ("key", "title"),
    [
        ("zietz2018network", "Network Methods for Multiomic Data Integration"),
        ("gao2023enabling", "Enabling Large Language Models to Generate Text with Citations"),
        ("susmann2024adaptiveconformal", "AdaptiveConformal: An R Package for Adaptive Conformal Inference"),
        ("lee2022ten", "Ten Quick Tips for Deep Learning in Biology"),
    ],
)
def test_the_title_is_found_without_a_bibliography(pdfs: Path, key: str, title: str) -> None:
    assert read(pdfs / f"{key}.pdf").title == title


AUTHORS = {  # the number of authors on the first page, the first of them, and the year that it states
    "banerjee2023machine": (6, "Jineta Banerjee", 2023),
    "gao2023enabling": (4, "Tianyu Gao", None),
    "irber2022lightweight": (7, "Luiz Irber", 2022),
    "le2020treeheatr": (2, "Trang T. Le", 2020),
    "susmann2024adaptiveconformal": (3, "Herbert Susmann", 2024),
    "zietz2018network": (1, "Michael Zietz", 2018),
}


@pytest.mark.parametrize("key", AUTHORS)
def test_abstract_authors_and_year_are_read_from_the_first_page(key: str, pdfs: Path) -> None:
    paper = read(pdfs / f"{key}.pdf")
    authors = paper.front_matter.authors
    assert (len(authors), authors[0], paper.front_matter.year) == AUTHORS[key]
    assert 80 < len(paper.abstract().split()) < 300
    assert paper.abstract().rstrip("1").rstrip("/").endswith(".")
