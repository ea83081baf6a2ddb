"""Plans searches for a question without a chat model: its parts, and its telling words alone."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage

from citeloom.models.briefs import AnswerBrief
from citeloom.models.extractive.terms import is_stop, words_of

_FEWEST_WORDS: Final = 3
_PARTS: Final = re.compile(
    r"[;:?.!]\s|,\s+(?:and|or|but)\s+|\s+and\s+(?=(?:how|what|which|why|when|where|who|can|do|does|is|are)\b)"
)


class QuestionPlanner:
    """Implements `AnswerPlanner`: one turn of searches over the whole library, then none."""

    def open(self, brief: AnswerBrief) -> list[BaseMessage]:
        """No messages: nobody reads them."""
        return []

    async def plan(self, messages: Sequence[BaseMessage], brief: AnswerBrief) -> AIMessage:
        """A message with at most `searches_left` calls of `search_evidence`; none on the second turn."""
        if any(isinstance(message, AIMessage) for message in messages):
            return AIMessage("The parts of the question have been searched for.")
        calls = [
            {"name": "search_evidence", "args": {"query": query}, "id": f"search_{number}", "type": "tool_call"}
            for number, query in enumerate(parts_of(brief.sought)[: brief.searches_left], start=1)
        ]
        return AIMessage("", tool_calls=calls)


def parts_of(question: str) -> list[str]:
    """The question's clauses where it has several, then its telling words in order, each a query of its own."""
    clauses = [clause.strip(" ?.!,;:") for clause in _PARTS.split(question)]
    clauses = [clause for clause in clauses if len(_telling(clause)) >= _FEWEST_WORDS]
    queries = clauses if len(clauses) > 1 else []
    words = _telling(question)
    if len(words) >= _FEWEST_WORDS:
        queries.append(" ".join(words))
    return list(dict.fromkeys(queries))


def _telling(text: str) -> list[str]:
    return list(dict.fromkeys(word.surface for word in words_of(text) if not is_stop(word)))
