"""Unreadable journal entries count as absent: damaged journals heal, and lose nothing else."""

from __future__ import annotations

import asyncio
import json
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from citeloom.models.chat_caller import ChatCaller
from citeloom.models.embeddings.remote import endpoint_embedding
from citeloom.models.journal.journal import Journal, prune
from citeloom.models.journal.journal_database import JournalFile
from citeloom.models.journal.records import CallRecord, CallResult, RunScope, Usage
from citeloom.models.journal.single_flight import KeyLocks, SingleFlight
from citeloom.settings.config import Settings
from citeloom.sqlite import DamagedFileError
from tests.support.cli_process import ROOT
from tests.support.fake_clock import FakeClock
from tests.support.journal_calls import once
from tests.support.openai_server import FakeOpenAI

RUN = RunScope("run")
ASKED = [HumanMessage("ducks swimming across quiet ponds")]


def caller_of(server: FakeOpenAI, journal: Journal, run: RunScope = RUN) -> ChatCaller:
    settings = Settings(chat_model="some-model", chat_base_url=server.base_url)
    return ChatCaller(settings, "writer", journal=journal, scope=run)


def change(path: Path, sql: str, *values: Any) -> None:
    with closing(sqlite3.connect(path)) as db, db:
        db.execute(sql, values)


def with_usage(count: Any) -> str:
    usage = {"input_tokens": count, "output_tokens": 2, "total_tokens": 3}
    rest = {"tool_calls": [], "invalid_tool_calls": [], "finish_reason": "stop", "refusal": None}
    return json.dumps({"content": "from long ago", "usage": usage, **rest})


@pytest.mark.parametrize("count", [1.5, "many", 10**24, -7, None, [3], True], ids=str)
async def test_an_answer_with_odd_usage_in_an_old_journal_is_still_read(tmp_path: Path, count: Any) -> None:
    path = tmp_path / "journal.sqlite"
    with FakeOpenAI() as server:
        with Journal(path) as journal:
            await caller_of(server, journal).call(ASKED)
        change(path, "UPDATE answers SET payload = ?", with_usage(count))
        with Journal(path) as journal:
            answer = await caller_of(server, journal).call(ASKED)
        assert server.calls() == 1
    assert answer.message.text == "from long ago"


@pytest.mark.parametrize(
    "payload",
    [
        "",
        "{",
        "[]",
        "null",
        '{"content": "half of what belongs there"}',
        with_usage(1).replace('"from long ago"', "7"),
        "[" * 200_000,
        '{"content": ' + '{"a":' * 200_000 + "1" + "}" * 200_001,
        b"\xff\xfe\x00 no text",
        7,
    ],
    ids=[
        "empty",
        "cut off",
        "a list",
        "null",
        "fields missing",
        "a number as text",
        "deep",
        "deep too",
        "bytes",
        "number",
    ],
)
async def test_an_unreadable_answer_is_requested_again_once(tmp_path: Path, payload: Any) -> None:
    path = tmp_path / "journal.sqlite"
    with FakeOpenAI() as server:
        with Journal(path) as journal:
            first = await caller_of(server, journal).call(ASKED)
            other = await caller_of(server, journal).call([HumanMessage("another question")])
        change(path, "UPDATE answers SET payload = ? WHERE id = 1", payload)
        for run in (RUN, RunScope("later"), RUN):
            with Journal(path) as journal:
                assert await caller_of(server, journal, run).call(ASKED) == first
                assert await caller_of(server, journal, run).call([HumanMessage("another question")]) == other
    assert server.calls() == 3


@pytest.mark.parametrize("payload", ["", "{}", '{"float32": "AAA"}', '{"float32": "AADAfw=="}', "[" * 100_000, b"\xff"])
async def test_an_unreadable_vector_is_requested_again_once(tmp_path: Path, payload: Any) -> None:
    path, texts = tmp_path / "journal.sqlite", ["one", "two", "three"]
    with FakeOpenAI() as server:
        settings = Settings(embedding_model="e", embedding_base_url=server.base_url)
        with Journal(path) as journal:
            first = await endpoint_embedding(settings, journal=journal, scope=RUN).embed_documents(texts)
        change(path, "UPDATE answers SET payload = ? WHERE id = 2", payload)
        for _ in range(2):
            with Journal(path) as journal:
                again = await endpoint_embedding(settings, journal=journal, scope=RUN).embed_documents(texts)
                assert again.tolist() == first.tolist()
        assert [len(body["input"]) for body in server.requests] == [3, 1]


async def _answer() -> CallResult:
    return CallResult('"answer"', 10, 2)


@pytest.mark.parametrize("step", [-3600.0, -1.0, 0.0, 3600.0], ids="back an hour,back a second,still,ahead".split(","))
async def test_a_fresh_run_resumes_even_if_the_clock_goes_back(tmp_path: Path, step: float) -> None:
    """Each question is asked once before it and once by it, though it is killed and resumed at every call."""
    clock, path = FakeClock(50_000.0), tmp_path / "journal.sqlite"
    calls: list[str] = []

    async def ask(journal: Journal, key: str, scope: RunScope) -> None:
        async def call() -> CallResult:
            calls.append(key)
            return CallResult('"answer"', 1, 1)

        await once(journal, CallRecord(key, "chat", "e", "m"), scope, call)

    keys = [f"{number}" for number in range(10)]
    with Journal(path, clock=clock) as journal:
        for key in keys:
            await ask(journal, key, RUN)
    assert calls == keys
    fresh = RunScope("fresh", fresh=True)
    for resumed in range(1, len(keys) + 1):
        with Journal(path, clock=clock) as journal:
            for key in keys[:resumed]:
                await ask(journal, key, fresh)
                clock.now += step
    assert calls == [*keys, *keys]


async def test_a_fresh_run_sees_its_answers_after_older_ones_were_pruned(tmp_path: Path, clock: FakeClock) -> None:
    """SQLite gives ids out again that were pruned; what comes then is newer all the same."""
    path, fresh = tmp_path / "journal.sqlite", RunScope("fresh", fresh=True)
    with Journal(path, clock=clock) as journal:
        for number in range(9):
            await once(journal, CallRecord(f"old {number}", "chat", "e", "m"), RUN, _answer)
        await once(journal, CallRecord("first", "chat", "e", "m"), fresh, _answer)
    prune(JournalFile(path), keep_of_runs=[], older_than=0, now=clock.now + 10)
    with Journal(path, clock=clock) as journal:
        await once(journal, CallRecord("of others", "chat", "e", "m"), RunScope("other"), _answer)
        assert not (await once(journal, CallRecord("of others", "chat", "e", "m"), fresh, _answer)).paid


@pytest.mark.parametrize("column", ["paid", "used_at"])
async def test_the_daily_statistics_report_a_wrong_value_in_the_usage(tmp_path: Path, column: str) -> None:
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        await once(journal, CallRecord("a", "chat", "e", "m"), RUN, _answer)
    change(path, f"UPDATE uses SET {column} = '['")
    named = pytest.raises(DamagedFileError, match=f"table uses, column {column}, row id=1: expected")
    with Journal(path) as journal, named:
        await journal.spending_by_day()


ASKING = """
import asyncio, sys
from pathlib import Path
from langchain_core.messages import HumanMessage
from citeloom.settings.config import Settings
from citeloom.models.http.client import close_connections
from citeloom.models.chat_caller import ChatCaller
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope

async def main():
    settings = Settings(chat_model="some-model", chat_base_url=sys.argv[1], max_concurrency=40)
    with Journal(Path(sys.argv[2])) as journal:
        caller = ChatCaller(settings, "writer", journal=journal, scope=RunScope(sys.argv[3]))
        sys.stdin.readline()
        asked = [caller.call([HumanMessage(f"question {n}")]) for n in range(40)]
        print([answer.message.text for answer in await asyncio.gather(*asked)])
        await close_connections()

asyncio.run(main())
"""


def asking(server: FakeOpenAI, path: Path, run: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", ASKING, server.base_url, str(path), run],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_equal_calls_of_two_processes_are_paid_once(tmp_path: Path) -> None:
    with FakeOpenAI(delay=0.2) as server:
        processes = [asking(server, tmp_path / "journal.sqlite", run) for run in ("one", "two")]
        for process in processes:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        said = [process.communicate(timeout=300)[0] for process in processes]
        assert server.calls() == 40
    assert said[0] == said[1] != ""


def test_no_process_waits_for_one_that_was_killed(tmp_path: Path) -> None:
    with FakeOpenAI(failures=["hang"] * 40) as server:
        with asking(server, tmp_path / "journal.sqlite", "killed") as killed:
            assert killed.stdin is not None
            killed.stdin.write("go\n")
            killed.stdin.flush()
            look = threading.Event()
            while server.calls() < 40:
                assert killed.poll() is None
                look.wait(0.02)
            heir = asking(server, tmp_path / "journal.sqlite", "heir")
            assert heir.stdin is not None
            heir.stdin.write("go\n")
            heir.stdin.flush()
            killed.kill()
        out, _ = heir.communicate(timeout=300)
        assert heir.returncode == 0 and out.strip()
        assert server.calls() == 80


async def test_no_process_waits_forever_for_one_that_is_stopped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citeloom.models.journal.single_flight.CALL_TIMEOUT", 0.05)
    path = tmp_path / "journal.sqlite"
    holding = (
        "import sys\nfrom pathlib import Path\nfrom citeloom.models.journal.journal_database import JournalFile\n"
        "print(JournalFile(Path(sys.argv[1])).call_locks().try_acquire('a'), flush=True)\nsys.stdin.readline()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holding, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as still:
        assert still.stdout is not None and still.stdout.readline() == "True\n"
        with Journal(path) as journal:
            async with asyncio.timeout(300):
                assert (await once(journal, CallRecord("a", "chat", "e", "m"), RUN, _answer)).paid
        still.communicate("end\n")


async def test_a_file_that_cannot_be_locked_blocks_no_call(tmp_path: Path) -> None:
    """A link in its place is not followed, and nothing is written through it."""
    path, victim = tmp_path / "journal.sqlite", tmp_path / "victim"
    victim.write_text("of value")
    (tmp_path / "journal.sqlite-calls").symlink_to(victim)
    with Journal(path) as journal, Journal(path) as second:
        assert (await once(journal, CallRecord("a", "chat", "e", "m"), RUN, _answer)).paid
        assert not (await once(second, CallRecord("a", "chat", "e", "m"), RUN, _answer)).paid
        assert await second.usage(RUN) == Usage(1, 1, 10, 2)
    assert victim.read_text() == "of value"
    assert path not in SingleFlight._open, "other journals of this process may still be open"


async def test_the_lock_file_is_deleted_with_its_last_user_without_losing_a_key(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite-calls"
    with Journal(tmp_path / "journal.sqlite") as journal:
        assert not path.exists()
        assert (await once(journal, CallRecord("a", "chat", "e", "m"), RUN, _answer)).paid
        assert path.exists()
    assert not path.exists()
    left = KeyLocks(path)
    assert left.try_acquire("a")
    path.unlink()  # as another process does that closes it between two calls of this one
    assert left.try_acquire("b") and path.exists()
    left.close()
    assert not path.exists()
