"""Jobs and their events, without any store."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from citeloom.server import jobs as jobs_module
from citeloom.server.job import Emit, EventLog
from citeloom.server.jobs import Jobs
from citeloom.server.problems import ServerError
from citeloom.stores.server_jobs import EventPage, JobEntry, JobOrder, ServerJobs


class Register(ServerJobs):
    """Holds orders in memory."""

    def __init__(self) -> None:
        self.orders: dict[str, JobOrder] = {}

    def begin(self, order: JobOrder, *_: object) -> None:
        self.orders[order.id] = order

    def end(self, job_id: str, *_: object) -> None:
        self.orders.pop(job_id, None)


def made(**limits: int) -> tuple[Jobs, Register]:
    register = Register()
    given: Any = {"max_active": 2, "max_waiting": 2} | limits
    return Jobs(register, **given), register


async def nothing(emit: Emit) -> Mapping[str, Any]:
    emit("stage", {})
    return {}


async def forever(emit: Emit) -> Mapping[str, Any]:
    emit("stage", {})
    await asyncio.Event().wait()
    return {}


async def names(log: EventLog, last_id: str | None = None) -> list[str]:
    return [event.name async for event in log.read(last_id)]


async def test_a_job_joined_while_being_registered_is_waited_for() -> None:
    jobs, _ = made()
    order = JobOrder("run", "run", {})
    first, second = await asyncio.gather(jobs.start(order, nothing), jobs.start(order, nothing))
    assert first is second
    await second.ended()
    assert second.state == "finished"


async def test_a_job_stopped_at_once_ends_its_events() -> None:
    jobs, register = made()
    starting = asyncio.create_task(jobs.start(JobOrder("run", "run", {}), forever))
    await asyncio.sleep(0)
    assert await jobs.stop("run") is True
    job = await starting
    assert (await names(job.log))[-1] == "stopped" and job.state == "paused"
    assert register.orders == {}


async def test_closed_jobs_stay_registered() -> None:
    jobs, register = made()
    job = await jobs.start(JobOrder("run", "run", {}), forever)
    await jobs.close()
    assert job.state == "paused" and list(register.orders) == ["run"]
    with pytest.raises(ServerError, match="shutting down"):
        await jobs.start(JobOrder("other", "run", {}), nothing)


async def test_the_oldest_events_are_dropped_by_number_and_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs_module, "_LATEST", 3)
    jobs, _ = made()
    for place in range(6):
        await (await jobs.start(JobOrder(f"run-{place}", "run", {}), nothing)).ended()
    assert [jobs.find_here(f"run-{place}") is not None for place in range(6)] == [False, False, True, True, True, True]
    monkeypatch.setattr(jobs_module, "_MOST_TEXT", 0)
    await (await jobs.start(JobOrder("last", "run", {}), nothing)).ended()
    assert jobs.find_here("run-5") is None and jobs.find_here("last") is not None


async def test_a_reader_waiting_for_events_gets_them_in_order_and_then_the_end() -> None:
    log = EventLog("e")
    reading = asyncio.create_task(names(log))
    for name in ("one", "two", "three"):
        await asyncio.sleep(0)
        log.append(name, {"half": "\ud800"})
    log.close()
    assert await reading == ["one", "two", "three"]
    assert await names(log, "e.1") == ["three"] and await names(log, "e.2") == []
    assert log.exhausted_after("e.2") and not log.exhausted_after("e.1")
    for odd in ("e.3", "e.-1", "e.²", "e." + "9" * 5000, "other.1", "e"):
        assert await names(log, odd) == ["reset", "one", "two", "three"], odd


async def test_readers_of_a_restarted_log_get_a_reset_and_then_the_new_events() -> None:
    log = EventLog("first")
    log.append("one", {})
    reading = asyncio.create_task(names(log))
    await asyncio.sleep(0)
    log.restart("second")
    log.append("two", {})
    log.close()
    assert await reading == ["one", "reset", "two"]
    assert await names(log, "first.0") == ["reset", "two"] and await names(log, "second.0") == []


async def test_a_reader_ahead_of_a_log_waits_for_newer_events() -> None:
    log = EventLog("e")
    reading = asyncio.create_task(names(log, "e.1"))
    for name in ("one", "two", "three"):
        await asyncio.sleep(0)
        log.append(name, {})
    log.close()
    assert await reading == ["three"], "the events that it has seen were still on their way from another server"


class Others(ServerJobs):
    """The register of a database on which another server works on every job."""

    shared = True

    def __init__(self, *pages: EventPage) -> None:
        self.pages = list(pages)
        self.stopped: list[str] = []

    def begin(self, order: JobOrder, *_: object) -> JobEntry:
        return JobEntry(order, "theirs", "working")

    def entry(self, job_id: str) -> JobEntry:
        return JobEntry(JobOrder(job_id, "turn", {"asked": "theirs"}), "theirs", "working")

    def events(self, job_id: str, epoch: str, seen: int) -> EventPage:
        return self.pages.pop(0)

    def request_stop(self, job_id: str) -> None:
        self.stopped.append(job_id)


DONE = EventPage("theirs", "finished", [("stage", "{}"), ("done", '{"result": {"text": "theirs"}}')])


async def test_a_job_on_another_server_is_followed_to_its_end() -> None:
    jobs = Jobs(Others(DONE), max_active=1, max_waiting=0)
    job = await jobs.start(JobOrder("run", "run", {}), nothing)
    await job.ended()
    assert job.followed and (job.state, job.result) == ("finished", {"text": "theirs"})
    assert await names(job.log) == ["stage", "done"] and jobs.active() == []


async def test_another_turn_is_refused_while_another_server_answers() -> None:
    jobs = Jobs(Others(DONE), max_active=1, max_waiting=0)
    found = await jobs.find("chat")
    assert found is not None and found.order.request == {"asked": "theirs"}
    with pytest.raises(ServerError, match="is active"):
        await jobs.require_idle("chat")


async def test_a_job_on_another_server_is_stopped_there() -> None:
    register = Others(EventPage("theirs", "paused", [("stopped", "{}")]))
    jobs = Jobs(register, max_active=1, max_waiting=0)
    assert await jobs.stop("chat") is True and register.stopped == ["chat"]
