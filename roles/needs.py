"""Needs: what has to be known to answer a question or to write a section, planned before anything is searched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

Asks = Literal["finding", "number", "method", "contrary", "limit"]
ASKS: tuple[Asks, ...] = get_args(Asks)


@dataclass(frozen=True, slots=True)
class Need:
    """One thing that has to be known; `id` is `N1`, `N2` ..., stable within a run.

    `text` states it in one line, without numbers and verdicts of the user's own; `queries` are searches for it, worded
    as a paper would; `asks` is the kind of statement that meets it.
    """

    id: str
    text: str
    queries: tuple[str, ...]
    asks: Asks = "finding"

    @property
    def search(self) -> str:
        """All queries on one line, as the record of a search names them."""
        return "; ".join(self.queries)

    def as_dict(self) -> dict[str, Any]:
        """The plain form held by graph state."""
        return {"id": self.id, "text": self.text, "queries": list(self.queries), "asks": self.asks}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Need:
        """The typed value of a state record."""
        return cls(record["id"], record["text"], tuple(record["queries"]), record["asks"])


Status = Literal["met", "open", "in vain"]


@dataclass(frozen=True, slots=True)
class NeedCoverage:
    """The coverage of a need: the ids of its evidence, best first, and the number of papers it is from.

    Also how often the need was searched for, and by which queries of the agent.
    """

    need: Need
    evidence: tuple[str, ...]
    papers: int
    searches: int
    tried: tuple[str, ...]
    status: Status

    @property
    def in_vain(self) -> bool:
        """True when searches for it found nothing: only then may a text call it open."""
        return self.status == "in vain"


@dataclass(frozen=True, slots=True)
class Purpose:
    """What passages are read for: the whole question, or the section with its subject, and the needs derived from it.

    `text` may be a claim rather than a question.
    """

    text: str
    needs: tuple[Need, ...]

    def named(self, ids: Sequence[str]) -> tuple[Need, ...]:
        """The needs with these ids, in the order of the plan."""
        return tuple(need for need in self.needs if need.id in ids)
