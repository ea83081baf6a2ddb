"""Resuming: a run that was killed, cancelled or paused at any step ends as it would have without the stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.errors import PausedError
from citeloom.experiment import parse_experiment
from citeloom.graph.session import open_session
from citeloom.models.http.client import close_connections
from citeloom.runs.execution import RunUnderWayError, delete_run, run_request
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome, FolderLock
from citeloom.stores.run_register import RunRegister
from tests.support.home_tables import run_tables
from tests.support.openai_server import FakeOpenAI, Raw


@pytest.fixture
async def server() -> AsyncIterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running
        await close_connections()


@pytest.fixture
def settings(server: FakeOpenAI) -> Settings:
    return Settings(chat_model="fake", chat_base_url=server.base_url, top_k_initial=4, max_retries=0)


@pytest.fixture
def request_(experiment: dict[str, Any]) -> SectionRequest:
    return SectionRequest("discussion", parse_experiment(experiment))


def status(home: Path, thread_id: str) -> str:
    return RunRegister(run_tables(home / "runs.sqlite")).get(thread_id).status


async def test_a_run_killed_after_its_last_step_resumes_by_registering_its_result(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    with open_session(settings, FolderHome(home)) as session:
        first = await run_request(request_, session)
        calls = server.calls()
        RunRegister(run_tables(home / "runs.sqlite")).mark(first.record["thread_id"], "running")
    with open_session(settings, FolderHome(home)) as session:
        again = await run_request(request_, session)
    assert server.calls() == calls
    assert again.record == first.record
    assert status(home, first.record["thread_id"]) == "finished"


async def test_a_run_killed_before_its_first_step_starts_on_resume(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("citeloom.runs.execution.compile_graph", killed)
        with open_session(settings, FolderHome(home)) as session, pytest.raises(KeyboardInterrupt):
            await run_request(request_, session)
    with open_session(settings, FolderHome(home)) as session:
        finished = await run_request(request_, session)
    assert not finished.finished_earlier and finished.record["citations"]


async def test_a_cancelled_run_is_paused_and_resumed(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    with open_session(settings, FolderHome(home)) as session:
        reached = asyncio.Event()

        def show(event: Any) -> None:
            if event.get("stage") == "writing":
                reached.set()

        running = asyncio.create_task(run_request(request_, session, on_event=show))
        await reached.wait()
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        (run,) = RunRegister(run_tables(home / "runs.sqlite")).all()
        assert run.status == "paused"
        calls = server.calls()
        said: list[str] = []
        finished = await run_request(request_, session, on_notice=said.append)
        assert [line for line in said if "Resuming run" in line and run.thread_id in line]
        assert server.calls() - calls < calls, "what was answered before is not asked again"
        assert finished.record["thread_id"] == run.thread_id


async def test_a_pause_is_raised_and_not_passed_to_the_model(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    """The server is busy while a tool runs: the planner must not see this as its own mistake."""
    planned = 0

    def busy_after_the_first_turn(body: dict[str, Any]) -> Raw | None:
        nonlocal planned
        planned += bool(body.get("tools"))
        if planned and body.get("response_format"):
            return Raw(json.dumps({"error": {"message": "overloaded"}}), status=503)
        return None

    server.behaviour = busy_after_the_first_turn
    with open_session(settings, FolderHome(home)) as session:
        with pytest.raises(PausedError, match="503"):
            await run_request(request_, session)
        server.behaviour = None
        finished = await run_request(request_, session)
    assert finished.record["citations"]
    said = [str(message) for body in server.requests for message in body["messages"]]
    assert not [line for line in said if "overloaded" in line]


async def test_a_deleted_run_can_be_written_fresh_in_the_same_process(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    with open_session(settings, FolderHome(home)) as session:
        first = await run_request(request_, session)
        calls = server.calls()
        await delete_run(session.home, first.record["thread_id"])
        fresh = await run_request(SectionRequest("discussion", request_.experiment, fresh=True), session)
        assert server.calls() == 2 * calls
        assert fresh.record["usage"]["llm_calls"] == calls


async def test_a_finished_run_missing_from_the_register_is_recognised_and_can_be_written_fresh(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    with open_session(settings, FolderHome(home)) as session:
        first = await run_request(request_, session)
        calls = server.calls()
        session.home.runs_file.unlink()  # type: ignore[attr-defined]
        again = await run_request(request_, session)
        assert again.finished_earlier and again.record["text"] == first.record["text"]
        session.home.runs_file.unlink()  # type: ignore[attr-defined]
        fresh = await run_request(SectionRequest("discussion", request_.experiment, fresh=True), session)
        assert server.calls() == 2 * calls and not fresh.finished_earlier


async def test_a_run_in_progress_cannot_be_deleted(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    with open_session(settings, FolderHome(home)) as session:
        first = await run_request(request_, session)
        thread_id = first.record["thread_id"]
        async with FolderLock(session.home, thread_id).held():
            with pytest.raises(RunUnderWayError, match=thread_id):
                await delete_run(session.home, thread_id)
        assert (await run_request(request_, session)).finished_earlier


async def test_settings_that_do_not_affect_the_text_keep_the_run(
    settings: Settings, home: Path, request_: SectionRequest, server: FakeOpenAI
) -> None:
    def same(**changes: Any) -> Settings:
        return Settings(**{**settings.model_dump(), **changes})

    async def thread_of(given: Settings) -> str:
        with open_session(given, FolderHome(home)) as session:
            record = (await run_request(request_, session)).record
            return str(record["thread_id"])

    first = await thread_of(settings)
    assert await thread_of(same(max_concurrency=3, max_retries=2, request_timeout=5)) == first
    calls = server.calls()
    for change in ({"section_words": 300}, {"top_k_final": 3}, {"max_search_iterations": 1}, {"temperature": 0.9}):
        assert await thread_of(same(**change)) != first
    assert server.calls() > calls
