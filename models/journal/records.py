"""Journal request and result types."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

CallKind = Literal["chat", "embedding"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call to be made; `key` is the hash of everything that determines the answer."""

    key: str
    kind: CallKind
    endpoint: str
    model: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RunScope:
    """The calling run; a `fresh` one reuses only those answers of other runs that came after its own start."""

    run_id: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """The reservation for one request of a run: the request itself and the maximum tokens it can take.

    `counted` is the size of its prompt by the tokenizer of the model's name, if available: it is less than
    `input_tokens` and reserved instead, but if not `trusted` only once an answer has shown that the server counts the
    same.
    """

    run: str
    record: CallRecord
    calls: int
    input_tokens: int
    output_tokens: int
    counted: int | None = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call: the answer as JSON text, the tokens it cost, and its reservation."""

    payload: str
    input_tokens: int = 0
    output_tokens: int = 0
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A committed answer; `paid` if it was obtained by this call."""

    payload: str
    paid: bool


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of one run on one model.

    `paid` are answered calls (for embeddings: texts), `reused` are answers from the journal; `held_calls` are requests
    without an answer so far, with the maximum that they may cost.
    """

    run: str
    kind: CallKind
    endpoint: str
    model: str
    paid: int = 0
    reused: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    held_calls: int = 0
    held_input: int = 0
    held_output: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of runs, over all their resumptions; `cost` is None if a price is unknown.

    `llm_calls` were paid by the run, `journal_hits` were answered from the journal; both count chat calls.
    """

    llm_calls: int = 0
    journal_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    embedded_texts: int = 0
    cost: float | None = None

    @classmethod
    def of(cls, spent: Iterable[Spending], cost: float | None = None) -> Self:
        """The sum, without reservations."""
        rows = list(spent)
        chat = [row for row in rows if row.kind == "chat"]
        return cls(
            llm_calls=sum(row.paid for row in chat),
            journal_hits=sum(row.reused for row in chat),
            input_tokens=sum(row.input_tokens for row in rows),
            output_tokens=sum(row.output_tokens for row in rows),
            embedded_texts=sum(row.paid for row in rows if row.kind == "embedding"),
            cost=cost,
        )
