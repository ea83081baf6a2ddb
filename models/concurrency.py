"""Running model calls together so that none that was paid for is thrown away."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

T = TypeVar("T")


async def all_settled(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Results in the order given, after every awaitable has ended; then the first error by that order is raised.

    When one call fails its neighbours in flight still end, and their answers reach the journal.
    """
    outcomes = await asyncio.gather(*awaitables, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
