"""Budgets: the maximum cost of each request is reserved on disk before it is sent, so that no limit is exceeded.

The maximum is the size of the prompt plus the limit of the answer. The prompt is counted by the model's tokenizer if
available (at endpoints other than OpenAI's only after an answer has shown that the server counts no more), otherwise in
bytes, which no tokenizer exceeds. A request that does not fit waits for those in flight, since most use far less than
reserved; if there are none, the run pauses. A server may ignore the limit of an answer: so if tokens or cost are
limited, a model's first answer must show that it respects the limit. If an answer exceeds it, calls to that model are
made one at a time, each reserving the largest size seen. A request whose answer was lost stays counted.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Final

from ...errors import ConfigurationError, PausedError
from ...plurals import counted
from ...settings.config import Price, Settings
from ..concurrency import ThreadSafeEvent
from ..http.failures import CallFailedError, FailureKind
from .journal import Journal
from .journal_database import JournalConnection, load_spending, reserve
from .records import Reservation, Spending, total_cost

# A server's count up to this share of our count (with margin) shows that it uses the same tokenizer.
_SURE: Final = 0.75
# Failures after which a request may still have been paid for.
_MAYBE_PAID: Final[frozenset[FailureKind]] = frozenset({"dropped", "timeout", "broken"})


class BudgetReachedError(PausedError):
    """The next request could exceed the limit of the option `flag`; `enough` is a limit to suggest instead."""

    def __init__(self, message: str, *, flag: str, enough: float) -> None:
        super().__init__(message, help=f"Completed calls are saved: raise {flag} or omit it to resume.")
        self.flag = flag
        self.enough = enough


class PersonBudgetError(PausedError):
    """The person for whom a server works has spent their budget."""

    default_help = "Completed calls are saved: ask an owner of this server for a larger budget."


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """The limits of a run over all its resumptions; None sets no limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> BudgetLimits:
        return cls(settings.max_calls, settings.max_tokens, settings.max_cost)

    def __bool__(self) -> bool:
        return self != BudgetLimits()


class Budget:
    """The budget on the total spending of `runs`; may be shared by tasks, threads and event loops."""

    def __init__(self, limits: BudgetLimits, prices: Mapping[str, Price], journal: Journal, *runs: str) -> None:
        self._limits = limits
        self._prices = prices
        self._journal = journal
        self._runs = list(runs)
        self._guard = threading.Lock()
        self._models: dict[str, _ModelObservations] = {}
        self._checking = 0  # requests whose reservation is being checked
        self._in_flight = 0
        self._ended = 0  # requests finished so far, to detect whether one finished meanwhile
        self._change = ThreadSafeEvent()
        self.within: Callable[[], Budget | None] | None = None  # the current budget of a person's runs; may block

    @property
    def limited(self) -> bool:
        return bool(self._limits) or self.within is not None

    def set_limits(self, settings: Settings, raised: Mapping[str, float]) -> None:
        """Set the limits to those of the settings, or to higher ones that a person `raised`, by name of the setting."""
        given = {name: getattr(settings, name) for name in ("max_calls", "max_tokens", "max_cost")}
        higher = {name: max(limit, raised.get(name, 0)) for name, limit in given.items() if limit is not None}
        self._limits = BudgetLimits.of(settings.model_copy(update=higher))

    def require_price(self, model: str) -> None:
        """Raise `ConfigurationError` if cost is limited and the price of `model` is unknown."""
        if self._limits.cost is not None and model not in self._prices:
            raise ConfigurationError(
                f"--max-cost (CITELOOM_MAX_COST) needs the price of model {model}.",
                help=f'Set it, per million tokens: CITELOOM_PRICES=\'{{"{model}": {{"input": 1.0, "output": 2.0}}}}\'.',
            )

    @asynccontextmanager
    async def reserve(self, wanted: Reservation) -> AsyncIterator[Reservation | None]:
        """Reserve `wanted` for one request made inside the block; yields the reservation, None if nothing is limited.

        If the request fails, the part that it cannot have cost is released. If it is answered, the reservation stays
        until the answer is committed with it (`CallResult.reservation`); then `finish` must be called.

        Raises `BudgetReachedError`, `JournalPausedError`, and `ConfigurationError` if a price is unknown.
        """
        if not self.limited:
            yield None
            return
        reservation = await self._wait_for_room(wanted)
        try:
            yield reservation
        except BaseException as error:
            try:
                kind = error.failure.kind if isinstance(error, CallFailedError) else None
                if isinstance(error, Exception) and kind not in _MAYBE_PAID:
                    # A refusal counts as a call but costs nothing; an unreachable server does not count at all.
                    back = reservation if kind == "unreachable" else replace(reservation, calls=0)
                    await self._journal.submit(lambda db: reserve(db, back, -1))
            finally:
                self.finish(reservation, None)
            raise

    def finish(self, reservation: Reservation, taken: tuple[int, int] | None) -> None:
        """Finish a request whose cost is on disk, and wake waiting ones; `taken` are its tokens, None if unanswered."""
        with self._guard:
            self._in_flight -= 1
            self._ended += 1
            self._observations(reservation).record_end(reservation, taken)
        self._wake()

    def _observations(self, reservation: Reservation) -> _ModelObservations:
        return self._models.setdefault(
            f"{reservation.record.model} at {reservation.record.endpoint}", _ModelObservations()
        )

    async def _wait_for_room(self, wanted: Reservation) -> Reservation:
        while True:
            with self._guard:
                model, ended = self._observations(wanted), self._ended
                reservation = model.adjust(wanted)
                limited = self._limits.tokens is not None or self._limits.cost is not None or self.within is not None
                waiting = self._change if limited and model.busy > 0 and not model.trusted else None
                if waiting is None:
                    self._checking += 1
                    model.busy += 1
            if waiting is not None:
                await waiting.wait()
                continue
            problem = await self._try_reserve(reservation)
            with self._guard:
                self._checking -= 1
                if problem is None:
                    self._in_flight += 1
                    return reservation
                model.busy -= 1
                if self._ended != ended:
                    continue
                waiting = self._change if self._checking + self._in_flight else None
            if waiting is None:
                self._wake()  # wakes those who waited for the outcome of this one
                raise problem
            await waiting.wait()

    async def _try_reserve(self, reservation: Reservation) -> PausedError | None:
        def reserve_room(db: JournalConnection) -> PausedError | None:
            problem = self._problem(load_spending(db, self._runs), reservation)
            if problem is not None:
                return problem
            reached = within and within._problem(load_spending(db, within._runs), reservation)
            if reached:
                return PersonBudgetError(reached.message.replace("--max-cost", "yours"))
            reserve(db, reservation)
            return problem

        try:
            within = None if self.within is None else await asyncio.to_thread(self.within)
            return await self._journal.submit(reserve_room)
        except BaseException:
            with self._guard:
                self._checking -= 1
                self._observations(reservation).busy -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        with self._guard:
            changed, self._change = self._change, ThreadSafeEvent()
        changed.set()

    def _problem(self, spent: list[Spending], wanted: Reservation) -> BudgetReachedError | None:
        calls = sum(row.paid + row.reserved_calls for row in spent)
        if self._limits.calls is not None and calls + wanted.calls > self._limits.calls:
            return _budget_error(
                "--max-calls",
                f"{calls} of {counted(self._limits.calls, 'call')} {'has' if calls == 1 else 'have'} been made",
                2 * self._limits.calls,
            )
        tokens = sum(row.input_tokens + row.output_tokens + row.reserved_input + row.reserved_output for row in spent)
        more = wanted.input_tokens + wanted.output_tokens
        if self._limits.tokens is not None and tokens + more > self._limits.tokens:
            detail = f"{tokens:,} of {self._limits.tokens:,} tokens have been spent and the next call may take {more:,}"
            return _budget_error("--max-tokens", detail, 2 * max(self._limits.tokens, more))
        if self._limits.cost is None:
            return None
        for model in (wanted.record.model, *(row.model for row in spent)):
            self.require_price(model)
        cost = total_cost(spent, self._prices, reserved=True) or 0.0
        record, most = wanted.record, {"input_tokens": wanted.input_tokens, "output_tokens": wanted.output_tokens}
        more_spent = Spending(wanted.run, record.kind, record.endpoint, record.model, **most)
        next_cost = total_cost([more_spent], self._prices) or 0.0
        if cost + next_cost > self._limits.cost:
            detail = f"{cost:.4f} of {self._limits.cost:.4g} has been spent and the next call may cost {next_cost:.4f}"
            return _budget_error("--max-cost", detail, 2 * max(self._limits.cost, next_cost))
        return None


@dataclass(slots=True)
class _ModelObservations:
    """Observations of one model: its largest answers, and whether they stay within their reservations."""

    busy: int = 0  # requests that are being checked or in flight
    answered: bool = False
    overrun: bool = False
    counts: bool = False  # an answer showed that the server counts no more than its tokenizer here
    miscounted: bool = False
    most_input: int = 0
    most_output: int = 0

    @property
    def trusted(self) -> bool:
        return self.answered and not self.overrun

    def adjust(self, wanted: Reservation) -> Reservation:
        if wanted.counted is not None and not self.miscounted and (self.counts or wanted.trusted):
            wanted = replace(wanted, input_tokens=min(wanted.counted, wanted.input_tokens))
        if not self.overrun:
            return wanted
        most_input, most_output = max(wanted.input_tokens, self.most_input), max(wanted.output_tokens, self.most_output)
        return replace(wanted, input_tokens=most_input, output_tokens=most_output)

    def record_end(self, reservation: Reservation, taken: tuple[int, int] | None) -> None:
        self.busy -= 1
        if taken is not None:
            self.answered = True
            if reservation.counted is not None:
                self.counts = True
                most = reservation.counted if reservation.trusted else reservation.counted * _SURE
                self.miscounted = self.miscounted or taken[0] > most
            self.overrun = self.overrun or taken[0] > reservation.input_tokens or taken[1] > reservation.output_tokens
            self.most_input, self.most_output = max(self.most_input, taken[0]), max(self.most_output, taken[1])


def _budget_error(flag: str, detail: str, enough: float) -> BudgetReachedError:
    return BudgetReachedError(f"The budget is reached ({flag}): {detail}.", flag=flag, enough=enough)


@dataclass(frozen=True, slots=True)
class Payer:
    """A run and its budget."""

    run: str
    budget: Budget


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


current_payer = _payer.get  # None outside of runs


@contextmanager
def bill_to(run: str, budget: Budget) -> Iterator[None]:
    """Bill embeddings inside the block to `run`, including those from tasks and threads started there."""
    token = _payer.set(Payer(run, budget))
    try:
        yield
    finally:
        _payer.reset(token)
