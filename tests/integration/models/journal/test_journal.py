"""No committed answer is paid twice, whatever is cancelled, fails or is killed meanwhile."""

from __future__ import annotations

import asyncio
import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from citeloom.models.journal.journal import Journal, JournalError, JournalPausedError
from citeloom.models.journal.records import CallRecord, CallResult, RunScope, Usage
from tests.support.fake_clock import FakeClock
from tests.support.journal_calls import once

RUN = RunScope("run")
LATER = RunScope("later")


def record(key: str) -> CallRecord:
    return CallRecord(key, "chat", "http://host/v1", "m")


class Model:
    """Answers with a number that grows with each call; waits for `gate` when there is one."""

    def __init__(self, gate: asyncio.Event | None = None) -> None:
        self.calls = 0
        self.gate = gate
        self.started = asyncio.Event()

    async def __call__(self) -> CallResult:
        self.calls += 1
        answer = self.calls
        self.started.set()
        if self.gate is not None:
            await self.gate.wait()
        return CallResult(f'"answer {answer}"', 10, 2)


async def test_an_answer_is_paid_for_once_and_replayed(journal: Journal) -> None:
    model = Model()
    first = await once(journal, record("a"), RUN, model)
    again = await once(journal, record("a"), RUN, model)
    elsewhere = await once(journal, record("a"), LATER, model)
    assert (first.payload, first.paid) == ('"answer 1"', True)
    assert (again.payload, again.paid) == (elsewhere.payload, elsewhere.paid) == ('"answer 1"', False)
    assert model.calls == 1
    assert await journal.usage(RUN) == Usage(1, 1, 10, 2)
    assert await journal.usage(LATER) == Usage(0, 1, 0, 0)


async def test_an_answer_outlives_the_process_that_paid_for_it(tmp_path: Path) -> None:
    model = Model()
    for _ in range(2):
        with Journal(tmp_path / "deep" / "journal.sqlite") as journal:
            replay = await once(journal, record("a"), RUN, model)
    assert (replay.payload, model.calls) == ('"answer 1"', 1)


async def test_equal_calls_in_flight_are_paid_for_once(journal: Journal) -> None:
    model = Model(asyncio.Event())
    tasks = [asyncio.create_task(once(journal, record("a"), RUN, model)) for _ in range(20)]
    await model.started.wait()
    assert model.gate is not None
    model.gate.set()
    replays = await asyncio.gather(*tasks)
    assert model.calls == 1
    assert sum(replay.paid for replay in replays) == 1
    assert {replay.payload for replay in replays} == {'"answer 1"'}


async def test_a_waiting_caller_takes_over_from_a_cancelled_one(journal: Journal) -> None:
    hanging = Model(asyncio.Event())
    owner = asyncio.create_task(once(journal, record("a"), RUN, hanging))
    await hanging.started.wait()
    model = Model()
    waiters = [asyncio.create_task(once(journal, record("a"), RUN, model)) for _ in range(3)]
    await asyncio.sleep(0)
    owner.cancel()
    replays = await asyncio.gather(*waiters)
    assert owner.cancelled()
    assert model.calls == 1
    assert [replay.payload for replay in replays] == ['"answer 1"'] * 3


async def test_a_waiting_caller_takes_over_from_a_failed_one(journal: Journal) -> None:
    gate = asyncio.Event()
    started = asyncio.Event()

    async def fail() -> CallResult:
        started.set()
        await gate.wait()
        raise ConnectionError("gone")

    owner = asyncio.create_task(once(journal, record("a"), RUN, fail))
    await started.wait()
    model = Model()
    waiter = asyncio.create_task(once(journal, record("a"), RUN, model))
    await asyncio.sleep(0)
    gate.set()
    with pytest.raises(ConnectionError, match="gone"):
        await owner
    assert (await waiter).payload == '"answer 1"'


async def test_cancelling_a_waiting_caller_affects_no_other(journal: Journal) -> None:
    model = Model(asyncio.Event())
    owner = asyncio.create_task(once(journal, record("a"), RUN, model))
    await model.started.wait()
    leaving, staying = (asyncio.create_task(once(journal, record("a"), RUN, Model())) for _ in range(2))
    await asyncio.sleep(0)
    leaving.cancel()
    await asyncio.sleep(0)
    assert model.gate is not None
    model.gate.set()
    assert (await owner).paid
    assert (await staying).payload == '"answer 1"'


async def test_an_answer_that_arrived_is_kept_if_its_task_is_cancelled(journal: Journal) -> None:
    answered = asyncio.Event()

    async def answer() -> CallResult:
        answered.set()
        return CallResult('"paid for"')

    task = asyncio.create_task(once(journal, record("a"), RUN, answer))
    await answered.wait()  # the task now waits for the commit
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (await once(journal, record("a"), RUN, Model())).payload == '"paid for"'


def test_tasks_in_several_event_loops_share_one_call(tmp_path: Path) -> None:
    model = Model()
    inside, outside = asyncio.Event(), asyncio.Event()
    with Journal(tmp_path / "journal.sqlite") as journal:

        def other_thread() -> str:
            return asyncio.run(once(journal, record("a"), RUN, model)).payload

        async def main() -> list[str]:
            async def slow() -> CallResult:
                inside.set()
                await outside.wait()
                return await model()

            owner = asyncio.create_task(once(journal, record("a"), RUN, slow))
            await inside.wait()
            waiter = asyncio.create_task(asyncio.to_thread(other_thread))
            while not journal._flights._in_flight["a"].waiters:
                await asyncio.sleep(0)
            outside.set()
            return [(await owner).payload, await waiter]

        assert asyncio.run(main()) == ['"answer 1"'] * 2
    assert model.calls == 1


async def test_a_rejected_answer_is_replayed_only_in_its_own_run(journal: Journal, clock: FakeClock) -> None:
    model = Model()
    await once(journal, record("a"), RUN, model)
    await journal.reject("a", RUN)
    assert (await once(journal, record("a"), RUN, model)).payload == '"answer 1"'
    assert (await once(journal, record("a"), LATER, model)).payload == '"answer 2"'
    # The first run still walks the way it went.
    assert (await once(journal, record("a"), RUN, model)).payload == '"answer 1"'
    assert (await once(journal, record("a"), RunScope("third"), model)).payload == '"answer 2"'
    assert model.calls == 2


async def test_rejecting_an_answer_that_was_never_returned_changes_nothing(journal: Journal) -> None:
    model = Model()
    await once(journal, record("a"), RUN, model)
    await journal.reject("a", LATER)
    assert not (await once(journal, record("a"), LATER, model)).paid


async def test_a_fresh_run_ignores_older_answers_and_still_resumes(journal: Journal, clock: FakeClock) -> None:
    model = Model()
    await once(journal, record("a"), RUN, model)
    clock.now += 10
    fresh = RunScope("fresh", fresh=True)
    clock.now += 1
    assert (await once(journal, record("a"), fresh, model)).payload == '"answer 2"'
    assert (await once(journal, record("a"), fresh, model)).payload == '"answer 2"'
    assert await journal.usage(fresh) == Usage(1, 1, 10, 2)
    assert (await once(journal, record("a"), LATER, model)).payload == '"answer 2"'


async def test_a_run_keeps_its_answers_when_a_fresh_one_makes_newer_ones(journal: Journal, clock: FakeClock) -> None:
    model = Model()
    await once(journal, record("a"), RunScope("first"), model)
    assert not (await once(journal, record("a"), RUN, model)).paid
    clock.now += 10
    await once(journal, record("a"), RunScope("fresh", fresh=True), model)
    assert (await once(journal, record("a"), RUN, model)).payload == '"answer 1"'


async def test_a_forgotten_run_counts_from_zero_but_pays_nothing_again(journal: Journal) -> None:
    model = Model()
    await once(journal, record("a"), RUN, model)
    await journal.forget("run")
    assert await journal.usage(RUN) == Usage()
    assert not (await once(journal, record("a"), RUN, model)).paid


async def test_a_batch_requests_each_missing_answer_once(journal: Journal) -> None:
    asked: list[list[int]] = []

    async def call(positions: Sequence[int]) -> list[CallResult]:
        asked.append(list(positions))
        return [CallResult(f'"{position}"') for position in positions]

    keys = ["c", "a", "b", "a"]
    await once(journal, record("b"), RUN, Model())
    replays = await journal.get_or_call([record(key) for key in keys], RUN, call)
    assert asked == [[0, 1]]
    assert [replay.payload for replay in replays] == ['"0"', '"1"', '"answer 1"', '"1"']
    assert await journal.get_or_call([], RUN, call) == []


async def test_overlapping_batches_do_not_deadlock(journal: Journal) -> None:
    asked: list[str] = []

    def batch(*keys: str) -> Awaitable[object]:
        async def call(positions: Sequence[int]) -> list[CallResult]:
            await asyncio.sleep(0)
            asked.extend(keys[position] for position in positions)
            return [CallResult(f'"{keys[position]}"') for position in positions]

        return journal.get_or_call([record(key) for key in keys], RUN, call)

    busy = Model(asyncio.Event())
    owner = asyncio.create_task(once(journal, record("m"), RUN, busy))
    await busy.started.wait()
    # The first takes what comes before m; the second wants some of that, and holds what the first wants next.
    batches = asyncio.gather(batch("a", "m", "z"), batch("z", "a"), batch("b", "z"), batch("m", "b"))
    await asyncio.sleep(0)
    assert busy.gate is not None
    busy.gate.set()
    async with asyncio.timeout(300):
        await batches
        await owner
    assert sorted(asked) == ["a", "b", "z"]


async def test_a_failed_batch_leaves_nothing_behind(journal: Journal) -> None:
    async def fail(_: Sequence[int]) -> list[CallResult]:
        raise ConnectionError("gone")

    with pytest.raises(ConnectionError):
        await journal.get_or_call([record("a"), record("b")], RUN, fail)
    assert (await once(journal, record("b"), RUN, Model())).paid


async def test_a_failing_task_does_not_undo_others_in_its_transaction(journal: Journal) -> None:
    def fail(_: sqlite3.Connection) -> None:
        raise sqlite3.IntegrityError("bad")

    model = Model()
    good = [asyncio.create_task(once(journal, record(f"{n}"), RUN, model)) for n in range(10)]
    bad = asyncio.create_task(journal.submit(fail))
    await asyncio.gather(*good)
    with pytest.raises(JournalPausedError, match="bad"):
        await bad
    assert (await journal.usage(RUN)).llm_calls == 10


async def test_work_after_closing_is_refused(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "journal.sqlite")
    journal.close()
    journal.close()
    with pytest.raises(JournalPausedError):
        await once(journal, record("a"), RUN, Model())


def not_a_database(path: Path) -> None:
    path.write_bytes(b"this is not a database, but long enough to look at" * 20)


def newer(path: Path) -> None:
    with sqlite3.connect(path) as db:
        db.execute("PRAGMA user_version = 99")
    db.close()


def folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (not_a_database, "Move the file away"),  # the remedies differ
        (newer, "99"),
        (folder, "--home"),
    ],
    ids=["not a database", "newer", "a folder"],
)
def test_a_journal_that_cannot_be_opened_is_reported(tmp_path: Path, spoil: Callable[[Path], None], words: str) -> None:
    path = tmp_path / "journal.sqlite"
    spoil(path)
    with pytest.raises(JournalError) as caught:
        Journal(path)
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert caught.value.exit_code == 2


async def test_a_journal_locked_by_another_process_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citeloom.models.journal.journal_database.LOCK_TIMEOUT", 0.01)
    path = tmp_path / "journal.sqlite"
    with Journal(path) as journal:
        other = sqlite3.connect(path, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(JournalPausedError) as caught:
            await once(journal, record("a"), RUN, Model())
        assert caught.value.exit_code == 3
        other.close()
        assert (await once(journal, record("a"), RUN, Model())).paid


async def test_two_journals_on_one_file_see_each_others_answers(tmp_path: Path) -> None:
    model = Model()
    with Journal(tmp_path / "j.sqlite") as one, Journal(tmp_path / "j.sqlite") as two:
        await once(one, record("a"), RUN, model)
        assert not (await once(two, record("a"), LATER, model)).paid


KILLED = """
    import asyncio, sys
    from pathlib import Path
    from citeloom.models.journal.journal import Journal
    from citeloom.models.journal.records import CallRecord, CallResult, RunScope

    async def main():
        with Journal(Path(sys.argv[1])) as journal:
            async def ask(number):
                async def call(_):
                    print("called", number, flush=True)
                    return [CallResult(f'"{number}"')]
                await journal.get_or_call([CallRecord(str(number), "chat", "e", "m")], RunScope("run"), call)
                print("handed", number, flush=True)
            for start in range(0, 4000, 8):
                await asyncio.gather(*[ask(number) for number in range(start, start + 8)])

    asyncio.run(main())
"""


@pytest.mark.parametrize("moment", [3, 40, 171])
async def test_answers_that_were_returned_survive_a_kill(tmp_path: Path, moment: int) -> None:
    path = tmp_path / "journal.sqlite"
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(KILLED), str(path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline() for _ in range(moment)]
    os.kill(process.pid, signal.SIGKILL)
    lines += process.stdout.readlines()
    process.wait()
    process.stdout.close()
    words = [line.split() for line in lines if line.endswith("\n")]
    handed = {word[1] for word in words if word[0] == "handed"}
    called = [word[1] for word in words if word[0] == "called"]
    assert called and len(called) == len(set(called))
    model = Model()
    with Journal(path) as journal:
        for number in sorted(handed):
            assert (await once(journal, record(number), RUN, model)).payload == f'"{number}"'
        for number in called:
            await once(journal, record(number), RUN, model)
    # Only those that were in flight at the kill are paid again.
    assert model.calls <= len(set(called) - handed) <= 8
