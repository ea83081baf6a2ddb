"""Checkpoints in the order in which they were made, though the clock goes back between two of them.

LangGraph makes ids of the time and takes the highest for the latest. Within a process its ids only grow; here they
continue after those on disk, which an earlier process may have made by a clock that was ahead.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from aiosqlite import Connection


async def continue_ids(connection: Connection) -> None:
    """Have this process make checkpoint ids that are higher than all in the file of `connection`."""
    from langgraph.checkpoint.base import id as ids

    async with connection.execute("SELECT max(checkpoint_id) FROM checkpoints") as cursor:
        newest = await cursor.fetchone()
    with suppress(ValueError, TypeError, IndexError):  # no checkpoint yet, or an id that LangGraph did not make
        made = ids.UUID(hex=UUID((newest or [""])[0]).hex)
        if made.version == 6 and made.time > (ids._last_v6_timestamp or 0):
            ids._last_v6_timestamp = made.time  # type: ignore[assignment]
