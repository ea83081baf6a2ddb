"""Journal request and result types."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

if TYPE_CHECKING:
    from ...settings.config import Price

# A "verdict" is derived from an answer and costs nothing.
CallKind = Literal["chat", "embedding", "verdict"]


@dataclass(frozen=True, slots=True)
class CallRecord:
    """A call to be made; `key` is the hash of everything that determines the answer."""

    key: str
    kind: CallKind
    endpoint: str
    model: str


@dataclass(frozen=True, slots=True, weakref_slot=True)
class RunScope:
    """The calling run; a `fresh` run reuses only answers that other runs received after its own start."""

    run_id: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Reservation:
    """The reservation for one request of a run: the request itself and the maximum tokens it can take."""

    run: str
    record: CallRecord
    calls: int
    input_tokens: int
    output_tokens: int
    # The prompt size by the tokenizer for the model's name, if available. It is reserved instead of the larger
    # `input_tokens`; unless `trusted`, only once an answer has shown that the server counts the same.
    counted: int | None = None
    trusted: bool = False


@dataclass(frozen=True, slots=True)
class CallResult:
    """The result of a call: the answer as JSON text, the tokens it cost, and its reservation."""

    payload: str
    input_tokens: int = 0
    output_tokens: int = 0
    reservation: Reservation | None = None


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """A committed answer; `paid` if it was obtained by this call."""

    payload: str
    paid: bool


@dataclass(frozen=True, slots=True)
class Spending:
    """The spending of one run on one model."""

    run: str
    kind: CallKind
    endpoint: str
    model: str
    paid: int = 0  # answered calls (for embeddings: texts)
    reused: int = 0  # answers from the journal
    input_tokens: int = 0
    output_tokens: int = 0
    reserved_calls: int = 0  # requests not yet answered, with their maximum cost
    reserved_input: int = 0
    reserved_output: int = 0


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage of runs, over all their resumptions."""

    llm_calls: int = 0  # chat calls paid by the run
    journal_hits: int = 0  # chat calls answered from the journal
    input_tokens: int = 0
    output_tokens: int = 0
    embedded_texts: int = 0
    cost: float | None = None  # None if a price is unknown

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


def spent_since(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """The difference of two usages of a run, as plain data; None for a cost if a price is unknown."""
    return {name: None if used is None else round(used - (before.get(name) or 0), 9) for name, used in after.items()}


def total_cost(spent: Iterable[Spending], prices: Mapping[str, Price], *, reserved: bool = False) -> float | None:
    """The cost over all models, with reservations if `reserved`; None if the price of a model in use is unknown."""
    total = 0.0
    for row in spent:
        input_tokens = row.input_tokens + (row.reserved_input if reserved else 0)
        output_tokens = row.output_tokens + (row.reserved_output if reserved else 0)
        if not input_tokens and not output_tokens and not (row.paid and row.kind == "chat"):
            continue
        price = prices.get(row.model)
        if price is None:
            return None
        total += (price.input * input_tokens + price.output * output_tokens) / 1_000_000
    return total
