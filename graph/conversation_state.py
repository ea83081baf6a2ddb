"""What a conversation remembers: what was asked and answered, the chunks and numbers that were given. No texts.

All of it but the turn under way is appended to and never changed, so that a prompt that shows it begins alike from turn
to turn, and a local server reuses what it has read.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field
from typing_extensions import TypedDict

from ..roles.chat.prompt_answer_sources import turn_tokens
from .state import QueryRecord, TurnRecord

RECALLED: Final = 15  # chunks that earlier answers cited
# Of a budget that is passed: what is left after dropping. The rest of the prompt then stays the same for some turns.
_LEFT_BY_DROPPING: Final = 0.6

TurnKind = Literal["question", "follow-up", "improve"]


class PastTurn(TypedDict):
    """A turn that is over: as it was asked, as it stood alone, its answer with markers, and what that cites."""

    asked: str
    question: str
    answer: str
    cited: list[dict[str, Any]]


class ConversationInput(TypedDict):
    """What a caller gives: the next question, and whether it may lean on what was said before."""

    asked: Annotated[str, Field(description="The next question, or feedback on the last answer.")]
    turn_kind: Annotated[
        TurnKind, Field(description="A question that stands alone, one that may lean on the last, or feedback.")
    ]


class ConversationOutput(TypedDict):
    """What a caller gets; `result` is the answer's JSON without files and usage."""

    question: str
    result: dict[str, Any]


class ConversationState(TypedDict, total=False):
    """The state of a conversation: what stays, and of the turn under way the question and its result."""

    past: Annotated[list[PastTurn], operator.add]
    evidence_ids: dict[str, str]
    numbering: list[str]
    asked: str
    turn_kind: TurnKind
    question: str
    result: dict[str, Any]
    queries: list[QueryRecord]


def last_answered(past: Sequence[PastTurn]) -> PastTurn | None:
    """The latest turn that was answered, which feedback is about; every answer cites something."""
    return next((turn for turn in reversed(past) if turn["cited"]), None)


def recalled(past: Sequence[PastTurn]) -> list[dict[str, Any]]:
    """The evidence that was cited last, each chunk once, the latest turn first."""
    by_id = {record["id"]: record for turn in past for record in turn["cited"]}  # the latest reading of each
    order = dict.fromkeys(record["id"] for turn in reversed(past) for record in turn["cited"])
    return [by_id[identifier] for identifier in list(order)[:RECALLED]]


def remembered(past: Sequence[PastTurn], tokens: int) -> list[TurnRecord]:
    """The turns that a prompt shows within `tokens`, in order: when they take more, the oldest are dropped.

    More of them than need be, so that the next prompts begin like this one.
    """
    costs = [turn_tokens(turn["question"], turn["answer"]) for turn in past]
    first = spent = 0
    for place, cost in enumerate(costs):
        spent += cost
        if spent <= tokens:
            continue
        while first < place and spent > tokens * _LEFT_BY_DROPPING:
            spent -= costs[first]
            first += 1
    kept = past[first:] if spent <= tokens else []
    return [{"question": turn["question"], "answer": turn["answer"]} for turn in kept]
