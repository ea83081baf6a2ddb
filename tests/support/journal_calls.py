"""One call in a journal, without the budget and the errors that paid calls have around it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import CachedAnswer, CallRecord, CallResult, RunScope


async def once(
    journal: Journal, record: CallRecord, scope: RunScope, call: Callable[[], Awaitable[CallResult]]
) -> CachedAnswer:
    """The answer to `record`: from the journal, from an equal call in flight, or by `call`."""

    async def only(_: Sequence[int]) -> list[CallResult]:
        return [await call()]

    (answer,) = await journal.get_or_call([record], scope, only)
    return answer
