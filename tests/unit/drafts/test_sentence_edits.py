"""Repair by sentence: what is sent, which edits are accepted, and that good sentences stay unchanged."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.citations.checks.findings import Finding, FindingRecord
from citeloom.citations.markers import normalise_markers
from citeloom.drafts.sentence_edits import (
    Attempt,
    apply_edits,
    failing_sentences,
    keep_improvements,
    make_edits,
    map_findings,
    without_markers_of,
)
from tests.support.citation_samples import make_source

SOURCES = [make_source("E1"), make_source("E2", "lee2022ten")]
TEXT = (
    "## On degree\n\nGood one [E1]. Bad one is here [E2]. Good two [E1].\n\n"
    "- Bad item stands here [E2].\n- Good item [E1]."
)
BAD = ("Bad one is here [E2].", "Bad item stands here [E2].")


def found(text: str, rule: Any = "unsupported") -> list[FindingRecord]:
    """A finding for each place of the word "Bad"."""
    places = [place for place in range(len(text)) if text.startswith("Bad", place)]
    return [Finding(rule, "It is bad.", (place, place + 3), ("E2",)).as_dict() for place in places]


def attempt(text: str = TEXT, **more: Any) -> Attempt:
    draft: Any = {"text": text, "truncated": False, "notes": []}
    return {"draft": draft, "findings": found(text), **more}


def edits(*answers: str | None, text: str = TEXT, own: str = "") -> Any:
    return make_edits(text, failing_sentences(attempt(text), SOURCES), answers, own)


def test_only_failing_sentences_are_sent_with_neighbours_and_evidence() -> None:
    first, second = (item.shown for item in failing_sentences(attempt(), SOURCES))
    assert (first.text, second.text) == BAD
    assert (first.before, first.after) == ("Good one [E1].", "Good two [E1].")
    assert (second.before, second.after) == ("", "Good item [E1].")
    assert [source.evidence.id for source in first.sources] == ["E2"]


def unnamed(text: str) -> Attempt:
    """An attempt whose findings name no source."""
    plain = attempt(text)
    return {**plain, "findings": [{**item, "ids": []} for item in plain["findings"]]}


def test_evidence_that_contains_the_number_is_sent_even_if_it_is_not_cited() -> None:
    text = "It fell to 0.7 [E1]."
    finding = Finding("number-not-found", "The number 0.7 is that of E2.", (11, 14), ("E2",))
    (only,) = failing_sentences({**attempt(text), "findings": [finding.as_dict()]}, SOURCES)
    assert [source.evidence.id for source in only.shown.sources] == ["E1", "E2"]


LISTS = (
    "The methods differ in three ways [E2]:\n\n- Bad first item.\n- Good item [E1]. It goes on.\n- Bad last item [E1].",
    "The methods differ in three ways [E2]:\n1. Bad first item.\n2. **Good item** [E1].\n3. Bad last item [E1].",
    "They differ [E1]. They do in three ways: [E2]\n\n* Bad first item.\n\n* Good item.\n\n* Bad last item [E1].",
)


@pytest.mark.parametrize("text", LISTS)
def test_a_list_item_is_sent_with_its_introductory_sentence_and_its_sources(text: str) -> None:
    first, last = (item.shown for item in failing_sentences(unnamed(normalise_markers(text)), SOURCES))
    assert [source.evidence.id for source in first.sources] == ["E2"]
    assert [source.evidence.id for source in last.sources] == ["E1", "E2"]
    assert "in three ways" in first.before and "in three ways" in last.before


@pytest.mark.parametrize(
    "text",
    [
        "They differ in three ways [E2]:\n\n- Good item [E1].\n\nBad one is here [E1].",
        "They differ in three ways [E2]: so it is.\n\n- Bad one is here [E1].",
        "They differ in three ways [E2]:\n\n## Next\n\n- Bad one is here [E1].",
        "They differ in three ways [E2].\n\n- Bad one is here [E1].",
    ],
)
def test_an_item_without_an_introduction_is_sent_with_its_own_sources(text: str) -> None:
    (only,) = (item.shown for item in failing_sentences(unnamed(text), SOURCES))
    assert [source.evidence.id for source in only.sources] == ["E1"] and "three ways" not in only.before


def test_replacing_and_removing_sentences_changes_no_other() -> None:
    assert apply_edits(TEXT, edits("Better one [E1]", "")) == (
        "## On degree\n\nGood one [E1]. Better one [E1]. Good two [E1].\n\n- Good item [E1]."
    )


@pytest.mark.parametrize(
    "answer",
    [
        None,
        "...",
        '"An open quotation [E2].',
        "An “open one [E2].",
        "Runs `on [E2]",
        "It is bad.\n\n## New heading\n\nx",
    ],
)
def test_an_edit_that_would_change_a_neighbour_is_rejected(answer: str | None) -> None:
    put = edits(answer, None)
    text = apply_edits(TEXT, put)
    for good in ("Good one [E1].", "Good two [E1].", "- Good item [E1]."):
        assert good in text
    assert text.count("##") <= 1 + ("##" in (answer or "")) and "\n\n## New" not in text


def test_an_edit_that_only_loses_its_marker_is_rejected() -> None:
    text = "Every wearer slept well [E2] Bad."
    assert edits("Every wearer slept well.", text=text) == []
    (edit,) = edits("Every wearer slept well.", text=text, own="Every wearer slept well in our experiment.")
    assert edit["text"] == "Every wearer slept well."


def test_each_sentence_keeps_its_best_version() -> None:
    before = attempt(edits=edits("Bad still [E2].", "Better item [E1]."))
    settled, kept = keep_improvements(before, found)
    assert "Bad one is here" in settled["draft"]["text"] and "- Better item [E1]." in settled["draft"]["text"]
    assert (kept, len(settled["findings"])) == (1, 1)


def test_an_edit_that_makes_its_neighbour_worse_is_undone() -> None:
    def leaning(text: str) -> list[FindingRecord]:
        place = text.find("Good two")
        lost = [] if "Bad one" in text else [Finding("number-not-found", "x", (place, place + 4)).as_dict()]
        return [*found(text), *lost]

    settled, _ = keep_improvements(attempt(edits=edits("", "")), leaning)
    assert "Bad one is here" in settled["draft"]["text"] and "Bad item" not in settled["draft"]["text"]


def test_removals_stop_before_the_text_is_empty() -> None:
    def empty(text: str) -> list[FindingRecord]:
        return found(text) if "Bad" in text else [Finding("empty", "x").as_dict()]

    text = "Bad one is here [E2]. Bad two [E2]."
    assert keep_improvements(attempt(text, edits=edits("", "", text=text)), empty)[0]["draft"]["text"] == text


def test_removing_a_marker_removes_no_other_character() -> None:
    assert without_markers_of("It holds [E1][E2], and lasts [E2].", ["E2"]) == "It holds [E1], and lasts."
    assert without_markers_of("It holds  twice [E1].", []) == "It holds  twice [E1]."


def test_the_judges_findings_are_mapped_to_the_original_draft() -> None:
    draft = "It holds (Smith, 2020) [E1]. It lasts [E2]."
    judged = "It holds [citation needed][E1]. It lasts [E2]."
    there = judged.index("It lasts")
    (record,) = map_findings(draft, judged, [Finding("unsupported", "x", (there, len(judged)))])
    assert draft[record["start"] : record["end"]] == "It lasts [E2]."  # type: ignore[misc]


def test_only_edits_that_change_another_sentence_are_left_out() -> None:
    text = "Bad one is here [E2]. Good one [E1]. Bad two is here [E2].\n\nBad three is here [E2]. Good two [E1]."

    kept = edits("Better one [E2].", '"An open quotation [E2].', "Better three [E2].", text=text)
    mended = apply_edits(text, kept)

    assert "Better one [E2]. Good one [E1]. Bad two is here [E2]." in mended
    assert mended.endswith("Better three [E2]. Good two [E1].")
