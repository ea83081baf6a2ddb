"""What reaches the judge: a finding's window, its heading, and words of the sentence found elsewhere in the window."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents import Category, Chunk, Evidence, EvidenceSpan, Paper
from citeloom.drafts.written_draft import source_of
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.judged_passages import shown_sentences
from citeloom.roles.chat.judges import ChatJudge
from citeloom.roles.protocols import CitedClaim, Source
from citeloom.text.wordings import telling_words, weighs_sources

CASES = json.loads((Path(__file__).parents[2] / "cases" / "window_cases.json").read_text())["cases"]


def chunk_of(text: str, index: int = 0, heading: str = "Results", start: int = 0) -> Chunk:
    whole = start + len(text)
    return Chunk(
        f"p:{index:05d}", "p", index, text, heading, "", Category.EVALUATION, 2, None, start, whole, len(text) // 4
    )


def source_in(paper: Paper, name: str, chunk: Chunk, spans: list[str], *near: Chunk) -> Source:
    """A source as a run makes it: evidence on these words, in this chunk with others near it."""
    (first, *more) = [EvidenceSpan.of(chunk, at := chunk.text.index(words), at + len(words)) for words in spans]
    scores = {"vector_score": 0.7, "llm_score": 0.9, "combined_score": 0.8}
    item = Evidence.of(
        chunk, id=name, summary="", start=first.start, end=first.end, source_query="", more=tuple(more), **scores
    )
    return source_of(item, paper, chunk, {each.id: each for each in (chunk, *near)})


def claim_of(case: dict[str, Any]) -> CitedClaim:
    sources = [
        source_in(
            Paper(f"key{given['id']}", given["title"], year=given["year"]),
            given["id"],
            chunk_of(given["window"], heading=given["heading"]),
            given["spans"],
        )
        for given in case["passages"]
    ]
    return CitedClaim(case["sentence"], tuple(sources))


async def prompted(claim: CitedClaim, scripted: Any) -> str:
    caller = scripted(*["no answer"] * 4)
    await ChatJudge(caller, PromptLibrary(), max_tokens=900).judge([claim])
    return str(caller.asked[0][-1].content)


def lost(case: dict[str, Any], shown: str) -> set[str]:
    """The telling words that a sentence shares with its passages, heading or title, and that are not shown."""
    told = " ".join(f"{given['title']} {given['heading']} {given['window']}" for given in case["passages"])
    return (telling_words(case["sentence"]).keys() & telling_words(told).keys()) - telling_words(shown).keys()


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['kind']} {case['id']}")
async def test_the_judge_sees_the_deciding_words_of_a_labelled_case(case: dict[str, Any], scripted: Any) -> None:
    asked = await prompted(claim_of(case), scripted)
    passages, sentences = asked.split("The sentences to be judged", 1)
    assert not lost(case, passages)
    if case["kind"] == "dropped":  # the words that bound the result
        assert all(
            telling_words(given["window"]).keys() <= telling_words(passages).keys() for given in case["passages"]
        )
    assert (" weighs passages " in sentences) is (case["kind"] == "weighing")


def test_a_sentence_about_one_source_is_not_treated_as_weighing_sources() -> None:
    assert not [case["id"] for case in CASES if case["kind"] != "weighing" and weighs_sources(case["sentence"])]


FAR = "The cohort came from Ghana and was aged 12 to 15. "
FILLER = "".join(f"Item {number} was coded by hand and checked again later. " for number in range(12))
WORDS = "Scores rose by four points."


def test_missing_words_are_found_farther_away_in_the_window_with_their_span() -> None:
    chunk = chunk_of(FAR + FILLER + WORDS)
    source = source_in(Paper("p", "School meals"), "E1", chunk, [WORDS])
    plain = shown_sentences(source, ["Scores rose by four points [E1]."])
    assert FAR.strip() not in [sentence.text for sentence in plain]
    found = shown_sentences(source, ["Among pupils in Ghana aged 12 to 15, scores rose by four points."])
    (far,) = [sentence for sentence in found if sentence not in plain]
    assert chunk.text[far.start : far.end] == far.text == FAR.strip() and not far.carries


def test_the_window_extends_only_into_the_next_chunk_of_the_same_section() -> None:
    first = replace(chunk_of(WORDS, 4), start=900, end=900 + len(WORDS))
    after = chunk_of("They were measured in Ghana.", 5, start=901 + len(WORDS))
    other = replace(after, section="Discussion")
    paper = Paper("p", "School meals")
    assert [item.chunk_id for item in source_in(paper, "E1", first, [WORDS], after).window] == ["p:00004", "p:00005"]
    assert [item.chunk_id for item in source_in(paper, "E1", first, [WORDS], other).window] == ["p:00004"]
    (beyond,) = source_in(paper, "E1", first, [WORDS], after).beyond
    assert "Ghana" in beyond.text


def test_a_detail_of_the_study_is_found_at_the_start_of_its_paper() -> None:
    opening = replace(chunk_of(FAR + FILLER), section="Abstract")
    chunk = replace(chunk_of(WORDS, 9), start=5_000, end=5_000 + len(WORDS))
    source = source_in(Paper("p", "School meals"), "E1", chunk, [WORDS], opening)
    shown = shown_sentences(source, ["Among pupils in Ghana aged 12 to 15, scores rose by four points."])
    assert [sentence.text for sentence in shown if sentence.carries] == [WORDS]
    assert FAR.strip() in [sentence.text for sentence in shown]
