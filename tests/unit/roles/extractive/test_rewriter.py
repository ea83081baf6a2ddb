"""Follow-up questions are completed: the labelled cases, and questions that must stay unchanged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from citeloom.roles.extractive.follow_ups import (
    complete_question,
    condense_question,
    is_remark,
    rewrite_question,
)
from citeloom.roles.protocols import Turn
from citeloom.text.wordings import subject_words

LABELLED = Path(__file__).parent.parent
CASES: list[dict[str, Any]] = [
    case
    for name in ("follow_up_cases.json", "follow_up_held_out.json")
    for case in json.loads((LABELLED / name).read_text(encoding="utf-8"))
]
# Cases that the rules are known to miss.
KNOWN_TO_FAIL = {"Do their words change as well?"}


def rewritten(case: dict[str, Any]) -> str:
    earlier: list[Turn] = []
    for question in case["after"]:
        earlier.append(Turn(question=condense_question(question, earlier), answer="", asked=question))
    return condense_question(case["asked"], earlier)


def right(case: dict[str, Any]) -> bool:
    """Whether what was labelled was carried over, and nothing was left or changed that should not be."""
    text = rewritten(case)
    if case.get("alone"):
        return text == case["asked"]
    has = all(words.lower() in text.lower() for words in case["has"])
    return has and not any(words.lower() in text.lower() for words in case["lacks"])


@pytest.mark.parametrize("case", CASES, ids=[case["asked"] for case in CASES])
def test_a_labelled_follow_up_is_completed(case: dict[str, Any]) -> None:
    assert right(case) is (case["asked"] not in KNOWN_TO_FAIL), rewritten(case)


@pytest.mark.parametrize(
    ("asked", "stands"),
    [
        ("in 2020?", "How is the prior of an edge estimated in 2020?"),
        ("By how much?", "How is the prior of an edge estimated, and by how much?"),
        ("How accurate is the method?", "How is the prior of an edge estimated, and how accurate is the method?"),
        ("What about its limitations?", "What about the limitations of the prior of an edge?"),
        ("Do such priors need data?", "Do the prior of an edge need data?"),
        ("Do such networks need data?", "How is the prior of an edge estimated? Do such networks need data?"),
        (
            "Does that hold for weighted graphs?",
            "How is the prior of an edge estimated? Does that hold for weighted graphs?",
        ),
    ],
)
def test_a_completed_question_reads_naturally(asked: str, stands: str) -> None:
    assert complete_question(asked, "How is the prior of an edge estimated?") == stands


@pytest.mark.parametrize(
    ("feedback", "subject"),
    [
        ("say more about node degree", "node degree"),
        ("add more details about the mathematical foundations", "mathematical foundations"),
        ("use the work of Himmelstein", "Himmelstein"),
        ("what about mice?", "mice"),
        ("shorter, please", ""),
        ("too long", ""),
        ("cite newer papers", ""),
    ],
)
def test_feedback_on_the_form_is_separated_from_its_subject(feedback: str, subject: str) -> None:
    assert subject_words(feedback) == subject


def test_pronouns_keep_their_subject_and_questions_do_not_grow() -> None:
    earlier: list[Turn] = []
    read = []
    for asked in (
        "How do graph neural networks work?",
        "What about their limits?",
        "and with little data?",
        "Who invented them?",
        "Does that matter?",
        "How are they trained?",
        "in biology?",
    ):
        read.append(condense_question(asked, earlier))
        earlier.append(Turn(question=read[-1], answer="", asked=asked))
    assert read[1:] == [
        "What about graph neural networks' limits?",
        "What about graph neural networks' limits with little data?",
        "Who invented graph neural networks?",
        "Who invented graph neural networks? Does that matter?",
        "How are graph neural networks trained?",
        "How are graph neural networks trained in biology?",
    ]


@pytest.mark.parametrize(
    "said", ["Thank you!", "Thanks, that was very helpful.", "Ok", "Hello", "Great, thanks a lot!", "Got it", "no"]
)
def test_a_remark_asks_nothing_and_later_questions_ignore_it(said: str) -> None:
    asked = Turn(question="How are priors of edges estimated?", answer="")
    assert is_remark(said) and condense_question(said, [asked]) == said
    assert condense_question("And in 2020?", [asked, Turn(question=said, answer="")]) == condense_question(
        "And in 2020?", [asked]
    )


@pytest.mark.parametrize(
    "said", ["Ok, why?", "And in 2020?", "Is it good?", "Great, and mice", "Explain", "Hi, which genes"]
)
def test_a_request_is_not_a_remark(said: str) -> None:
    assert not is_remark(said)


async def test_a_first_question_and_one_in_another_script_are_left_alone() -> None:
    assert await rewrite_question("What about its limits?", []) == "What about its limits?"
    assert (
        await rewrite_question("它有什么限制？", [Turn(question="What is a knowledge graph?", answer="")])
        == "它有什么限制？"
    )


@pytest.mark.parametrize(
    ("last", "asked", "whole"),
    [
        ("How do GNNs pass messages?", "What about their limits?", "What about GNNs' limits?"),
        ("How do cells divide unevenly?", "What of their size?", "How do cells divide unevenly? What of their size?"),
        ("What limits do GNNs that pass messages have?", "How old are they?", "How old are GNNs that pass messages?"),
    ],
)
def test_a_subject_ends_before_its_verb_and_is_not_guessed(last: str, asked: str, whole: str) -> None:
    assert complete_question(asked, last) == whole
