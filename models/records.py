"""What the journal is told and what it tells, as frozen values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

CallKind = Literal["chat", "embedding"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call to be made: `key` is the hash of all that decides the answer."""

    key: str
    kind: CallKind
    endpoint: str
    model: str


@dataclass(frozen=True, slots=True)
class RunScope:
    """The run that asks; answers made before `ignore_before` (seconds since the epoch) are not for it."""

    run_id: str
    ignore_before: float | None = None

    @property
    def since(self) -> float:
        """`ignore_before`, as a number that can be compared."""
        return self.ignore_before or 0.0


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a call brought: the answer as JSON text, and the tokens it cost."""

    payload: str
    input_tokens: int = 0
    output_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Replay:
    """An answer that is on disk; `paid` when this call was made for it just now."""

    payload: str
    paid: bool


@dataclass(frozen=True, slots=True)
class Usage:
    """What a run cost, over all the times it was taken up; `cost` is None since prices are not known.

    `llm_calls` were paid by the run, `journal_hits` were answered by the journal; both count chat calls.
    """

    llm_calls: int = 0
    journal_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    embedded_texts: int = 0
    cost: float | None = None
