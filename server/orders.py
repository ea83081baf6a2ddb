"""Serializes changes to runs, conversations and papers across a library's servers.

A second request sees what the first one left. If its target is gone by then, it gets 409 with the reason, since it
was valid when sent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from inspect import isawaitable
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from ..api.run_texts import NotEditedError
from ..api.serving import CallLocks, RecentEndings, UnknownPaperError
from ..api.stored_conversations import UnknownConversationError
from ..api.stored_runs import UnknownRunError
from .problems import ServerError

T = TypeVar("T")
# The connection of the current request.
connection: ContextVar[str] = ContextVar("connection of the current request", default="")
_GONE: Final = (UnknownRunError, UnknownConversationError, UnknownPaperError)
_POLL_INTERVAL: Final = 0.05  # seconds
_TIMEOUT: Final = 30.0  # seconds to wait for another server


class Orders:
    """Used from one event loop; `locks` exclude other servers. Outside a server, both arguments are None."""

    def __init__(self, endings: RecentEndings | None = None, locks: CallLocks | None = None) -> None:
        self._endings = endings
        self._locks = locks
        self._here: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()

    async def find(self, find: Callable[[], T], ending: str) -> T:
        """Find a request's target; raises `ServerError` if the `ending` (its deletion) just happened."""
        try:
            return await asyncio.to_thread(find)
        except (*_GONE, NotEditedError) as error:
            async with self._lock(ending):
                pass  # an ending that has begun is recorded once it is complete
            if await self.ended_by_another(ending):
                raise _conflict(ending) from error
            raise

    @asynccontextmanager
    async def on(self, ending: str) -> AsyncIterator[None]:
        """Lock the target of an `ending` while changing it; an error says if the `ending` came first."""
        async with self._lock(ending):
            with conflicts(ending):
                yield

    async def end(self, ending: str) -> None:
        if self._endings is not None:
            await asyncio.to_thread(self._endings.add, ending, connection.get())

    async def ended_by_another(self, ending: str) -> bool:
        endings = self._endings
        return endings is not None and await asyncio.to_thread(endings.by_another, ending, connection.get())

    def close(self) -> None:
        if self._locks is not None:
            self._locks.close()

    @asynccontextmanager
    async def _lock(self, ending: str) -> AsyncIterator[None]:
        async with self._here.setdefault(ending, asyncio.Lock()):
            if self._locks is None:
                yield
                return
            key, until = f"order:{ending}", asyncio.get_running_loop().time() + _TIMEOUT
            while not (await taken if isawaitable(taken := self._locks.try_acquire(key)) else taken):
                if asyncio.get_running_loop().time() > until:
                    raise ServerError(503, "Another request works on it.", help="Ask again in a moment.", retry_after=5)
                await asyncio.sleep(_POLL_INTERVAL)
            try:
                yield
            finally:
                self._locks.release(key)


@contextmanager
def conflicts(ending: str) -> Iterator[None]:
    """Turn "not found" errors into `ServerError` with status 409."""
    try:
        yield
    except _GONE as error:
        raise _conflict(ending) from error


def run_deleted(run_id: str) -> str:
    return f"Run {run_id:.200} was deleted"


def conversation_deleted(thread_id: str) -> str:
    return f"Conversation {thread_id:.200} was deleted"


def paper_removed(key: str) -> str:
    return f"Paper {key:.200} was removed"


def edit_withdrawn(run_id: str, position: int | None = None) -> str:
    return f"The edit of {'a sentence' if position is None else f'sentence {position}'} of run {run_id} was withdrawn"


def _conflict(ending: str) -> ServerError:
    return ServerError(409, f"{ending} by another request.")
