"""Shared by the shell's commands: the library, opened while the first line is typed, and the state."""

from __future__ import annotations

import asyncio
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...api.homes import Home, chunk_counts, open_home
from ...errors import CiteloomError, InputError
from ...settings.config import LOCAL_EMBEDDING, Settings
from ..output import notice
from . import display
from .shell_state import INITIAL, ShellState

if TYPE_CHECKING:
    from ...api.homes import Session


NO_PAPERS = "Index your papers first: {citeloom} ingest PAPERS --bib FILE."


class NoPapersError(InputError):
    default_help = NO_PAPERS


class Opening:
    """The session, opened once in the background; after a failure the next command tries again.

    Errors raised while nobody awaits the session are printed.
    """

    def __init__(self, settings: Settings, home: Home) -> None:
        self._settings = settings
        self._home = home
        self._manager: AbstractContextManager[Session] | None = None
        self._task: asyncio.Task[Session] | None = None
        self._waiting = 0

    def start(self) -> None:
        self._task = asyncio.ensure_future(asyncio.to_thread(self._open))
        self._task.add_done_callback(self._tell)

    async def session(self) -> Session:
        """The open session; raises `NoPapersError` and opening errors."""
        if not await asyncio.to_thread(chunk_counts, self._home):
            raise NoPapersError(f"{self._home.name}: no paper is indexed here.")
        if self._task is None or (self._task.done() and (self._task.cancelled() or self._task.exception())):
            self.start()
        assert self._task is not None
        self._waiting += 1
        try:
            # Ctrl-C on a waiting command must not cancel opening.
            return await asyncio.shield(self._task)
        finally:
            self._waiting -= 1

    async def wait(self) -> None:
        """Wait until opening ends; raises its errors."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def opened(self) -> Session | None:
        task = self._task
        ready = task is not None and task.done() and not task.cancelled() and task.exception() is None
        return task.result() if task is not None and ready else None

    def keys(self) -> tuple[str, ...]:
        """The current papers; none while opening."""
        session = self.opened()
        return tuple(session.library.records()) if session is not None else ()

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        if self._manager is not None and self.opened() is not None:
            await asyncio.to_thread(self._manager.__exit__, None, None, None)

    def _open(self) -> Session:
        manager = open_home(self._settings, self._home, notice, create=False)
        session = manager.__enter__()
        self._manager = manager
        if self._settings.embedding_model == LOCAL_EMBEDDING:
            session.library.embedding.count_tokens("ready")  # loads the tokenizer, so the first search need not wait
        return session

    def _tell(self, task: asyncio.Task[Session]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, CiteloomError) and not self._waiting:
            display.failure(str(error))


@dataclass
class Shell:
    """A shell session: its library, its state, and the experiment for sections.

    `thread_id` is the id of its conversation, `turns` counts the finished ones; `behind` is background work.
    """

    opening: Opening
    thread_id: str
    experiment: Path | None = None
    state: ShellState = INITIAL
    turns: int = 0
    told_of_mode: bool = False
    behind: asyncio.Task[None] | None = None

    async def session(self) -> Session:
        if self.opening.opened() is None:
            notice("Opening the library...")
        return await self.opening.session()
