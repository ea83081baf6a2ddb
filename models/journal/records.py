"""What the journal is told and what it tells, as frozen values."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, Self

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
    """The run that asks; of other runs' answers, a `fresh` one takes those only that came after its own beginning."""

    run_id: str
    fresh: bool = False


@dataclass(frozen=True, slots=True)
class Hold:
    """What is reserved for one request of a run: the request itself and the most tokens that it can take.

    `counted` is the size of its prompt by the tokenizer that belongs to the model's name, where that is at hand: less
    than `input_tokens`, and reserved in its place. Where it is not `trusted`, only once an answer has shown that the
    server counts so too.
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
    """What a call brought: the answer as JSON text, the tokens it cost, and what was held for it till now."""

    payload: str
    input_tokens: int = 0
    output_tokens: int = 0
    hold: Hold | None = None


@dataclass(frozen=True, slots=True)
class CachedAnswer:
    """An answer that is on disk; `paid` when this call was made for it just now."""

    payload: str
    paid: bool


@dataclass(frozen=True, slots=True)
class Spending:
    """What one run spent on one model.

    `paid` are calls that were answered (of embeddings: texts), `reused` answers that the journal gave; `held_calls`
    are requests whose answer never came, or has not yet, with the most that each may cost.
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
    """What runs cost, over all the times they were taken up; `cost` is None while a price is not known.

    `llm_calls` were paid by the run, `journal_hits` were answered by the journal; both count chat calls.
    """

    llm_calls: int = 0
    journal_hits: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    embedded_texts: int = 0
    cost: float | None = None

    @classmethod
    def of(cls, spent: Iterable[Spending], cost: float | None = None) -> Self:
        """The sum; what is only held is not in it."""
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
