"""What the loss of the database means for a job: it is resumed when the database is back, unless others have it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from ..errors import CiteloomError
from ..stores.backends import ServerJobs
from ..stores.postgres.database import ConnectionLostError, LeaseLostError

_PATIENCE: Final = 60.0  # seconds for a database that restarts
_PAUSE: Final = 0.5


def lost_connection(error: BaseException) -> bool:
    """Whether an error goes back to a lost connection, and this server may go on."""
    causes = list(_causes(error))
    lost = any(isinstance(each, ConnectionLostError) for each in causes)
    return lost and not any(isinstance(each, LeaseLostError) for each in causes)


def lost_lease(error: BaseException) -> bool:
    """Whether an error goes back to the refusal of this server, which was taken for dead."""
    return any(isinstance(each, LeaseLostError) for each in _causes(error))


async def is_back(register: ServerJobs) -> bool:
    """Wait for the database to answer again; returns whether it does, and accepts this server."""
    loop = asyncio.get_running_loop()
    until = loop.time() + _PATIENCE
    while loop.time() < until:
        try:
            await asyncio.to_thread(register.entry, "")
        except LeaseLostError:
            return False
        except CiteloomError:
            await asyncio.sleep(_PAUSE)
        else:
            return True
    return False


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
