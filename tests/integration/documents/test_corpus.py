"""The 57 real papers: how they are split, and what is excluded from search."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from citeloom.documents.chunking import chunk_paper
from citeloom.documents.markdown import ParsedPaper, parse_markdown
from citeloom.documents.types import Category, Chunk
from citeloom.text.sentences import sentence_spans
from tests.support.word_embedding import WordEmbedding


@pytest.fixture(scope="module")
def parsed(shared_dir: Path) -> dict[str, ParsedPaper]:
    files = sorted((shared_dir / "corpus" / "papers").glob("*.md"))
    return {file.stem: parse_markdown(file.read_bytes().decode("utf-8")) for file in files}


def chunks_of(key: str, paper: ParsedPaper) -> list[Chunk]:
    return chunk_paper(key, paper, WordEmbedding().count_tokens_each)


def test_every_span_of_every_paper_is_exact(parsed: dict[str, ParsedPaper]) -> None:
    assert len(parsed) == 57
    for key, paper in parsed.items():
        chunks = chunks_of(key, paper)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert all(chunk.text == paper.text[chunk.start : chunk.end] == chunk.text.strip() for chunk in chunks)
        assert all(a.end <= b.start for a, b in zip(paper.sections, paper.sections[1:], strict=False))
        for chunk in chunks[::10]:
            spans = sentence_spans(chunk.text)
            assert spans and all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_code_comments_are_not_headings(parsed: dict[str, ParsedPaper]) -> None:
    titles = {key: {section.title for section in paper.sections} for key, paper in parsed.items()}
    assert "Load usefull packages" not in titles["fert2025reservoir"]
    assert not any("occupancy" in title and "data" in title.lower() for title in titles["gimenez2022trade"])
    assert "Conclusion" in titles["sanou2023inference"]
    assert (
        "A FracMinHash implementation accurately estimates containment between sets of different sizes"
        in titles["irber2022lightweight"]
    )


def test_every_paper_with_an_abstract_or_introduction_shows_it(parsed: dict[str, ParsedPaper]) -> None:
    without = {"daigavane2021understanding", "lee2022ten", "olah2018building", "olah2020overview", "olah2020zoom"}
    without.update({"dudley2009quick", "sanchezlengeling2021gentle"})
    assert {key for key, paper in parsed.items() if len(paper.abstract().split()) < 30} == without
    for key, paper in parsed.items():
        kinds = {section.category for section in paper.sections if section.searchable}
        assert Category.INTRODUCTION in kinds, key


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("nicholson2021examining", "We thank the reviewer"),
        ("nicholson2021examining", "Reviewer"),
        ("berretta2010cancer", "J Clin Oncol"),
        ("shapiro2023openpbta", "Writing – Original"),
        ("lobentanzer2024platform", "Message From BioChatter"),
        ("ching2018opportunities", "[@tag:Abe]: doi"),
        ("fert2025reservoir", "use this template"),
    ],
)
def test_text_that_is_not_the_papers_own_is_not_searched(parsed: dict[str, ParsedPaper], key: str, words: str) -> None:
    assert not [chunk.id for chunk in chunks_of(key, parsed[key]) if words in chunk.text]


def test_letters_to_reviewers_and_all_that_follows_are_not_searched(parsed: dict[str, ParsedPaper]) -> None:
    paper = parsed["nicholson2021examining"]
    letters = next(section for section in paper.sections if section.title == "Response to Reviewers")
    assert all(chunk.end <= letters.start for chunk in chunks_of("nicholson2021examining", paper))
