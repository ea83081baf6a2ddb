"""What the shell's commands work with."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..output import notice
from .background_open import Opening
from .state import INITIAL, ShellState

if TYPE_CHECKING:
    from ...api.homes import Session


@dataclass
class Shell:
    """A shell session: its library, its state, and the experiment for sections.

    `thread_id` is its conversation's, of which `turns` are over; `behind` is the background work.
    """

    opening: Opening
    thread_id: str
    experiment: Path | None = None
    state: ShellState = INITIAL
    turns: int = 0
    told_of_mode: bool = False
    behind: asyncio.Task[None] | None = None

    async def settle(self) -> None:
        """Wait for background work, such as finding an interrupted question."""
        if self.behind is not None:
            await asyncio.wait([self.behind])

    async def session(self) -> Session:
        """The open library; raises `NoPapersError` and what opening raises."""
        if self.opening.opened() is None:
            notice("Opening the library...")
        return await self.opening.session()
