"""Answers of the services become plain, bounded values, whatever is in them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from citeloom.documents.bibliography import parse_bibliography
from citeloom.documents.publication_status import Notice, Version
from citeloom.metadata.adding import merge_works
from citeloom.metadata.bib_entry import bib_entry
from citeloom.metadata.service_works import (
    Author,
    Work,
    parse_crossref,
    parse_datacite,
    parse_openalex,
    parse_semantic_scholar,
)
from tests.support.metadata_server import (
    ServedWork,
    crossref_item,
    datacite_attributes,
    openalex_work,
    semantic_scholar_paper,
)

SERVED = ServedWork(
    "10.5555/looms.1",
    "Looms &amp; <i>Threads</i>",
    (("Ada", "Lovelace"), ("", "The Loom Consortium")),
    2020,
    "Journal of Looms",
    "12",
    "3",
    "1-9",
    abstract="Looms weave.",
    citations=5,
    updates=(("expression_of_concern", "10.5555/concern", (2021, 2, 3), "retraction-watch"),),
    relations={"has-preprint": "10.48550/arXiv.2001.00001"},
    retracted=True,
)
PARSERS = {
    "crossref": (parse_crossref, crossref_item),
    "datacite": (parse_datacite, datacite_attributes),
    "openalex": (parse_openalex, openalex_work),
    "semantic scholar": (parse_semantic_scholar, semantic_scholar_paper),
}


@pytest.mark.parametrize(("parse", "shown"), PARSERS.values(), ids=PARSERS)
def test_every_service_gives_the_same_work(parse: Any, shown: Any) -> None:
    work = parse(shown(SERVED))
    assert (work.doi, work.year, work.title) == ("10.5555/looms.1", 2020, "Looms & Threads")
    assert work.authors[0] == Author("Ada Lovelace", "Lovelace") and len(work.authors) == 2
    assert work.abstract == "Looms weave." and work.citations is not None


def test_updates_and_versions_are_read_from_crossref() -> None:
    work = parse_crossref(crossref_item(SERVED))
    assert work is not None
    assert work.notices == (
        Notice("expression_of_concern", "Retraction Watch by Crossref", "10.5555/concern", "2021-02-03"),
    )
    assert work.versions == (Version("preprint", "10.48550/arxiv.2001.00001", "Crossref"),)


def test_a_record_for_preprint_and_article_names_the_other_version() -> None:
    record = semantic_scholar_paper(ServedWork("10.5555/article", "T", arxiv="2001.00001"))
    asked_for_arxiv = parse_semantic_scholar(record, "10.48550/arxiv.2001.00001")
    assert asked_for_arxiv is not None
    assert asked_for_arxiv.versions == (Version("article", "10.5555/article", "Semantic Scholar"),)


ODD: list[Any] = [None, 7, -1, True, 1e400, "text", "\ud800\x1b[31m", [], [None], {}, {"x": 1}, [[[]]], "9" * 5000]


def _variants(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(found for key, item in inner for found in _variants(item, (*path, key)))]


@pytest.mark.parametrize(("parse", "shown"), PARSERS.values(), ids=PARSERS)
def test_an_odd_value_is_left_out_and_nothing_else(parse: Any, shown: Any) -> None:
    whole = json.dumps(shown(SERVED))
    for path in _variants(json.loads(whole))[1:]:
        for odd in ODD:
            record = json.loads(whole)
            place = record
            for key in path[:-1]:
                place = place[key]
            place[path[-1]] = odd
            work = parse(record)
            if work is not None:
                json.dumps(work.stated_fields())
                assert "\x1b" not in str(work) and "\ud800" not in str(work)


def test_huge_fields_are_truncated() -> None:
    record = crossref_item(SERVED) | {
        "title": ["x" * 1_000_000],
        "abstract": "y" * 1_000_000,
        "author": [{"given": "A", "family": "B" * 100_000}] * 50_000,
    }
    work = parse_crossref(record)
    assert work is not None and len(str(work)) < 500_000


def test_a_works_data_cannot_break_out_of_its_bib_entry() -> None:
    hostile = Work(
        "Crossref",
        "10.5555/x",
        'Title} } @article{evil, title = {x"}, \\input{/etc/passwd} % #1',
        (Author("Sand and Water", "Sand and Water"), Author("Ada } Lovelace", "Lovelace")),
        2020,
        "Venue {",
        kind="journal-article",
    )
    found = parse_bibliography(bib_entry(hostile, "key2020"), source="made")
    assert list(found.papers) == ["key2020"] and not found.refused
    assert len(found.papers["key2020"].authors) == 2 and "\\input" not in found.papers["key2020"].bibtex


@pytest.mark.parametrize(
    ("kind", "venue", "begins"),
    [
        ("journal-article", "Journal", "@article{"),
        ("proceedings-article", "Proceedings", "@inproceedings{"),
        ("book-chapter", "Book", "@incollection{"),
        ("dissertation", "", "@phdthesis{"),
        ("posted-content", "bioRxiv", "@misc{"),
        ("dataset", "", "@misc{"),
    ],
)
def test_the_type_of_entry_follows_the_kind_of_work(kind: str, venue: str, begins: str) -> None:
    assert bib_entry(Work("Crossref", "10.5555/x", "T", kind=kind, venue=venue), "k").startswith(begins)


def test_a_preprint_does_not_get_the_volume_of_its_article() -> None:
    preprint = Work("DataCite", "10.48550/arxiv.2001.00001", "T", year=2020, kind="posted-content", venue="arXiv")
    article = Work("Semantic Scholar", "10.48550/arxiv.2001.00001", "T", year=2021, venue="Journal", volume="3")
    made = merge_works([preprint, article], preprint.doi)
    assert (made.year, made.venue, made.volume) == (2020, "arXiv", "")
