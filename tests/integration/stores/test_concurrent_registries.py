"""Registers and checkpoints of a new home, created by many processes at once: none reports a lock."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from citeloom.stores.local.checkpoints import open_checkpoints
from citeloom.stores.run_register import ConversationRegister, RunRegister
from tests.support.home_tables import run_tables

AT_ONCE = 12


def test_many_processes_can_create_the_register_at_once(tmp_path: Path) -> None:
    for number in range(10):
        together = threading.Barrier(AT_ONCE)

        def ask(place: int, path: Path = tmp_path / f"{number}.sqlite", wait: threading.Barrier = together) -> int:
            wait.wait()
            ConversationRegister(run_tables(path)).begin(f"chat-{place}")
            return RunRegister(run_tables(path)).count()

        with ThreadPoolExecutor(AT_ONCE) as threads:
            assert list(threads.map(ask, range(AT_ONCE))) == [0] * AT_ONCE


async def test_many_processes_can_open_checkpoints_at_once(tmp_path: Path) -> None:
    async def ask() -> bool:
        async with open_checkpoints(tmp_path / "checkpoints.sqlite") as saver:
            return await saver.aget_tuple({"configurable": {"thread_id": "none", "checkpoint_ns": ""}}) is None

    assert all(await asyncio.gather(*(ask() for _ in range(AT_ONCE))))
