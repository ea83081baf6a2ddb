"""The messages of a chat as a question and the turns before it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage

from ..citations.html_escaping import inert
from ..citations.markers import MARKER, normalise_markers
from ..citations.numbered_references import numbered_list
from ..roles.extractive.follow_ups import condense_question
from ..roles.protocols import Turn
from .conversation_state import PastTurn

SOURCES_HEADING: Final = "**Sources**"

_MOST_TURNS: Final = 20
_LONGEST_ANSWER: Final = 8000  # characters
_LONGEST_QUESTION: Final = 2000
_CITATION: Final = re.compile(rf" ?(?:{MARKER.pattern}|\[\d{{1,4}}(?:, ?\d{{1,4}})*\])")


@dataclass(frozen=True, slots=True)
class ChatQuestion:
    """The last message of the user, and the answered questions before it."""

    asked: str
    past: tuple[PastTurn, ...]


def chat_question(messages: Sequence[AnyMessage]) -> ChatQuestion | None:
    """The question of a chat; None when its last message is not the user's, so that nothing is asked.

    Instructions and tools of the chat are left out, and questions that were not answered. Of a long chat only the
    latest turns count, and the beginning of their answers: a prompt has room for no more.
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
        past.append({"asked": question, "question": _alone(question, past), "answer": plain_answer(text), "cited": []})
    return ChatQuestion(str(messages[-1].text), tuple(past))


def _alone(asked: str, past: Sequence[PastTurn]) -> str:
    """A question as it was understood then, by rules: no model is asked about the past."""
    return condense_question(asked, [Turn(turn["question"], turn["answer"], turn["asked"]) for turn in past])


def answer_with_sources(record: Mapping[str, Any]) -> str:
    """An answer's text and the numbered list of its sources, for programs that show nothing else of the record."""
    text = str(record["text"]).strip()
    if references := record["references"]:
        text = f"{text}\n\n{SOURCES_HEADING}\n\n{numbered_list(references)}"
    return inert(text)


def plain_answer(text: str) -> str:
    """An earlier answer without its citations and list of sources: their numbers mean nothing in a new answer."""
    body = text.rpartition(f"\n{SOURCES_HEADING}")[0] or text
    return _CITATION.sub("", normalise_markers(body[:_LONGEST_ANSWER])).strip()
