"""Budgets: what a request may take at most is reserved on disk before it goes out, so that no limit is passed.

Every request counts, those that are tried again too. What it may take is the size of its prompt and the limit of its
answer. The size is counted by the model's tokenizer where that is at hand (`prompt_tokens`), and at an endpoint that is
not OpenAI's own only after an answer has shown that the server counts no more; otherwise in bytes, since no tokenizer
makes more tokens than there are bytes. While others are under way, a request that does not fit
waits for them: most take far less than was reserved. With nothing under way it does not fit at all, and the run
pauses.

A server may ignore the limit of an answer. So where tokens or cost are limited, the first answer of a model shows
whether it keeps to its limit before others are asked for; once one took more than was reserved for it, calls to that
model go one by one, each with as much reserved as was seen.

A request whose answer was lost may have been paid for: what was reserved for it stays counted, over kills too.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Final

from ...config import Price, Settings
from ...errors import ConfigurationError, PausedError
from ...plurals import counted
from ..http.failures import FailureKind
from ..http.retry import CallFailedError
from . import spending_table
from .journal import Journal
from .pricing import total_cost
from .records import Hold, Spending
from .single_flight import CrossLoopEvent

# The part of a count, with its margin, up to which a server's own count shows that its tokenizer is the same.
_SURE: Final = 0.75
# Failures after which a request may have been paid for all the same.
_MAYBE_PAID: Final[frozenset[FailureKind]] = frozenset({"dropped", "timeout", "broken"})


class BudgetReachedError(PausedError):
    """The next request could pass a limit.

    Args:
        flag: the option of the command line that raises the limit.
        enough: a limit with which the run could go on for as long again.
    """

    def __init__(self, message: str, *, flag: str, enough: float) -> None:
        super().__init__(message, help=f"Everything is kept: raise {flag} or leave it out to go on from here.")
        self.flag = flag
        self.enough = enough


@dataclass(frozen=True, slots=True)
class BudgetLimits:
    """What a run may spend over all the times it is taken up; None sets no limit."""

    calls: int | None = None
    tokens: int | None = None
    cost: float | None = None

    @classmethod
    def of(cls, settings: Settings) -> BudgetLimits:
        """The limits of the settings."""
        return cls(settings.max_calls, settings.max_tokens, settings.max_cost)

    def __bool__(self) -> bool:
        return self != BudgetLimits()


class Budget:
    """What runs may spend together; may be shared by tasks, threads and event loops.

    Args:
        runs: whose spending counts; more can be added with `cover`.
    """

    def __init__(self, limits: BudgetLimits, prices: Mapping[str, Price], journal: Journal, *runs: str) -> None:
        self._limits = limits
        self._prices = prices
        self._journal = journal
        self._runs = list(runs)
        self._guard = threading.Lock()
        self._of_models: dict[str, _OfModel] = {}
        self._asking = 0  # requests of which it is not known yet whether they fit
        self._under_way = 0
        self._ended = 0  # requests that ended so far, to see whether one did meanwhile
        self._change = CrossLoopEvent()

    @property
    def limited(self) -> bool:
        """Whether anything is limited at all."""
        return bool(self._limits)

    def cover(self, run: str) -> None:
        """Count the spending of `run` too."""
        if run not in self._runs:
            self._runs.append(run)

    def require_price(self, model: str) -> None:
        """Raise `ConfigurationError` when a cost is limited and the price of `model` is not known."""
        if self._limits.cost is not None and model not in self._prices:
            raise ConfigurationError(
                f"--max-cost (CITELOOM_MAX_COST) needs the price of model {model}.",
                help=f'Set it, per million tokens: CITELOOM_PRICES=\'{{"{model}": {{"input": 1.0, "output": 2.0}}}}\'.',
            )

    @asynccontextmanager
    async def reserved(self, wanted: Hold) -> AsyncIterator[Hold | None]:
        """Hold `wanted` for one request, made while this is open; gives the hold, None when nothing is limited.

        When the request fails, what it cannot have cost is given back; when it is answered, the hold stays until
        the answer is committed with it (`Outcome.hold`), and `settle` has to be called then.

        Raises `BudgetReachedError`, `JournalPausedError`, and `ConfigurationError` when a price is not known.
        """
        if not self._limits:
            yield None
            return
        held = await self._hold(wanted)
        try:
            yield held
        except BaseException as error:
            try:
                await self._give_back(held, error)
            finally:
                self.settle(held, None)
            raise

    def settle(self, held: Hold, taken: tuple[int, int] | None) -> None:
        """A request that was held has ended, its cost is on disk: let those who wait see whether they fit now.

        Args:
            taken: tokens of question and answer; None when no answer came.
        """
        with self._guard:
            self._under_way -= 1
            self._ended += 1
            self._of(held).ended(held, taken)
        self._wake()

    def _of(self, held: Hold) -> _OfModel:
        return self._of_models.setdefault(f"{held.record.model} at {held.record.endpoint}", _OfModel())

    async def _hold(self, wanted: Hold) -> Hold:
        while True:
            with self._guard:
                of_model, ended = self._of(wanted), self._ended
                held = of_model.as_seen(wanted)
                waiting = self._change.join() if self._must_wait(of_model) else None
                if waiting is None:
                    self._asking += 1
                    of_model.busy += 1
            if waiting is not None:
                await waiting
                continue
            problem = await self._reserve(held)
            with self._guard:
                self._asking -= 1
                if problem is None:
                    self._under_way += 1
                    return held
                of_model.busy -= 1
                if self._ended != ended:
                    continue
                waiting = self._change.join() if self._asking + self._under_way else None
            if waiting is None:
                self._wake()  # those who waited for this one to be told
                raise problem
            await waiting

    def _must_wait(self, of_model: _OfModel) -> bool:
        limited = self._limits.tokens is not None or self._limits.cost is not None
        return limited and of_model.busy > 0 and not of_model.trusted

    async def _reserve(self, held: Hold) -> BudgetReachedError | None:
        def reserve(db: sqlite3.Connection) -> BudgetReachedError | None:
            problem = self._problem(spending_table.spent(db, self._runs), held)
            if problem is None:
                spending_table.hold(db, held)
            return problem

        try:
            return await self._journal.submit(reserve)
        except BaseException:
            with self._guard:
                self._asking -= 1
                self._of(held).busy -= 1
            self._wake()
            raise

    def _wake(self) -> None:
        with self._guard:
            landing, self._change = self._change, CrossLoopEvent()
        landing.land()

    def _problem(self, spent: list[Spending], wanted: Hold) -> BudgetReachedError | None:
        calls = sum(row.paid + row.held_calls for row in spent)
        if self._limits.calls is not None and calls + wanted.calls > self._limits.calls:
            return _reached(
                "--max-calls",
                f"{calls} of {counted(self._limits.calls, 'call')} {'is' if calls == 1 else 'are'} made",
                2 * self._limits.calls,
            )
        tokens = sum(row.input_tokens + row.output_tokens + row.held_input + row.held_output for row in spent)
        more = wanted.input_tokens + wanted.output_tokens
        if self._limits.tokens is not None and tokens + more > self._limits.tokens:
            said = f"{tokens:,} of {self._limits.tokens:,} tokens are spent and the next call may take {more:,}"
            return _reached("--max-tokens", said, 2 * max(self._limits.tokens, more))
        if self._limits.cost is None:
            return None
        for model in (wanted.record.model, *(row.model for row in spent)):
            self.require_price(model)
        cost = total_cost(spent, self._prices, held=True) or 0.0
        next_cost = total_cost([_as_spent(wanted)], self._prices) or 0.0
        if cost + next_cost > self._limits.cost:
            said = f"{cost:.4f} of {self._limits.cost:.4g} are spent and the next call may cost {next_cost:.4f}"
            return _reached("--max-cost", said, 2 * max(self._limits.cost, next_cost))
        return None

    async def _give_back(self, held: Hold, error: BaseException) -> None:
        kind = error.failure.kind if isinstance(error, CallFailedError) else None
        if isinstance(error, Exception) and kind not in _MAYBE_PAID:
            # A refusal is an answer: it counts as a call and costs nothing. What was never reached counts not at all.
            back = held if kind == "unreachable" else replace(held, calls=0)
            await self._journal.submit(lambda db: spending_table.release(db, back))


@dataclass(slots=True)
class _OfModel:
    """What was seen of one model: how much its answers take at most, and whether they keep to what is reserved."""

    busy: int = 0  # requests that ask for room, or are under way
    answered: bool = False
    overrun: bool = False
    counts: bool = False  # an answer showed that the server counts no more than its tokenizer here
    miscounted: bool = False
    most_input: int = 0
    most_output: int = 0

    @property
    def trusted(self) -> bool:
        return self.answered and not self.overrun

    def as_seen(self, wanted: Hold) -> Hold:
        if wanted.counted is not None and not self.miscounted and (self.counts or wanted.trusted):
            wanted = replace(wanted, input_tokens=min(wanted.counted, wanted.input_tokens))
        if not self.overrun:
            return wanted
        most_input, most_output = max(wanted.input_tokens, self.most_input), max(wanted.output_tokens, self.most_output)
        return replace(wanted, input_tokens=most_input, output_tokens=most_output)

    def ended(self, held: Hold, taken: tuple[int, int] | None) -> None:
        self.busy -= 1
        if taken is not None:
            self.answered = True
            if held.counted is not None:
                self.counts = True
                most = held.counted if held.trusted else held.counted * _SURE
                self.miscounted = self.miscounted or taken[0] > most
            self.overrun = self.overrun or taken[0] > held.input_tokens or taken[1] > held.output_tokens
            self.most_input, self.most_output = max(self.most_input, taken[0]), max(self.most_output, taken[1])


def _as_spent(held: Hold) -> Spending:
    record = held.record
    return Spending(
        held.run,
        record.kind,
        record.endpoint,
        record.model,
        input_tokens=held.input_tokens,
        output_tokens=held.output_tokens,
    )


def _reached(flag: str, said: str, enough: float) -> BudgetReachedError:
    return BudgetReachedError(f"The budget is reached ({flag}): {said}.", flag=flag, enough=enough)
