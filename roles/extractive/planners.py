"""Plans searches and needs without a chat model, from the section's statements and the experiment's themes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import singledispatch
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage

from ...text.words import is_stop, words_of
from ..inputs import AnswerBrief, Brief, SectionBrief
from ..needs import Need
from .section_outlines import paragraphs
from .themes import core_phrases, vocabulary

_MIN_WORDS: Final = 6


class ExtractivePlanner:
    """Implements `SearchPlanner`: one turn of searches, then none.

    It searches for the statements that no default query contained, those with fewest numbers first (numbers find
    noise), and for the experiment's most important themes.
    """

    def open(self, brief: SectionBrief) -> list[BaseMessage]:
        """No messages: nobody reads them."""
        return []

    async def plan(self, messages: Sequence[BaseMessage], brief: SectionBrief) -> AIMessage:
        """A message with at most `searches_left` calls of `search_evidence`; none on the second turn."""
        if any(isinstance(message, AIMessage) for message in messages):
            return AIMessage("The statements and themes have been searched for.")
        queries = planned_queries(brief)[: brief.searches_left]
        calls = [
            {
                "name": "search_evidence",
                "args": {"query": query},
                "id": f"search_{number}",
                "type": "tool_call",
            }
            for number, query in enumerate(queries, start=1)
        ]
        return AIMessage("", tool_calls=calls)


def planned_queries(brief: SectionBrief) -> list[str]:
    """The searches in order of priority: two statements, then a theme, and so on."""
    asked = " ".join(" ".join(query.split()) for query in brief.queries)
    statements = [
        statement.about
        for paragraph in paragraphs(brief.kind, brief.experiment)
        for statement in paragraph
        if len(statement.about.split()) >= _MIN_WORDS and statement.about not in asked
    ]
    statements = sorted(dict.fromkeys(statements), key=lambda text: sum(map(str.isdigit, text)) > 3)
    description = " ".join(brief.experiment.paper_concept.description.split())
    if description and description not in asked:
        statements.insert(0, description)
    known = vocabulary([(source.paper.key, source.text) for source in brief.sources])
    themes = core_phrases(brief.experiment, known)
    mixed: list[str] = []
    while statements or themes:
        mixed += [*statements[:2], *themes[:1]]
        statements, themes = statements[2:], themes[1:]
    return mixed


_FEWEST_WORDS: Final = 3
_PARTS: Final = re.compile(
    r"[;:?.!]\s|,\s+(?:and|or|but)\s+|(?<!\s)\s+and\s+(?=(?:how|what|which|why|when|where|who|can|do|does|is|are)\b)"
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
    """The question's clauses if it has several, then its significant words in order, each a query of its own."""
    clauses = [clause.strip(" ?.!,;:") for clause in _PARTS.split(question)]
    clauses = [clause for clause in clauses if len(_telling(clause)) >= _FEWEST_WORDS]
    queries = clauses if len(clauses) > 1 else []
    words = _telling(question)
    if len(words) >= _FEWEST_WORDS:
        queries.append(" ".join(words))
    return list(dict.fromkeys(queries))


def _telling(text: str) -> list[str]:
    return list(dict.fromkeys(word.surface for word in words_of(text) if not is_stop(word)))


_WORD: Final = re.compile(r"[^\W\d_]{2}")
_OWN: Final = re.compile(
    r"\b(?:partly |partially |not |in part )?(?:supported|refuted|rejected|confirmed)\b|\b(?:here|our|we|this study)\b",
    re.IGNORECASE,
)
_BRACKETED: Final = re.compile(r"\([^()]{0,80}\d[^()]{0,80}\)")
_NUMBER: Final = re.compile(r"(?<![\w-])[-+±~−]?\d[\d.,]*(?:e[-+−]?\d+)?(?:\s?[/–-]\s?\d[\d.,]*)*\s?%?(?![\w-])")
_LOOSE: Final = re.compile(r"(?<!\s)\s++(?=[,;:.)])|(?<=[,;:])(?:\s*+[,;:])++|\(\s*+\)")


class ExtractiveNeeds:
    """Implements `NeedsPlanner`: a section needs what its default queries ask, a question needs its answer."""

    async def needs(self, brief: Brief, papers: Sequence[str] = ()) -> tuple[Need, ...]:
        """For a section a need per default query; for a question one need, searched for whole and by its clauses.

        Queries lose their numbers and verdicts, unless that would leave nothing of any of them.
        """
        return _needs_of(brief)


@singledispatch
def _needs_of(brief: Brief) -> tuple[Need, ...]:
    raise TypeError(f"no needs for {type(brief).__name__}")


@_needs_of.register
def _(brief: SectionBrief) -> tuple[Need, ...]:
    return section_needs(brief.queries)


@_needs_of.register
def _(brief: AnswerBrief) -> tuple[Need, ...]:
    clauses = [part for part in parts_of(brief.sought) if part != brief.sought]
    return (Need("N1", brief.sought, (brief.sought, *clauses)),)


def section_needs(queries: Sequence[str]) -> tuple[Need, ...]:
    """A need for each default query that is meaningful without its numbers, or for all when none is."""
    texts = dict.fromkeys(text for query in queries if (text := searchable(query)))
    return tuple(Need(f"N{number}", text, (text,)) for number, text in enumerate(texts or queries, start=1))


def searchable(query: str) -> str:
    """A field of an experiment as a search, without numbers, verdicts and words that refer to the user's own work.

    Empty when the field has nothing else.
    """
    text = _NUMBER.sub("", _BRACKETED.sub("", _OWN.sub("", query)))
    text = " ".join(_LOOSE.sub("", text).split()).strip(" ,;:")
    return text if _WORD.search(text) else ""
