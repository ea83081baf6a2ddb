"""The state of a conversation, also as the messages of a chat: questions and answers, ids and numbers assigned so far.

Everything except the current turn is append-only, so that a prompt showing it keeps the same prefix from turn to turn
and a local server can reuse its cache.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal, NotRequired

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage
from langgraph.graph.message import add_messages
from pydantic import Field
from typing_extensions import TypedDict

from ..citations.html_escaping import inert
from ..citations.markers import MARKER, normalise_markers
from ..citations.references import numbered_list
from ..drafts.written_draft import QueryRecord
from ..roles.chat.prompt_format import turn_tokens
from ..roles.extractive.follow_ups import condense_question
from ..roles.protocols import Turn
from .state import TurnRecord

RECALLED: Final = 15  # chunks that earlier answers cited
# Share of an exceeded budget that is kept after dropping turns, so that the prompt's prefix is stable for some turns.
_LEFT_BY_DROPPING: Final = 0.6

TurnKind = Literal["question", "follow-up", "improve"]


class PastTurn(TypedDict):
    """A finished turn: the question as asked and as rewritten, the answer with markers, and the evidence it cites."""

    asked: str
    question: str
    answer: str
    cited: list[dict[str, Any]]


class ConversationInput(TypedDict):
    """The input of the conversation graph: the next question, or the messages of a chat, whose last is the question.

    Messages before the last count as earlier turns while the thread has none of its own.
    """

    messages: NotRequired[
        Annotated[list[AnyMessage], add_messages, Field(description="A chat; its last message is the question.")]
    ]
    asked: NotRequired[Annotated[str, Field(description="The next question, or feedback on the last answer.")]]
    turn_kind: NotRequired[
        Annotated[
            TurnKind, Field(description="A question that stands alone, one that may lean on the last, or feedback.")
        ]
    ]


class ConversationOutput(TypedDict):
    """The output of the conversation graph; `result` is the answer's JSON without files and usage.

    If messages were given, the answer is added to them.
    """

    question: str
    result: dict[str, Any]
    messages: NotRequired[Annotated[list[AnyMessage], add_messages]]


class ConversationState(TypedDict, total=False):
    """The state of a conversation: what persists, and for the current turn its question and result.

    `messages` are those of a caller that gives them, with the answers; others have none.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    past: Annotated[list[PastTurn], operator.add]
    evidence_ids: dict[str, str]
    numbering: list[str]
    asked: str
    turn_kind: TurnKind
    question: str
    result: dict[str, Any]
    queries: list[QueryRecord]


def last_answered(past: Sequence[PastTurn]) -> PastTurn | None:
    """The latest turn that was answered, to which feedback applies; every answer cites something."""
    return next((turn for turn in reversed(past) if turn["cited"]), None)


def recent_evidence(past: Sequence[PastTurn]) -> list[dict[str, Any]]:
    """The most recently cited evidence, each chunk once, the latest turn first."""
    by_id = {record["id"]: record for turn in past for record in turn["cited"]}  # the latest version of each
    order = dict.fromkeys(record["id"] for turn in reversed(past) for record in turn["cited"])
    return [by_id[identifier] for identifier in list(order)[:RECALLED]]


def truncate_history(past: Sequence[PastTurn], tokens: int) -> list[TurnRecord]:
    """The turns that a prompt shows within `tokens`, in order; when they exceed it, the oldest are dropped.

    More are dropped than strictly necessary, so that the next prompts start with the same prefix.
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


SOURCES_HEADING: Final = "**Sources**"

_MOST_TURNS: Final = 20
_LONGEST_ANSWER: Final = 8000  # characters
_LONGEST_QUESTION: Final = 2000
_CITATION: Final = re.compile(rf" ?(?:{MARKER.pattern}|\[\d{{1,4}}(?:[,;] ?(?:pp?\. )?\d{{1,4}})*\])")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """The last message of the user, and the answered questions before it."""

    asked: str
    past: tuple[PastTurn, ...]


def chat_question(messages: Sequence[AnyMessage]) -> ChatQuestion | None:
    """The question of a chat; None if the last message is not the user's, since then nothing is asked.

    Skips the chat's instructions, tool messages and unanswered questions. Of a long chat only the latest turns and the
    beginnings of their answers are kept, since a prompt has no room for more.
    """
    if not messages or not isinstance(messages[-1], HumanMessage):
        return None
    pairs: list[tuple[str, str]] = []
    asked = ""
    for message in messages[:-1]:
        text = str(message.text)
        if isinstance(message, HumanMessage):
            asked = text
        elif isinstance(message, AIMessage) and asked.strip() and text.strip():
            pairs.append((asked, text))
            asked = ""
    past: list[PastTurn] = []
    for earlier, text in pairs[-_MOST_TURNS:]:
        question = " ".join(earlier[:_LONGEST_QUESTION].split())
        # By rules only: no model call is spent on past turns.
        alone = condense_question(question, [Turn(turn["question"], turn["answer"], turn["asked"]) for turn in past])
        past.append({"asked": question, "question": alone, "answer": plain_answer(text), "cited": []})
    return ChatQuestion(str(messages[-1].text), tuple(past))


def answer_with_sources(record: Mapping[str, Any]) -> str:
    """An answer's text and its numbered sources, for programs that show no other part of the record."""
    text = str(record["text"]).strip()
    if references := record["references"]:
        text = f"{text}\n\n{SOURCES_HEADING}\n\n{numbered_list(references)}"
    return inert(text)


def plain_answer(text: str) -> str:
    """An earlier answer without its citations and list of sources: their numbers mean nothing in a new answer."""
    body = text.rpartition(f"\n{SOURCES_HEADING}")[0] or text
    return _CITATION.sub("", normalise_markers(body[:_LONGEST_ANSWER])).strip()
