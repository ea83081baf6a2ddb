"""The chat judge: a sentence against all its passages, several in a call, the words that decide sliced by numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from bench.cases import JudgedSentence, support_cases
from citeloom.citations.checks.support_findings import support_findings
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.judges import ChatJudge, verdicts_model
from citeloom.roles.chat.model_answers import build_schema
from citeloom.roles.protocols import CitedClaim, DecidingSpan, PassageSentence, Source, Verdict
from citeloom.text.sentences import sentence_spans
from tests.unit.roles.chat.conftest import CHUNK_TEXT

SECOND = "We compared it with embeddings on 20 networks."


def does(what: str, *sentences: int) -> dict[str, Any]:
    return {"does": what, "sentences": list(sentences)}


def said(verdict: str = "supported", *sentences: int, reason: str = "It says so.", **passages: Any) -> Any:
    """The answer for a sentence that cites passage E1, or those given by id."""
    role = {"unsupported": "idle", "contradicted": "contradicts"}.get(verdict.lower().strip("."), "supports")
    shares = passages or {"E1": does(role, *(sentences or ([] if role == "idle" else [1])))}
    return {"reason": reason, **shares, "verdict": verdict}


def claim(sentence: str, *sources: Source, before: str = "") -> CitedClaim:
    return CitedClaim(sentence, sources, before)


def answer(*verdicts: Any) -> dict[str, Any]:
    return {f"P{number}": verdict for number, verdict in enumerate(verdicts, 1)}


@pytest.mark.parametrize("label", ["supported", "partly", "contradicted"])
async def test_a_verdict_has_a_reason_and_the_deciding_words(
    scripted: Any, prompts: PromptLibrary, make_source: Any, label: str
) -> None:
    caller = scripted(answer(said(label.title() + ".", 2, 3, reason="It says\n17 of 20.")))
    pair = claim("Degree holds on 17 of 20 [E1].", make_source())
    ((verdict,),) = await ChatJudge(caller, prompts, max_tokens=900).judge([pair])
    assert (verdict.label, verdict.reason) == (label, "It says 17 of 20.")
    assert CHUNK_TEXT[verdict.start : verdict.end] == f"{SECOND} It was as good on 17 of them."


async def test_an_unsupported_sentence_has_no_deciding_words(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted(answer(said("unsupported", 2, reason="It says nothing of it.", E1=does("supports", 2))))
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge([claim("x [E1].", make_source())])
    assert verdicts == [(Verdict("unsupported", "It says nothing of it."),)]


async def test_sentences_are_judged_together_and_each_passage_is_shown_once(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted(
        answer(
            said(reason="one"), said("partly", 2, reason="three"), said("unsupported", reason="two", E2=does("idle"))
        )
    )
    degree, other = make_source(), make_source("E2", "Mice sleep.")
    pairs = [
        claim(f"Degree {word} [E{n}], [E3] [E4].", source)
        for word, n, source in (("holds", 1, degree), ("fails", 2, other), ("lasts", 1, degree))
    ]
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge(pairs)
    assert [verdict.reason for (verdict,) in verdicts] == ["one", "two", "three"], (
        "in the order asked, whatever was shown"
    )
    shown = caller.text()
    assert shown.count("2: " + SECOND) == 1 and shown.count("1: Mice sleep.") == 1
    assert "P1, cites passage E1: Degree holds,." in shown, "without markers"
    assert "P2, cites passage E1: Degree lasts,." in shown and "P3, cites passage E2: Degree fails,." in shown
    assert "zietz2024probability" not in shown and "Zietz" not in shown
    fields = caller.options[0]["schema"]["properties"]
    assert list(fields) == ["P1", "P2", "P3"] and fields["P1"]["required"] == ["reason", "E1", "verdict"]
    numbers = fields["P1"]["properties"]["E1"]["properties"]["sentences"]
    assert (numbers["type"], numbers["items"]) == ("array", {"type": "integer"})
    assert fields["P1"]["additionalProperties"] is False and "$ref" not in str(caller.options[0]["schema"])


def test_parts_common_to_all_passages_appear_once_in_the_schema() -> None:
    """Fourteen sentences with eight passages each: their shares were half of the request."""
    ids = tuple(tuple(f"E{number + place}" for number in range(1, 9)) for place in range(14))
    schema = build_schema(verdicts_model(ids))
    assert len(json.dumps(schema)) < 14_000
    share = schema["$defs"]["PassageShare"]
    assert share["required"] == ["does", "sentences"] and share["additionalProperties"] is False
    first = schema["properties"]["P14"]
    assert first["required"] == ["reason", *ids[13], "verdict"]
    assert first["properties"]["E14"] == {"$ref": "#/$defs/PassageShare"}


@pytest.mark.parametrize(
    ("broken", "again"),
    [
        ({"P1": said(), "P3": said()}, 1),
        ({"P1": said(), "P2": said("great"), "P3": said()}, 1),
        ({"P1": said(), "P2": said("supported", 99), "P3": said()}, 1),
        ({"P1": said(), "P2": said("supported", 0), "P3": said()}, 1),
        ({"P1": said(), "P2": said(E1=does("supports")), "P3": said()}, 1),
        ({"P1": said(), "P2": said(E1=does("contradicts", 2)), "P3": said()}, 1),
        ({"P1": said(), "P2": said(E2=does("supports", 1)), "P3": said()}, 1),
        ({"P1": said(), "P2": said(E1="supports"), "P3": said()}, 1),
        ({"P1": said(), "P2": {**said(), "E1": {"does": "Supports.", "sentences": "1-2, 4"}}, "P3": said()}, 0),
        ({"P1": said(), "P2": said(**{"passage e1": does("supports", 1, 99)}), "P3": said()}, 0),
        ({"P1": said(), "P2": "supported", "P3": said(), "P4": said(), "P9": said()}, 1),
        ({"p1": said(), "P2 ": said(), " p3": said()}, 0),
        ({"P7": said(), "P8": said()}, 3),
        ("All of them are supported.", 3),
        ("", 3),
        ('{"P1": {"reason": "cut off", "verdict": "supp', 3),
    ],
)
async def test_sentences_missing_from_an_answer_are_asked_again_separately(
    scripted: Any, prompts: PromptLibrary, make_source: Any, broken: Any, again: int
) -> None:
    caller = scripted(broken, *[answer(said("partly"))] * again)
    pairs = [claim(f"Sentence {number} [E1].", make_source()) for number in (1, 2, 3)]
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge(pairs)
    assert len(caller.asked) == 1 + again
    assert [verdict.label for (verdict,) in verdicts].count("partly") == again
    assert "unjudged" not in [verdict.label for (verdict,) in verdicts]
    if again == 1:
        assert (
            verdicts[1][0].label == "partly" and "Sentence 2." in caller.text() and "Sentence 1." not in caller.text()
        )
    assert caller.rejected == (["call-1"] if again == 3 else [])


async def test_a_single_sentence_may_be_answered_without_its_id(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted(said("contradicted", 4))
    ((verdict,),) = await ChatJudge(caller, prompts, max_tokens=900).judge([claim("x [E1].", make_source())])
    assert CHUNK_TEXT[verdict.start : verdict.end] == "On a separate network it failed."


async def test_an_unreadable_judge_answer_is_not_a_verdict(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    caller = scripted("no", answer(said("on-topic")), "yes", answer(said("supported", 77)), AIMessage(""))
    pairs = [claim(f"Sentence {number} [E1].", make_source()) for number in (1, 2)]
    verdicts = await ChatJudge(caller, prompts, max_tokens=900).judge(pairs)
    assert [verdict.label for (verdict,) in verdicts] == ["unjudged", "unjudged"]
    assert len(caller.rejected) == 5


YES, NO, OTHER = does("supports", 1), does("idle"), does("contradicts", 1)
AGAINST = ("contradicted", "contradicts")
TWO = "Degree holds [E1] and mice sleep [E2]."


@pytest.mark.parametrize(
    ("verdict", "first", "second", "expected"),
    [
        ("supported", YES, YES, [("supported", ""), ("supported", "")]),
        ("supported", YES, NO, [("supported", ""), ("supported", "idle")]),
        ("supported", YES, does("idle", 1), [("supported", ""), ("supported", "")]),
        ("supported", YES, does("supports"), [("supported", ""), ("supported", "")]),
        ("supported", YES, None, [("supported", ""), ("supported", "")]),
        ("supported", YES, OTHER, [("supported", ""), AGAINST]),
        ("partly", YES, NO, [("partly", ""), ("partly", "idle")]),
        ("partly", NO, YES, [("partly", "idle"), ("partly", "")]),
        ("unsupported", NO, NO, [("unsupported", "idle"), ("unsupported", "idle")]),
        ("unsupported", YES, NO, [("unsupported", ""), ("unsupported", "idle")]),
        ("unsupported", OTHER, NO, [AGAINST, ("unsupported", "idle")]),
        ("contradicted", OTHER, NO, [AGAINST, ("contradicted", "idle")]),
        ("contradicted", YES, does("contradicts"), [("contradicted", ""), AGAINST]),
        ("contradicted", YES, YES, [("contradicted", ""), ("contradicted", "")]),
    ],
)
async def test_each_passage_contributes_to_the_overall_verdict(
    scripted: Any, prompts: PromptLibrary, make_source: Any, verdict: str, first: Any, second: Any, expected: Any
) -> None:
    caller = scripted(answer({"reason": "x", "E1": first, "E2": second, "verdict": verdict}))
    claims = [claim(TWO, make_source(), make_source("E2", "Mice sleep."))]
    (verdicts,) = await ChatJudge(caller, prompts, max_tokens=900).judge(claims)
    assert [(item.label, item.adds) for item in verdicts] == expected
    for item, source in zip(verdicts, claims[0].sources, strict=True):
        assert item.start is None or source.text[item.start : item.end].strip()


async def test_a_sentence_is_shown_with_its_passages_title_year_and_previous_sentence(
    scripted: Any, prompts: PromptLibrary, make_source: Any
) -> None:
    both = said(E1=does("supports", 1), E2=does("supports", 1))
    caller = scripted(answer(both, said(E1=does("supports", 1))))
    sources = (make_source(), make_source("E2", "Mice sleep."))
    claims = [claim(TWO, *sources, before="Of degree [E1]."), claim("That lasts [E1].", sources[0], before=TWO)]
    await ChatJudge(caller, prompts, max_tokens=900).judge(claims)
    shown = caller.text()
    assert "Before P1: Of degree.\nP1, cites passages E1, E2: Degree holds [E1] and mice sleep [E2]." in shown
    assert "Before P2: P1\nP2, cites passage E1: That lasts." in shown, "what is shown already is not repeated"
    assert "Paper: The probability of edge existence (2024)" in shown and "Zietz" not in shown
    assert "Paper: that of passage E1" in shown, "a title is shown once"


@pytest.mark.parametrize(
    ("reason", "marked"),
    [
        ("E1 and passage E2 say it; C1 does not.", "[E1] and [E2] say it; C1 does not."),
        ("Passage E1: the number is missing.", "[E1]: the number is missing."),
        ('[E2] says "less", P1 drops it.', '[E2] says "less", the sentence drops it.'),
        ("E2 has 'sleep at P3'; P1 drops P3.", "[E2] has 'sleep at P3'; the sentence drops P3."),
        ("A single study, hepatitis B, of strain HE12.", "A single study, hepatitis B, of strain HE12."),
    ],
)
async def test_a_reason_refers_to_passages_as_the_text_does(
    scripted: Any, prompts: PromptLibrary, make_source: Any, reason: str, marked: str
) -> None:
    caller = scripted(answer({"reason": reason, "E1": YES, "E2": NO, "verdict": "partly"}))
    (verdicts,) = await ChatJudge(caller, prompts, max_tokens=900).judge(
        [claim(TWO, make_source(), make_source("E2", "Mice sleep at P3."))]
    )
    assert {verdict.reason for verdict in verdicts} == {marked}


async def test_deciding_words_may_be_in_several_chunks(scripted: Any, prompts: PromptLibrary, make_source: Any) -> None:
    """What the writer was shown is numbered, however much of the chunk it is, and each sentence keeps its own place."""
    source = make_source()
    start = CHUNK_TEXT.index(SECOND)
    passage = (
        PassageSentence("other:00006", 10, 30, "Something ahead of it.", carries=False),
        PassageSentence(source.evidence.chunk_id, start, start + len(SECOND), "We compared it."),
        PassageSentence(source.evidence.chunk_id, start + len(SECOND) + 1, start + len(SECOND) + 30, "It was as good."),
        PassageSentence("other:00008", 0, 20, "And so it went on."),
    )
    caller = scripted(answer(said("supported", 1, 2, 3, 4)))
    ((verdict,),) = await ChatJudge(caller, prompts, max_tokens=900).judge(
        [claim("x [E1].", replace(source, passage=passage))]
    )
    assert "2: We compared it.\n3: It was as good." in caller.text() and "Degree alone" not in caller.text()
    assert verdict.spans == (
        DecidingSpan("other:00006", 10, 30),
        DecidingSpan(source.evidence.chunk_id, start, start + len(SECOND) + 30),
        DecidingSpan("other:00008", 0, 20),
    )
    assert (verdict.start, verdict.end) == (start, start + len(SECOND) + 30)


@pytest.mark.parametrize("case", support_cases(), ids=lambda case: case["id"])
async def test_labelled_sentences_are_shown_complete_and_their_labels_are_returned(
    scripted: Any, make_source: Any, case: dict[str, Any]
) -> None:
    ids = [passage["id"] for passage in case["passages"]]
    roles = {
        name: does("contradicts", 1)
        if name in case["contradicting"]
        else does("idle")
        if name in case["idle"]
        else does("supports", 1)
        for name in ids
    }
    caller = scripted(answer({"reason": case["why"], **roles, "verdict": case["label"]}))
    sources = [
        replace(made, paper=replace(made.paper, title=passage["title"], year=passage["year"]))
        for passage in case["passages"]
        for made in [make_source(passage["id"], passage["text"])]
    ]
    claims = [claim(case["sentence"], *sources, before=case["before"])]
    (verdicts,) = await ChatJudge(caller, PromptLibrary(), max_tokens=900).judge(claims)
    shown = " ".join(caller.text().split())
    for passage in case["passages"]:
        assert f"{passage['title']} ({passage['year']})" in shown
        assert all(f": {words}" in shown for words in sentences_of(passage["text"]))
    assert case["before"] in shown
    judged = JudgedSentence(
        "contradicted" if case["contradicting"] else verdicts[0].label,
        frozenset(name for name, item in zip(ids, verdicts, strict=True) if item.adds == "idle"),
        frozenset(name for name, item in zip(ids, verdicts, strict=True) if item.adds == "contradicts"),
    )
    assert judged == JudgedSentence(case["label"], frozenset(case["idle"]), frozenset(case["contradicting"]))
    assert all(item.label == case["label"] for item in verdicts), "the label is that of the whole"
    kept = {(case["sentence"], name): item for name, item in zip(ids, verdicts, strict=True)}
    rules = {finding.rule for finding in support_findings(case["sentence"], kept)}
    wanted = {"unsupported": {"unsupported"}, "contradicted": {"contradicted"}, "partly": {"partly-supported"}}
    idle = {"idle-marker"} if case["idle"] and case["label"] != "unsupported" else set()
    assert rules == wanted.get(case["label"], set()) | idle


def sentences_of(text: str) -> list[str]:
    return [text[start:end] for start, end in sentence_spans(text)]


@pytest.mark.parametrize(("max_tokens", "calls"), [(4000, 3), (300, 7), (90, 13)])
async def test_a_call_contains_no_more_sentences_than_its_answer_can_hold(
    scripted: Any, prompts: PromptLibrary, make_source: Any, max_tokens: int, calls: int
) -> None:
    caller = scripted(*[answer(*[said()] * 6)] * calls)
    pairs = [claim(f"Sentence {number} [E1].", make_source()) for number in range(13)]
    verdicts = await ChatJudge(caller, prompts, max_tokens=max_tokens).judge(pairs)
    assert len(caller.asked) == calls and {verdict.label for (verdict,) in verdicts} == {"supported"}


async def test_long_passages_are_judged_in_more_calls(scripted: Any, prompts: PromptLibrary, make_source: Any) -> None:
    texts = [f"Source {number} says {'much ' * 60}of it. " * 20 for number in range(16)]
    others = [
        [said(**{f"E{number}": does("supports", 1)}) for number in numbers] for numbers in (range(1, 9), range(9, 17))
    ]
    caller = scripted(*(answer(*of) for of in others))
    pairs = [claim("x", make_source(f"E{number}", text)) for number, text in enumerate(texts, 1)]
    await ChatJudge(caller, prompts, max_tokens=4000).judge(pairs)
    assert [len(options["schema"]["properties"]) for options in caller.options] == [8, 8]
    assert "Source 0 says" in caller.text(0) and len(caller.text(0)) < 45_000, "of each no more than bears on it"


async def test_without_pairs_no_call_is_made(scripted: Any, prompts: PromptLibrary) -> None:
    assert await ChatJudge(scripted(), prompts, max_tokens=900).judge([]) == []


@pytest.mark.parametrize(("opens", "count", "does"), [(True, 3, "weighs"), (True, 2, "cites"), (False, 3, "cites")])
async def test_a_paragraphs_first_sentence_that_cites_several_passages_summarises_them(
    scripted: Any, prompts: PromptLibrary, make_source: Any, opens: bool, count: int, does: str
) -> None:
    caller = scripted(*["no answer"] * 4)
    sources = [make_source(f"E{number}") for number in range(1, count + 1)]
    opening = CitedClaim("Degree mattered on graphs of three kinds [E1] [E2] [E3].", tuple(sources), may_sum_up=opens)
    await ChatJudge(caller, prompts, max_tokens=900).judge([opening])
    assert f"P1, {does} passages" in str(caller.asked[0][-1].content)
