"""Citations of a sentence that the user edited become markers again, in every style."""

from __future__ import annotations

import pytest

from citeloom.citations.citation_styles import render
from citeloom.citations.user_citations import CitableEvidence
from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.roles.protocols import Source
from citeloom.settings.config import CitationStyle

STYLES: tuple[CitationStyle, ...] = ("key", "pandoc", "latex", "numeric", "key-page")
WORDS = {
    1: "Node degree explains most edges of a network.",
    2: "Seeds change the result of a small classifier.",
    3: "Humid air makes linen narrower.",
    4: "Node degree fails on another network.",
}


def evidence(number: int, key: str, page: int | None) -> Evidence:
    words = WORDS[number]
    place = {"section": "Results", "parent": "", "category": Category.OTHER, "level": 1, "page": page}
    chunk = Chunk(f"{key}:{number:05d}", key, number, words, **place, start=0, end=len(words), tokens=9)
    scores = {"vector_score": 0.8, "llm_score": 0.8, "combined_score": 0.8, "source_query": "q"}
    return Evidence.of(chunk, id=f"E{number}", summary=words, start=0, end=len(words), **scores)


EVIDENCE = (
    evidence(1, "ada2017degree", 4),
    evidence(2, "bo_2020", None),
    evidence(3, "ada2017degree", 9),
    evidence(4, "ada2017degree", 9),
)
NUMBERING = ("ada2017degree", "bo_2020")


def marked(words: str, original: str = "Degrees matter.", style: CitationStyle = "key") -> str:
    return CitableEvidence(EVIDENCE, style, NUMBERING).with_markers(words, original)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "draft", ["Degrees matter [E1][E2].", "Degrees matter [E1], seeds too [E2].", "All [E1][E3] say so."]
)
def test_a_rendered_sentence_gets_its_own_markers_back(style: CitationStyle, draft: str) -> None:
    sources = [Source(item, Paper(item.key, "A title"), "") for item in EVIDENCE]
    shown = render(draft, sources, style, before=NUMBERING).text
    assert marked(shown, draft, style) == draft


@pytest.mark.parametrize(
    ("words", "style", "ids"),
    [
        ("Air narrows linen (ada2017degree, p. 4).", "key", "[E1]"),
        ("Seeds matter [@bo_2020].", "key", "[E2]"),
        ("Seeds matter [2].", "numeric", "[E2]"),
        ("Seeds matter \\cite{bo_2020}.", "latex", "[E2]"),
        ("Air narrows linen \\cite[see][p.~9]{ada2017degree}.", "latex", "[E3][E4]"),
        ("Humid air makes linen narrow (ada2017degree, page 9).", "key", "[E3][E4]"),
        ("Both say so (bo_2020; ada2017degree, p. 4).", "key", "[E2][E1]"),
        ("Both say so [1,2].", "numeric", None),
    ],
)
def test_a_newly_cited_paper_is_turned_into_its_evidence(words: str, style: CitationStyle, ids: str | None) -> None:
    found = marked(words, style=style)
    assert ids is None or ids in found
    assert "bo_2020" not in found and "ada2017" not in found


def test_a_new_citation_prefers_passages_that_share_its_words() -> None:
    assert marked("Humid air narrows linen (ada2017degree).").startswith("Humid air narrows linen [E3]")


@pytest.mark.parametrize(
    ("words", "style"),
    [
        ("As [E1] says.", "key"),
        ("An interval [1, 2] is given.", "key"),
        ("Nobody says so (smith2020).", "key"),
        ("Number [7] is not there.", "numeric"),
        ("A case (see below, p. 4) of its own.", "key"),
    ],
)
def test_a_citation_without_evidence_stays_text(words: str, style: CitationStyle) -> None:
    from citeloom.citations.markers import marker_ids
    from citeloom.documents.marker_escaping import unescape

    found = marked(words, style=style)
    assert marker_ids(found) == () and unescape(found) == words


def test_a_citation_from_the_experiment_itself_stays_text() -> None:
    own = "It is in line with [@bo_2020]."
    assert marked("It is well in line with [@bo_2020].", own) == "It is well in line with [@bo_2020]."


def test_marks_of_failed_checks_are_not_part_of_the_edit() -> None:
    assert marked("Degrees [number not found] matter [not supported].") == "Degrees matter."
