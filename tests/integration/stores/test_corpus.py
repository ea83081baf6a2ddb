"""The 57 real papers: how they are cut, what is kept out of search, and what is found with the bundled model."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path

import pytest

from citeloom.documents.bibliography import parse_bibliography
from citeloom.documents.chunking import chunk_paper
from citeloom.documents.markdown import ParsedPaper, parse_markdown
from citeloom.documents.model import Category
from citeloom.documents.sentences import sentence_spans
from citeloom.stores.doctor import examine
from citeloom.stores.library import Library
from tests.support.nearest import nearest
from tests.support.word_embedding import WordEmbedding


@pytest.fixture(scope="module")
def parsed(shared_dir: Path) -> dict[str, ParsedPaper]:
    files = sorted((shared_dir / "corpus" / "papers").glob("*.md"))
    return {file.stem: parse_markdown(file.read_bytes().decode("utf-8")) for file in files}


def test_every_span_of_every_paper_is_exact(parsed: dict[str, ParsedPaper]) -> None:
    assert len(parsed) == 57
    for key, paper in parsed.items():
        chunks = chunk_paper(key, paper, WordEmbedding().count_tokens_each)
        assert [chunk.index for chunk in chunks] == list(range(len(chunks)))
        assert all(chunk.text == paper.text[chunk.start : chunk.end] == chunk.text.strip() for chunk in chunks)
        assert all(a.end <= b.start for a, b in zip(paper.sections, paper.sections[1:], strict=False))
        for chunk in chunks[::10]:
            spans = sentence_spans(chunk.text)
            assert spans and all(a[1] <= b[0] for a, b in itertools.pairwise(spans))


def test_code_comments_are_no_headings(parsed: dict[str, ParsedPaper]) -> None:
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
def test_what_is_no_statement_of_the_paper_is_not_searched(corpus_library: Library, key: str, words: str) -> None:
    assert not [chunk.id for chunk in corpus_library.paper_chunks(key) if words in chunk.text]


def test_letters_to_reviewers_end_the_search(corpus_library: Library) -> None:
    letters = next(s for s in corpus_library.sections("nicholson2021examining") if s.title == "Response to Reviewers")
    assert all(chunk.end <= letters.start for chunk in corpus_library.paper_chunks("nicholson2021examining"))


def test_the_library_is_whole(corpus_library: Library) -> None:
    papers = corpus_library.papers()
    assert len(papers) == 57
    assert [finding for finding in examine(corpus_library) if finding.level == "problem"] == []
    assert 2500 < corpus_library.chunk_count() < 4000
    sizes = [chunk.tokens for paper in papers for chunk in corpus_library.paper_chunks(paper.key)]
    assert sum(size > 500 for size in sizes) < 0.02 * len(sizes)
    assert max(sizes) <= 800
    for paper in papers:
        assert paper.year and paper.authors and paper.title
        assert list(parse_bibliography(paper.bibtex, source="entry").papers) == [paper.key]
        assert corpus_library.summary(paper.key)
        assert corpus_library.introduction(paper.key)


@pytest.mark.parametrize(
    ("question", "key"),
    [
        ("estimating divergence times with a relaxed molecular clock", "drummond2006relaxed"),
        ("tractography with an ensemble of parameters in diffusion MRI", "takemura2016ensemble"),
        ("why most published research findings are false", "ioannidis2005published"),
        ("estimating glomerular filtration rate with a neural network", "liu2013improved"),
        ("prioritizing drugs for repurposing with a heterogeneous network", "himmelstein2017systematic"),
        ("statistical power of cluster randomized trials when clusters vary in size", "lauer2015effect"),
    ],
)
def test_a_question_finds_its_paper(corpus_library: Library, question: str, key: str) -> None:
    vector = asyncio.run(corpus_library.embedding.embed_query(question))
    near = nearest(corpus_library, vector, 5)
    assert near[0][0].key == key
    assert key in {near.paper.key for near in corpus_library.nearest_papers(vector, 2)}
    exact = nearest(
        corpus_library, vector, 5, keys=[paper.key for paper in corpus_library.papers()], years=(1900, 2100)
    )
    assert [chunk.id for chunk, _ in exact] == [chunk.id for chunk, _ in near]
