"""A clock that goes back between two commands: what was made last is still the latest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import empty_checkpoint, id as ids

from citeloom.stores.local.checkpoints import open_checkpoints
from citeloom.stores.run_register import RunRecord, RunRegister
from tests.support.home_tables import run_tables

STEPS = pytest.mark.parametrize("step", [-31_536_000, -3600, -1, 0, 3600], ids=str)


@STEPS
def test_the_latest_run_is_the_one_started_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    now = 1_900_000_000.0
    monkeypatch.setattr("citeloom.stores.run_register.time.time", lambda: now)
    register = RunRegister(run_tables(tmp_path / "runs.sqlite"))
    for name in ("first", "second", "third"):
        begun = _begin(register, name)
        now += step
        for found in (register.latest("mark"), register.latest_about("about")):
            assert found is not None and found.thread_id == begun.thread_id


def _begin(register: RunRegister, name: str) -> RunRecord:
    return register.begin(
        thread_id=name,
        fingerprint="mark",
        section="discussion",
        title="a title",
        request={"question": "about"},
        library_version="1",
        fresh=True,
    )


@STEPS
async def test_a_run_resumes_at_its_latest_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    now = 1_900_000_000
    monkeypatch.setattr(ids.time, "time_ns", lambda: now * 10**9)
    config: Any = {"configurable": {"thread_id": "run", "checkpoint_ns": ""}}
    for _ in range(4):
        monkeypatch.setattr(ids, "_last_v6_timestamp", None)  # as in a process of its own
        async with open_checkpoints(tmp_path / "checkpoints.sqlite") as saver:
            for _ in range(3):
                made = empty_checkpoint()
                await saver.aput(config, made, {}, {})
                latest = await saver.aget_tuple(config)
                assert latest is not None and latest.checkpoint["id"] == made["id"]
        now += step


@pytest.mark.parametrize("name", ["", "no id", "ffffffff-ffff-4fff-bfff-ffffffffffff", "ä" * 40])
async def test_an_invalid_checkpoint_id_stops_nothing(tmp_path: Path, name: str) -> None:
    path = tmp_path / "checkpoints.sqlite"
    config: Any = {"configurable": {"thread_id": "other", "checkpoint_ns": ""}}
    async with open_checkpoints(path) as saver:
        await saver.aput(config, empty_checkpoint() | {"id": name}, {}, {})
    async with open_checkpoints(path) as saver:
        assert await saver.aget_tuple(config) is not None
