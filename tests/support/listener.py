"""A listener for streamed answers in tests."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path


class Heard:
    """Implements `TextListener`; `said` are the pieces since the last restart."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.restarts = 0
        self._more = asyncio.Event()

    @property
    def text(self) -> str:
        return "".join(self.said)

    def piece(self, text: str) -> None:
        self.said.append(text)
        self._more.set()

    def restart(self) -> None:
        self.said.clear()
        self.restarts += 1

    async def next(self) -> None:
        """Wait for a piece."""
        await asyncio.wait_for(self._more.wait(), 300)
        self._more.clear()


async def ask_in_turn(base_url: str, journal: Path, questions: Sequence[str]) -> None:
    """Ask the questions in sequence, streamed, and print the answers."""
    from langchain_core.messages import HumanMessage

    from citeloom.models.chat_caller import ChatCaller
    from citeloom.models.http.client import close_connections
    from citeloom.models.journal.journal import Journal
    from citeloom.models.journal.records import RunScope
    from citeloom.settings.config import Settings

    settings = Settings(chat_model="some-model", chat_base_url=base_url)
    with Journal(journal) as opened:
        caller = ChatCaller(settings, "writer", journal=opened, scope=RunScope("run"))
        for question in questions:
            heard = Heard()
            await caller.call([HumanMessage(question)], listener=heard)
            sys.stdout.write(f"{heard.text}\n")
    await close_connections()
