"""What the shell's commands work with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from citeloom.commands.shell.opening import Opening
from citeloom.commands.shell.state import INITIAL, ShellState

if TYPE_CHECKING:
    from citeloom.graph.workbench import Workbench


@dataclass
class Shell:
    """One session: where its library is, what it remembers, and the experiment that sections are written of."""

    opening: Opening
    experiment: Path | None = None
    state: ShellState = INITIAL

    async def workbench(self) -> Workbench:
        """The open library; raises `NoPapersError` and what opening raises."""
        return await self.opening.workbench()
