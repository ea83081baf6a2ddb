"""Runs over HTTP: questions and sections, answered whole, in the background, again, and after a stop."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.api.stored_runs import run_summary
from citeloom.stores.folder_home import FolderHome, FolderLock
from citeloom.stores.run_register import RunRegister
from tests.support.event_streams import Gate
from tests.support.home_tables import run_tables
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.run_fixtures import experiment
from tests.support.served_app import IN_BACKGROUND, SSE, Served, events_of, served_app

__all__ = ["experiment"]
QUESTION = {"question": "How does temperature scaling change the calibration for new wearers?"}


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=Librarian()) as running:
        yield running


@pytest.fixture
def settings(model: FakeOpenAI) -> dict[str, Any]:
    return {
        "chat_model": "fake",
        "chat_base_url": model.base_url,
        "chat_api_key": "k",
        "max_repairs": 0,
        "top_k_initial": 4,
    }


@pytest.fixture
def served(home: Path, settings: dict[str, Any]) -> Iterator[Served]:
    with served_app(home, settings) as server:
        yield server


def begun_in_background(served: Served, model: FakeOpenAI) -> str:
    """The id of a run whose model is held in the middle of its first stream."""
    model.gate = Gate(after=4)
    answer = served.post("/research", QUESTION, **IN_BACKGROUND)
    assert answer.status_code == 202 and answer.headers["preference-applied"] == "respond-async"
    assert answer.headers["location"] == f"/api/v1/runs/{answer.json()['id']}"
    assert model.gate.reached.wait(300)
    return str(answer.json()["id"])


def test_repeating_a_question_returns_the_answer_of_its_run(served: Served, model: FakeOpenAI) -> None:
    first = served.post("/research", QUESTION)
    assert first.status_code == 200 and first.json()["citations"]
    calls = model.calls()
    assert served.post("/research", QUESTION).json()["text"] == first.json()["text"]
    with served.api.stream("POST", "/research", json=QUESTION, headers=SSE) as answer:
        assert [event.name for event in events_of(answer.iter_lines())] == ["stage", "done"]
    assert model.calls() == calls


def test_a_run_is_listed_shown_and_deleted(served: Served) -> None:
    run_id = served.post("/research", QUESTION).json()["thread_id"]
    listed = served.api.get("/runs").json()
    assert listed["total"] == 1 and listed["runs"][0]["status"] == "finished"
    assert served.api.get("/runs", params={"offset": 1}).json()["runs"] == []
    shown = served.api.get(f"/runs/{run_id[:12]}").json()
    assert shown["thread_id"] == run_id and shown["result"]["citations"] and shown["queries"]
    usage = served.api.get("/usage").json()
    (row,) = [row for row in usage["runs"] if row["run"] == run_id]
    (day,) = usage["days"]
    assert row["llm_calls"] == day["llm_calls"] == usage["total"]["llm_calls"] > 0
    assert served.api.delete(f"/runs/{run_id[:12]}").status_code == 404
    assert served.api.delete(f"/runs/{run_id}").status_code == 204
    assert served.api.get(f"/runs/{run_id}").status_code == 404
    assert served.api.get(f"/runs/{run_id}/events").status_code == 404


def test_a_run_can_be_stopped_and_resumed_but_not_deleted_in_between(served: Served, model: FakeOpenAI) -> None:
    run_id = begun_in_background(served, model)
    shown = served.api.get(f"/runs/{run_id}").json()
    assert (shown["status"], shown["active"]["state"]) == ("running", "working")
    assert served.api.delete(f"/runs/{run_id}").status_code == 409
    assert served.api.post(f"/runs/{run_id}/cancel").json() == {"id": run_id, "stopped": True}
    stopped = served.api.get(f"/runs/{run_id}").json()
    assert (stopped["status"], stopped["detail"], stopped["active"]) == ("paused", "interrupted", None)
    assert model.gate is not None
    model.gate.open()
    resumed = served.post(f"/runs/{run_id}/resume", {"max_calls": 500})
    assert resumed.status_code == 200 and resumed.json()["thread_id"] == run_id


def test_a_budget_pauses_a_run_and_a_larger_one_resumes_it(served: Served) -> None:
    paused = served.post("/research", {**QUESTION, "max_calls": 1})
    assert paused.status_code == 503 and paused.json()["paused"] is True and "budget" in paused.json()["detail"].lower()
    run_id = served.api.get("/runs").json()["runs"][0]["thread_id"]
    assert [event.name for event in served.events(f"/runs/{run_id}/events")][-1] == "error"
    assert served.post(f"/runs/{run_id}/resume", {"max_calls": 500}).status_code == 200


def test_one_key_does_not_start_a_fresh_run_twice(served: Served, model: FakeOpenAI) -> None:
    served.post("/research", QUESTION)
    fresh = {**QUESTION, "fresh": True}
    first = served.post("/research", fresh, Idempotency_Key="once")
    calls = model.calls()
    again = served.post("/research", fresh, Idempotency_Key="once")
    assert again.json()["thread_id"] == first.json()["thread_id"] and model.calls() == calls
    assert served.post("/research", fresh, Idempotency_Key="twice").json()["thread_id"] != first.json()["thread_id"]
    assert served.post("/research", QUESTION, Idempotency_Key="once").status_code == 422


def test_server_paths_in_the_experiment_are_ignored(served: Served, experiment: dict[str, Any], tmp_path: Path) -> None:
    image = tmp_path / "mine.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n secret")
    asked = {**experiment, "plots": [{"path": "p.png", "caption": "Figure 1", "_file": str(image)}]}
    written = served.post("/sections/discussion", {"experiment": asked, "strict": True})
    assert written.status_code == 200 and written.json()["section"] == "discussion" and written.json()["strict"]
    assert not written.json().get("figures") and str(image) not in written.text
    assert str(image) not in served.api.get(f"/runs/{written.json()['thread_id']}").text


def test_an_incomplete_experiment_is_refused_with_the_missing_field(served: Served) -> None:
    refused = served.post("/sections/methods", {"experiment": {}})
    assert refused.status_code == 422 and "experimental_plan" in refused.json()["detail"]
    assert served.api.get("/runs").json()["total"] == 0


def test_the_end_of_a_run_is_still_an_event_after_a_restart(
    home: Path, settings: dict[str, Any], model: FakeOpenAI
) -> None:
    with served_app(home, settings) as earlier:
        run_id = earlier.post("/research", QUESTION).json()["thread_id"]
        seen = earlier.events(f"/runs/{run_id}/events")[-1].id
    calls = model.calls()
    with served_app(home) as later:
        rejoined = later.events(f"/runs/{run_id}/events", seen)
        assert [event.name for event in rejoined] == ["reset", "done"]
        assert rejoined[-1].data["result"]["thread_id"] == run_id
    assert model.calls() == calls


async def test_a_run_of_another_process_is_reported_as_such(served: Served, home: Path) -> None:
    run_id = served.post("/research", QUESTION).json()["thread_id"]
    served.state.jobs.forget(run_id)
    register = RunRegister(run_tables(home / "runs.sqlite"))
    register.mark(run_id, "running")
    with register._tables.transaction() as connection:
        connection.execute("UPDATE runs SET result = NULL")
    async with FolderLock(FolderHome(home), run_id).held():
        assert run_summary(register.get(run_id), FolderHome(home))["status"] == "running"
        events = served.api.get(f"/runs/{run_id}/events")
        assert events.status_code == 409 and "another process" in events.json()["detail"]
        assert served.api.delete(f"/runs/{run_id}").status_code == 409
    assert served.api.get(f"/runs/{run_id}").json()["status"] == "killed"
