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

_FEWEST_WORDS: Final = 3
_OWN: Final = re.compile(
    r"\b(?:partly |partially |not |in part )?(?:supported|refuted|rejected|confirmed)\b|\b(?:here|our|we|this study)\b",
    re.IGNORECASE,
)
_BRACKETED: Final = re.compile(r"\([^()]{0,80}\d[^()]{0,80}\)")
_NUMBER: Final = re.compile(r"(?<![\w-])[-+±~]?\d[\d.,]*(?:\s?[/–-]\s?\d[\d.,]*)*\s?%?(?![\w-])")
_LOOSE: Final = re.compile(r"\s+(?=[,;:.)])|(?<=[,;:])(?:\s*[,;:])+|\(\s*\)")


class ExtractiveNeeds:
    """Implements `NeedsPlanner`: a section needs what its default queries ask, a question needs its answer."""

    async def needs(self, brief: Brief, papers: Sequence[str] = ()) -> tuple[Need, ...]:
        """For a section a need for each default query, without numbers and verdicts, or as it stands where hardly a
        word would be left; for a question one, searched for whole and by its clauses."""
        if isinstance(brief, AnswerBrief):
            clauses = [part for part in parts_of(brief.sought) if part != brief.sought]
            return (Need("N1", brief.sought, (brief.sought, *clauses)),)
        texts = dict.fromkeys(searchable(query) for query in brief.queries)
        return tuple(Need(f"N{number}", text, (text,)) for number, text in enumerate(texts, start=1))


def searchable(query: str) -> str:
    """A field of an experiment as a search: without numbers, verdicts and words that mean the user's own work."""
    text = _NUMBER.sub("", _BRACKETED.sub("", _OWN.sub("", query)))
    text = " ".join(_LOOSE.sub("", text).split()).strip(" ,;:")
    return text if len(text.split()) >= _FEWEST_WORDS else query
