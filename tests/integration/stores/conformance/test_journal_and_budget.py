"""The journal and its budgets keep their promises on every backend."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from datetime import datetime

import pytest

from citeloom.models.journal.budget import Budget, BudgetLimits, BudgetReachedError
from citeloom.models.journal.journal import Journal, JournalPausedError, prune, survey
from citeloom.models.journal.journal_database import JournalConnection, load_context_sizes, save_context_sizes
from citeloom.models.journal.records import CallRecord, CallResult, Reservation, RunScope
from citeloom.stores.home import Home
from tests.support.fake_clock import FakeClock
from tests.support.journal_calls import once

RUN, OTHER = RunScope("run"), RunScope("other")


def record(key: str) -> CallRecord:
    return CallRecord(key, "chat", "http://host/v1", "some-model")


class Model:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def answer(self) -> CallResult:
        self.calls += 1
        await asyncio.sleep(0)
        return CallResult(f'"answer {self.calls} ✓"', 10, 5)


@pytest.fixture
def journal(backend: Home) -> Iterator[Journal]:
    with backend.open_journal() as opened:
        yield opened


async def test_an_answered_call_is_never_made_again(backend: Home, journal: Journal) -> None:
    model = Model()
    first = await once(journal, record("a"), RUN, model.answer)
    again = await once(journal, record("a"), OTHER, model.answer)
    assert (first.payload, first.paid, again.payload, again.paid) == ('"answer 1 ✓"', True, '"answer 1 ✓"', False)
    with backend.open_journal() as reopened:
        assert (await once(reopened, record("a"), RUN, model.answer)).payload == first.payload
    assert model.calls == 1
    assert (await journal.usage(RUN)).llm_calls == 1
    assert (await journal.usage(OTHER)).journal_hits == 1


async def test_equal_concurrent_calls_are_made_once(backend: Home, journal: Journal) -> None:
    model = Model()
    with backend.open_journal() as second:
        answers = await asyncio.gather(
            *(once(each, record("a"), RUN, model.answer) for each in (journal, second) for _ in range(10))
        )
    assert {answer.payload for answer in answers} == {'"answer 1 ✓"'}
    assert model.calls == 1


async def test_a_failing_statement_affects_no_other_work(journal: Journal) -> None:
    def break_off(db: JournalConnection) -> None:
        row = ("run", "a", None)
        db.execute("INSERT INTO uses (run, key, answer, paid, used_at) VALUES (?, ?, ?, 0, 0)", row)

    work = (journal.remember({"good": "kept"}, "some-model"), journal.submit(break_off))
    kept, broken = await asyncio.gather(*work, return_exceptions=True)
    assert kept is None and isinstance(broken, JournalPausedError)
    assert await journal.recall(["good"], OTHER) == {"good": "kept"}


async def test_a_failed_or_cancelled_call_can_be_made_again(journal: Journal) -> None:
    async def fail() -> CallResult:
        raise ValueError("no answer")

    with pytest.raises(ValueError, match="no answer"):
        await once(journal, record("a"), RUN, fail)
    hanging = asyncio.Event()

    async def hang() -> CallResult:
        hanging.set()
        await asyncio.Event().wait()
        raise AssertionError

    task = asyncio.ensure_future(once(journal, record("a"), RUN, hang))
    await hanging.wait()
    task.cancel()
    assert (await once(journal, record("a"), RUN, Model().answer)).paid


async def test_a_rejected_answer_is_replayed_only_in_its_run(journal: Journal) -> None:
    model = Model()
    await once(journal, record("a"), RUN, model.answer)
    await journal.reject("a", RUN)
    assert not (await once(journal, record("a"), RUN, model.answer)).paid
    assert (await once(journal, record("a"), OTHER, model.answer)).paid


async def test_a_fresh_run_ignores_earlier_answers_but_not_its_own(journal: Journal) -> None:
    model, fresh = Model(), RunScope("fresh", fresh=True)
    await once(journal, record("a"), RUN, model.answer)
    assert (await once(journal, record("a"), fresh, model.answer)).paid
    assert not (await once(journal, record("a"), fresh, model.answer)).paid
    assert model.calls == 2


async def test_an_unreadable_answer_counts_as_absent(journal: Journal) -> None:
    model = Model()
    await once(journal, record("a"), RUN, model.answer)
    await journal.discard(["a"], RUN)
    assert (await once(journal, record("a"), RUN, model.answer)).paid


async def test_one_request_answers_several_records(journal: Journal) -> None:
    asked: list[Sequence[int]] = []

    async def batch(positions: Sequence[int]) -> list[CallResult]:
        asked.append(positions)
        return [CallResult(f"{position}") for position in positions]

    await once(journal, record("b"), RUN, Model().answer)
    answers = await journal.get_or_call([record(key) for key in "abca"], RUN, batch)
    assert asked == [[0, 2]]
    assert [answer.paid for answer in answers] == [True, False, True, True]


async def test_a_forgotten_run_has_spent_nothing(journal: Journal) -> None:
    await once(journal, record("a"), RUN, Model().answer)
    sizes: dict[tuple[str, str], int | None] = {("http://host/v1", "some-model"): 4096, ("http://host/v1", "m"): None}
    await journal.submit(lambda db: save_context_sizes(db, "run", sizes))
    await journal.submit(lambda db: save_context_sizes(db, "run", sizes))
    assert await journal.submit(lambda db: load_context_sizes(db, "run")) == sizes
    await journal.forget("run")
    assert await journal.spending(["run"]) == await journal.spending([]) == []
    assert await journal.submit(lambda db: load_context_sizes(db, "run")) == {}
    assert not (await once(journal, record("a"), OTHER, Model().answer)).paid


async def test_spending_is_counted_by_local_day(backend: Home) -> None:
    midnight = datetime(2026, 3, 2).timestamp()
    clock = FakeClock(midnight - 0.25)
    with Journal(backend.journal_database(), clock=clock) as journal:
        await once(journal, record("a"), RUN, Model().answer)
        clock.now = midnight + 0.25
        await once(journal, record("a"), OTHER, Model().answer)
        await once(journal, record("b"), OTHER, Model().answer)
        clock.now = midnight + 80_000
        await once(journal, record("c"), OTHER, Model().answer)
        days = [(day, each.paid, each.reused, each.input_tokens) for day, each in await journal.spending_by_day()]
    assert days == [("2026-03-01", 1, 0, 10), ("2026-03-02", 2, 1, 20)]


async def test_pruning_keeps_counts_and_the_answers_of_unfinished_runs(backend: Home) -> None:
    database, model, clock = backend.journal_database(), Model(), FakeClock(1_000_000.0)
    with Journal(database, clock=clock) as journal:
        for key in "abc":
            await once(journal, record(key), RUN, model.answer)
        await once(journal, record("d"), OTHER, model.answer)
        await journal.reject("c", RUN)
        kept = survey(database)
        assert [kept[name] for name in ("answers", "rejected", "made", "oldest")] == [4, 1, 4, 1_000_000.0]
        assert kept["file_bytes"] > 0
        assert [(row["model"], row["answers"]) for row in kept["models"]] == [("some-model", 4)]
        dry = prune(database, keep_of_runs=[], rejected=True, dry_run=True)
        assert (dry["answers"], dry["kept_for_runs"], survey(database)["answers"]) == (1, 0, 4)
        gone = prune(database, keep_of_runs=["other"], older_than=1, now=1_100_000.0)
        assert (gone["answers"], gone["kept_for_runs"]) == (3, 1)
        assert prune(database, keep_of_runs=[], older_than=1, embeddings=True)["answers"] == 0
        assert not (await once(journal, record("d"), RUN, model.answer)).paid
        fresh = RunScope("fresh", fresh=True)
        assert (await once(journal, record("a"), fresh, model.answer)).paid
        assert not (await once(journal, record("a"), fresh, model.answer)).paid
        assert sum(row.paid for row in await journal.spending(["run"])) == 3


async def test_several_processes_together_stay_within_a_budget(backend: Home) -> None:
    limits, sent = BudgetLimits(calls=7), 0
    journals = [backend.open_journal() for _ in range(3)]
    budgets = [Budget(limits, {}, journal, "run") for journal in journals]

    async def call(place: int, number: int) -> None:
        nonlocal sent
        hold = Reservation("run", record(f"{place}-{number}"), 1, 10, 5)

        async def answer() -> CallResult:
            nonlocal sent
            async with budgets[place].reserve(hold):
                sent += 1
            return CallResult("x", 10, 5, hold)

        await once(journals[place], hold.record, RUN, answer)
        budgets[place].finish(hold, (10, 5))

    outcomes = await asyncio.gather(*(call(place, n) for place in range(3) for n in range(10)), return_exceptions=True)
    spent = await journals[0].spending(["run"])
    for journal in journals:
        journal.close()
    assert sent == sum(row.paid for row in spent) == 7
    assert sum(isinstance(outcome, BudgetReachedError) for outcome in outcomes) == 23
    assert [row.reserved_calls for row in spent] == [0]
