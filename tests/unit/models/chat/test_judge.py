"""The chat judge: several sentences in a call, the words that decide sliced from the chunk, each held to its own."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage

from citeloom.models.chat import ChatJudge
from citeloom.models.roles import CitedPair, Verdict
from citeloom.prompts import PromptLibrary
from tests.unit.models.chat.conftest import CHUNK_TEXT

SECOND = "We compared it with embeddings on 20 networks."


def said(verdict: str = "supported", first: int = 1, last: int | None = None, reason: str = "It says so.") -> Any:
    last = first if last is None else last
    return {"reason": reason, "verdict": verdict, "first_sentence": first, "last_sentence": last}


def answer(*verdicts: Any) -> dict[str, Any]:
    return {f"P{number}": verdict for number, verdict in enumerate(verdicts, 1)}


@pytest.mark.parametrize("label", ["supported", "partly", "contradicted"])
async def test_a_verdict_has_its_reason_and_the_words_that_decide_it(
    scripted: Any, prompts: PromptLibrary, make_source: Any, label: str
) -> None:
    caller = scripted(answer(said(label.title() + ".", 2, 3, "It says\n17 of 20.")))
    pair = CitedPair("Degree holds on 17 of 20 [E1].", make_source())
    (verdict,) = await ChatJudge(caller, prompts, max_tokens=900).judge([pair])
    assert (verdict.label, verdict.reason) == (label, "It says 17 of 20.")
    assert CHUNK_TEXT[verdict.start : verdict.end] == f"{SECOND} It was as good on 17 of them."


async def test_what_is_not_supported_rests_on_no_words(scripted: Any, prompts: PromptLibrary, make_source: Any) -> None:
    caller = scripted(answer(said("unsupported", 2, reason="It says nothing of it.")))
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge([CitedPair("x [E1].", make_source())])
    assert verdicts == [Verdict("unsupported", "It says nothing of it.")]


async def test_sentences_are_judged_together_and_a_passage_is_shown_once(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted(
        answer(said(reason="one"), said("partly", 2, reason="three"), said("unsupported", 0, reason="two"))
    )
    degree, other = make_source(), make_source("E2", "Mice sleep.")
    pairs = [
        CitedPair(f"Degree {word} [E{n}], [E3] [E4].", source)
        for word, n, source in (("holds", 1, degree), ("fails", 2, other), ("lasts", 1, degree))
    ]
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge(pairs)
    assert [verdict.reason for verdict in verdicts] == ["one", "two", "three"], "in the order asked, whatever was shown"
    shown = caller.text()
    assert shown.count("2: " + SECOND) == 1 and shown.count("1: Mice sleep.") == 1
    assert "P1, cites passage A: Degree holds,." in shown, "without markers"
    assert "P2, cites passage A: Degree lasts,." in shown and "P3, cites passage B: Degree fails,." in shown
    assert "zietz2024probability" not in shown and "Zietz" not in shown
    fields = caller.options[0]["schema"]["properties"]
    assert list(fields) == ["P1", "P2", "P3"] and fields["P1"]["required"] == list(said())
    assert fields["P1"]["additionalProperties"] is False and "$ref" not in str(caller.options[0]["schema"])


@pytest.mark.parametrize(
    ("broken", "again"),
    [
        ({"P1": said(), "P3": said()}, 1),
        ({"P1": said(), "P2": said("great"), "P3": said()}, 1),
        ({"P1": said(), "P2": said("supported", 99), "P3": said()}, 1),
        ({"P1": said(), "P2": said("supported", 0), "P3": said()}, 1),
        ({"P1": said(), "P2": "supported", "P3": said(), "P4": said(), "P9": said()}, 1),
        ({"p1": said(), "P2 ": said(), " p3": said()}, 0),
        ({"P7": said(), "P8": said()}, 3),
        ("All of them are supported.", 3),
        ("", 3),
        ('{"P1": {"reason": "cut off", "verdict": "supp', 3),
    ],
)
async def test_what_an_answer_leaves_out_is_asked_again_by_itself(
    scripted: Any, prompts: PromptLibrary, make_source: Any, broken: Any, again: int
) -> None:
    caller = scripted(broken, *[answer(said("partly"))] * again)
    pairs = [CitedPair(f"Sentence {number} [E1].", make_source()) for number in (1, 2, 3)]
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge(pairs)
    assert len(caller.asked) == 1 + again
    assert [verdict.label for verdict in verdicts].count("partly") == again
    assert "unjudged" not in [verdict.label for verdict in verdicts]
    if again == 1:
        assert verdicts[1].label == "partly" and "Sentence 2." in caller.text() and "Sentence 1." not in caller.text()
    assert caller.rejected == (["call-1"] if again == 3 else [])


async def test_a_sentence_by_itself_may_be_answered_without_its_id(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted(said("contradicted", 4))
    (verdict,) = await ChatJudge(caller, prompts, max_tokens=900).judge([CitedPair("x [E1].", make_source())])
    assert CHUNK_TEXT[verdict.start : verdict.end] == "On a separate network it failed."


async def test_a_judge_that_cannot_be_understood_has_not_judged(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted("no", answer(said("on-topic")), "yes", answer(said("supported", 77)), AIMessage(""))
    pairs = [CitedPair(f"Sentence {number} [E1].", make_source()) for number in (1, 2)]
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge(pairs)
    assert [verdict.label for verdict in verdicts] == ["unjudged", "unjudged"]
    assert len(caller.rejected) == 5


@pytest.mark.parametrize(("max_tokens", "calls"), [(4000, 3), (300, 7), (90, 13)])
async def test_a_call_holds_no_more_than_its_answer_may(
    scripted: Any, prompts: PromptLibrary, make_source: Any, max_tokens: int, calls: int
) -> None:
    caller = scripted(*[answer(*[said()] * 6)] * calls)
    pairs = [CitedPair(f"Sentence {number} [E1].", make_source()) for number in range(13)]
    verdicts = await ChatJudge(caller, prompts, max_tokens=max_tokens).judge(pairs)
    assert len(caller.asked) == calls and {verdict.label for verdict in verdicts} == {"supported"}


async def test_long_passages_are_judged_in_more_calls(scripted: Any, prompts: PromptLibrary, make_source: Any) -> None:
    texts = [f"Source {number} says {'much ' * 60}of it. " * 20 for number in range(4)]
    caller = scripted(*[answer(*[said()] * 2)] * 2)
    pairs = [CitedPair("x", make_source(f"E{number}", text)) for number, text in enumerate(texts, 1)]
    await ChatJudge(caller, prompts, max_tokens=4000).judge(pairs)
    assert [len(options["schema"]["properties"]) for options in caller.options] == [2, 2]
    assert "Source 0 says" in caller.text(0) and len(caller.text(0)) < 14_000, "of each no more than bears on it"


async def test_no_pairs_take_no_call(scripted: Any, prompts: PromptLibrary) -> None:
    assert await ChatJudge(scripted(), prompts, max_tokens=900).judge([]) == []
