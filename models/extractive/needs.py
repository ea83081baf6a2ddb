"""Plans needs without a chat model: a question and its parts, a section's default queries without the user's results.

Numbers, verdicts and words such as "here" are the experiment's; searched for, they find other experiments' numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from citeloom.models.briefs import AnswerBrief, Brief
from citeloom.models.extractive.question_planner import parts_of
from citeloom.models.needs import Need

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
        """For a section a need for each default query, without numbers and verdicts, or as they stand where not a word
        would be left of any; for a question one, searched for whole and by its clauses."""
        if isinstance(brief, AnswerBrief):
            clauses = [part for part in parts_of(brief.sought) if part != brief.sought]
            return (Need("N1", brief.sought, (brief.sought, *clauses)),)
        return section_needs(brief.queries)


def section_needs(queries: Sequence[str]) -> tuple[Need, ...]:
    """A need for each default query that says something without its numbers, or for all where none does."""
    texts = dict.fromkeys(text for query in queries if (text := searchable(query)))
    return tuple(Need(f"N{number}", text, (text,)) for number, text in enumerate(texts or queries, start=1))


def searchable(query: str) -> str:
    """A field of an experiment as a search: without numbers, verdicts and words that mean the user's own work; empty
    where nothing else is in it."""
    text = _NUMBER.sub("", _BRACKETED.sub("", _OWN.sub("", query)))
    text = " ".join(_LOOSE.sub("", text).split()).strip(" ,;:")
    return text if _WORD.search(text) else ""
