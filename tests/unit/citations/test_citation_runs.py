"""Sentences that rest on one paper are cited once, and each keeps its own evidence."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import asdict
from types import SimpleNamespace
from typing import Any

import pytest

from citeloom.citations.checks.draft_checks import check_draft
from citeloom.citations.citation_styles import Rendered, render
from citeloom.citations.export.evidence_report import report_view
from citeloom.citations.user_citations import CitableEvidence
from citeloom.citations.verification import TextCheck, verify
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Draft, Verdict, VerdictLabel
from tests.support.citation_samples import make_source

SOURCES = [
    make_source("E1", "ada2017degree", page=4),
    make_source("E2", "bo2020seeds", ("Bo",)),
    make_source("E3", "ada2017degree", page=9),
]
DRAFT = "Nine et al. compared nine networks [E1]. Degree explained most edges in 2017 [E3]. Seeds matter less [E2]."
FIRST, LAST = "Nine et al. compared nine networks.", "Degree explained most edges in 2017 [1, pp. 4, 9]."
NAMED = [
    make_source("E1", "ada2017degree", ("Nine", "Ten", "Bo"), page=4),
    make_source("E2", "bo2020seeds", ("Bo", "Cy", "Di")),
    make_source("E3", "ada2017degree", ("Nine", "Ten", "Bo"), page=9),
]
NUMBERING = ("ada2017degree", "bo2020seeds")


def shown(label: VerdictLabel = "supported", typed: Collection[str] = ()) -> Rendered:
    verdicts = {("Degree explained most edges in 2017 [E3].", "E3"): Verdict(label)}
    return render(DRAFT, SOURCES, "numeric", verdicts=verdicts, typed=typed)


def record_of(rendered: Rendered) -> dict[str, Any]:
    """The parts of a record that verification and the report need."""
    places = [
        {"start": place.start, "end": place.end, "ids": list(place.ids), "covers": place.covers}
        for place in rendered.places
    ]
    return {
        "text": rendered.text,
        "evidence": [source.evidence.as_dict() for source in SOURCES],
        "citations": [asdict(citation) for citation in rendered.citations],
        "references": [
            {"label": str(number), "key": key, "text": "", "authors": ["Ada Nine", "Ada Ten", "Bo Three"]}
            for number, key in enumerate(NUMBERING, 1)
        ],
        "findings": [
            {"rule": "unsupported", "start": rendered.text.find("Degree"), "end": rendered.text.find("Seeds")}
        ],
        "numbers": [],
        "left_out": [],
        "suspicious": [],
        "report": {"places": places, "searches": [], "papers": {}, "passages": {}, "quotes": {}},
    }


class Shelf:
    def records(self) -> dict[str, None]:
        return dict.fromkeys(NUMBERING)

    def paper_chunks(self, key: str) -> list[SimpleNamespace]:
        return [SimpleNamespace(key=key, text=source.text) for source in SOURCES if source.paper.key == key]

    def chunks(self, ids: Sequence[str]) -> list[SimpleNamespace]:
        return []


class Holder(Shelf):
    """A library with one chunk."""

    def __init__(self, text: str) -> None:
        self._text = text

    def chunks(self, ids: Sequence[str]) -> list[SimpleNamespace]:
        return [SimpleNamespace(key=NUMBERING[0], text=self._text)]


def test_each_sentence_keeps_its_own_record() -> None:
    rendered = shown()
    assert rendered.text == f"{FIRST} {LAST} Seeds matter less [2]."
    assert [(item.evidence_id, item.sentence) for item in rendered.citations] == [
        ("E1", FIRST),
        ("E3", LAST),
        ("E2", "Seeds matter less [2]."),
    ]
    assert [rendered.text[item.start : item.end] for item in rendered.sentences][:2] == [FIRST, LAST]


@pytest.mark.parametrize("label", ["unsupported", "contradicted", "partly", "off-topic"])
def test_a_doubtful_sentence_shares_no_citation(label: VerdictLabel) -> None:
    rendered = shown(label)
    first, second = "Nine et al. compared nine networks [1, p. 4].", "Degree explained most edges in 2017 [1, p. 9]."
    assert rendered.text == f"{first} {second} Seeds matter less [2]."
    assert not any(sentence.covered for sentence in rendered.sentences)


def test_a_sentence_after_a_doubtful_one_shows_its_own_citation() -> None:
    draft = f"{DRAFT.partition(' Seeds')[0]} Most networks had hubs [E1]. Hubs were old [E3]."
    verdicts = {("Degree explained most edges in 2017 [E3].", "E3"): Verdict("unsupported")}
    assert render(draft, SOURCES, "numeric", verdicts=verdicts).text == (
        "Nine et al. compared nine networks [1, p. 4]. Degree explained most edges in 2017 [1, p. 9]. Most networks had"
        " hubs. Hubs were old [1, pp. 4, 9]."
    )


def test_a_citation_that_the_user_typed_stays_in_its_sentence() -> None:
    text = shown(typed={"Nine et al. compared nine networks [E1]."}).text
    assert text.startswith(
        "Nine et al. compared nine networks [1, p. 4]. Degree explained most edges in 2017 [1, p. 9]."
    )
    draft = "Degree explains edges [E1] and hubs [E3]. Seeds matter less [E2]."
    assert render(draft, SOURCES, "numeric").text.startswith("Degree explains edges and hubs [1, pp. 4, 9].")
    typed = render(draft, SOURCES, "numeric", typed={"Degree explains edges [E1] and hubs [E3]."})
    assert typed.text.startswith("Degree explains edges [1, p. 4] and hubs [1, p. 9].")


@pytest.mark.parametrize("label", ["supported", "unsupported"])
def test_the_report_shows_every_sentence_of_a_merged_citation_with_its_passage(label: VerdictLabel) -> None:
    view = report_view(record_of(shown(label)))
    merged = label == "supported"
    assert [[support.citation["evidence_id"] for support in card.supports] for card in view.cards] == (
        [["E1", "E3"], ["E2"]] if merged else [["E1"], ["E3"], ["E2"]]
    )
    assert [card.number for card in view.cards_for(view.findings[0])] == ([] if merged else [2])


def test_verification_reads_merged_citations() -> None:
    record = record_of(shown())
    wrong: list[str] = []
    check = TextCheck(record, Shelf(), wrong.append, Experiment())
    check.check_own_text(record["text"])
    assert wrong == []
    check.check_file(record["text"].replace(FIRST, "Nine et al. compared nine large networks."))
    assert check.edited == 1
    assert not any("cites" in line for line in wrong)
    check.check_file(record["text"].replace("[1, pp. 4, 9]", "[2]"))
    assert sum("in the run it cites ada2017degree" in line for line in wrong) == 2


def test_sentences_with_the_same_words_may_cite_different_papers() -> None:
    rendered = render("Listed elsewhere [E1].\n\nListed elsewhere [E2].", SOURCES, "numeric")
    record, wrong = record_of(rendered) | {"findings": []}, list[str]()
    TextCheck(record, Shelf(), wrong.append, Experiment()).check_own_text(record["text"])
    assert wrong == []


def test_a_key_cited_by_no_sentence_with_the_same_words_is_wrong() -> None:
    rendered = render("Listed elsewhere [E1].\n\nListed elsewhere [E1].\n\nSeeds matter [E2].", SOURCES, "numeric")
    record, wrong = record_of(rendered) | {"findings": []}, list[str]()
    changed = "[2".join(record["text"].rsplit("[1", 1))
    TextCheck(record, Shelf(), wrong.append, Experiment()).check_own_text(changed)
    assert any("in the run it cites ada2017degree" in line for line in wrong)


@pytest.mark.parametrize(
    ("words", "original", "covered", "expected"),
    [
        (
            "Nine et al. took nine networks.",
            "Nine et al. compared nine networks [E1].",
            True,
            "Nine et al. took nine networks [E1].",
        ),
        ("Bo took nine [2].", "Nine et al. compared nine networks [E1].", True, "Bo took nine [E2]."),
        (
            "Degree explained many [1, pp. 4, 9].",
            "Degree explained most edges [E3].",
            False,
            "Degree explained many [E3].",
        ),
        ("Both hold [1, p. 9; 2].", "Nothing.", False, "Both hold [E3][E2]."),
        ("Both hold [1, 2].", "Both hold [E1][E2].", False, "Both hold [E1][E2]."),
        ("", "Nine et al. compared nine networks [E1].", True, ""),
    ],
)
def test_an_edited_sentence_keeps_its_own_evidence(words: str, original: str, covered: bool, expected: str) -> None:
    citable = CitableEvidence([source.evidence for source in SOURCES], "numeric", NUMBERING)
    assert citable.with_markers(words, original, covered=covered) == expected


@pytest.mark.parametrize(
    ("sentence", "foreign"),
    [
        ("In Project Rephetio, Nine et al. found it [E1].", False),
        ("With Mash Screen, Nine et al. (2017) found it [E3].", False),
        ("Nine et al. found it [E2].", True),
        ("In Project Rephetio, Bo et al. found it [E1].", True),
        ("Smith, Nine et al. found it [E1].", True),
        ("In Smith, Jones, Nine et al. it is found [E1].", True),
    ],
)
def test_a_study_is_named_only_beside_its_own_marker(sentence: str, foreign: bool) -> None:
    found = check_draft(Draft(sentence), NAMED, kind="answer", experiment=Experiment())
    assert any(item.rule == "foreign-citation" for item in found) == foreign


def test_a_number_is_verified_even_if_markup_hides_its_position() -> None:
    sentence = "It had 87% precision for lynx and 81% recall for roe deer."
    record = record_of(shown())
    record |= {"citations": [], "evidence": [], "text": "Recall was 81%."}
    found = {"evidence_id": "E1", "chunk_id": "c", "start": 0, "end": len(sentence), "how": "equal"}
    for said, wrong in (("81%", False), ("87%", False), ("18%", True)):
        trace = {"text": said, "start": 0, "end": 3, "found": found}
        verified = verify({**record, "text": said, "numbers": [trace]}, Holder(sentence))
        assert any("found" in place for place, _ in verified.mismatches) == wrong
