"""A paid call to a model, for chat and embeddings alike: journal, single flight, budget, and the user's error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from .http.model_identity import ModelIdentity
from .http.retry import Admission, CallFailedError
from .http.user_errors import to_user_error
from .journal.budget import Budget
from .journal.journal import Journal
from .journal.records import CachedAnswer, CallRecord, CallResult, Hold, RunScope, Usage
from .prompt_tokens import sized


class PaidRequest:
    """One request inside a budget: reserved before each try, settled when its cost is on disk."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._hold: Hold | None = None
        self._tokens: tuple[int, int] | None = None

    async def admission(self, most: Hold, text: Callable[[], str], around: int) -> Admission:
        """Reserves `most` for each try; its prompt is as large as `text`, with `around` tokens about it."""
        if self._budget.limited:
            most = await asyncio.to_thread(sized, most, text(), around)

        @asynccontextmanager
        async def reserved() -> AsyncIterator[None]:
            async with self._budget.reserved(most) as hold:
                yield
            self._hold = hold

        return reserved

    def result(self, payload: str, tokens: tuple[int, int]) -> CallResult:
        """The answer as the journal commits it, together with what was reserved for it."""
        self._tokens = tokens
        return CallResult(payload, *tokens, self._hold)

    def settle(self) -> None:
        """Let those who wait for room in the budget see whether they fit now."""
        if self._hold is not None:
            self._budget.settle(self._hold, self._tokens)


async def answers_to(
    records: Sequence[CallRecord],
    ask: Callable[[PaidRequest, Sequence[int]], Awaitable[Sequence[CallResult]]],
    journal: Journal,
    scope: RunScope,
    budget: Budget,
    identity: ModelIdentity,
    *also: str,
) -> list[CachedAnswer]:
    """The answers to `records`: from the journal, from an equal call in flight, or by one request.

    `ask` is given the positions of the records without an answer and returns theirs in that order. An error
    tells whether the run, or one of those `also` named, had answers before. Raises what a user is shown of it.
    """
    request = PaidRequest(budget)
    try:
        return await journal.once_each(records, scope, partial(ask, request))
    except CallFailedError as failed:
        used = Usage.of(await journal.spending([scope.run_id, *also]))
        answered = used.llm_calls + used.journal_hits + used.embedded_texts > 0
        raise to_user_error(failed, identity, answered=answered) from failed
    finally:
        request.settle()
