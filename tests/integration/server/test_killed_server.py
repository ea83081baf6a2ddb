"""`citeloom serve` as a process: killed in the middle of answers and started again, ended, and refused to start."""

from __future__ import annotations

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from tests.support.cli_process import run_here, start
from tests.support.event_streams import Gate
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.served_app import SSE, Event, events_of

pytestmark = pytest.mark.attack

QUESTION = "How does temperature scaling change the calibration for new wearers?"
_ADDRESS = re.compile(r"http://[\d.]+:(\d+)")


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=Librarian(), gate=Gate(after=30)) as running:
        yield running


@pytest.fixture
def settings(model: FakeOpenAI) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": model.base_url, "CHAT_API_KEY": "k", "MAX_REPAIRS": "0"}


@contextmanager
def serving(home: Path, settings: Mapping[str, str], port: int = 0) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server's process and port; killed at the end if it still runs."""
    process = start("--home", home, "serve", "--port", str(port), cwd=home.parent, settings=settings)
    try:
        assert process.stderr is not None
        found = next(found for line in process.stderr if (found := _ADDRESS.search(line)))
        yield process, int(found[1])
    finally:
        process.kill()
        process.communicate()


def client(port: int) -> httpx.Client:
    """A client that waits until the server answers."""
    transport = httpx.HTTPTransport(retries=20)
    return httpx.Client(base_url=f"http://127.0.0.1:{port}/api/v1", timeout=300, transport=transport)


def until_token(api: httpx.Client, path: str, body: dict[str, str], key: str) -> list[Event]:
    """The events of a request that are seen until the text begins; then the client goes away."""
    seen = []
    with api.stream("POST", path, json=body, headers=SSE | {"Idempotency-Key": key}) as answer:
        for event in events_of(answer.iter_lines()):
            seen.append(event)
            if event.name == "token":
                return seen
    raise AssertionError([event.name for event in seen])


def rejoined(api: httpx.Client, path: str, last_id: str) -> list[Event]:
    with api.stream("GET", path, headers=SSE | {"Last-Event-ID": last_id}) as answer:
        return list(events_of(answer.iter_lines()))


def paid_twice(model: FakeOpenAI) -> int:
    sent = [json.dumps(body, sort_keys=True) for body in model.requests]
    return len(sent) - len(set(sent))


@pytest.mark.long
def test_a_killed_server_resumes_its_work_without_paying_again(
    home: Path, model: FakeOpenAI, settings: dict[str, str]
) -> None:
    with serving(home, settings) as (process, port), client(port) as api:
        thread_id = api.post("/conversations").json()["thread_id"]
        turns = f"/conversations/{thread_id}/turns"
        seen_turn = until_token(api, turns, {"question": QUESTION}, "turn")
        seen_run = until_token(api, "/research", {"question": "Where is the sensor worn?"}, "run")
        (run_record,) = api.get("/runs").json()["runs"]
        process.kill()
        process.wait()
    assert model.gate is not None
    model.gate.open()
    with serving(home, settings, port), client(port) as api:
        for path, seen in (
            (f"/conversations/{thread_id}/events", seen_turn),
            (f"/runs/{run_record['thread_id']}/events", seen_run),
        ):
            events = rejoined(api, path, seen[-1].id)
            assert events[0].name == "reset" and events[-1].name == "done", "what the client has is void"
            assert events[-1].data["result"]["citations"]
        assert paid_twice(model) <= 2, "only the two calls that were cut off"
        calls = model.calls()
        again = api.post(turns, json={"question": QUESTION}, headers={"Idempotency-Key": "turn"})
        assert again.status_code == 200 and again.json()["number"] == 1
        same = api.post("/research", json={"question": "Where is the sensor worn?"}, headers={"Idempotency-Key": "run"})
        assert same.json()["thread_id"] == run_record["thread_id"]
        assert len(api.get(f"/conversations/{thread_id}").json()["turns"]) == 1
        assert model.calls() == calls


@pytest.mark.long
def test_ctrl_c_stops_a_server_with_open_streams_and_the_next_one_resumes(
    home: Path, model: FakeOpenAI, settings: dict[str, str]
) -> None:
    with serving(home, settings) as (process, port), client(port) as api:
        thread_id = api.post("/conversations").json()["thread_id"]
        path = f"/conversations/{thread_id}"
        with api.stream("POST", f"{path}/turns", json={"question": QUESTION}, headers=SSE) as answer:
            events = events_of(answer.iter_lines())
            assert next(event for event in events if event.name == "token")
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0
        assert process.stderr is not None and "Traceback" not in process.stderr.read()
    assert model.gate is not None
    model.gate.open()
    with serving(home, settings, port), client(port) as api:
        assert rejoined(api, f"{path}/events", "other.0")[-1].name == "done"


def test_a_token_is_never_printed(home: Path, settings: dict[str, str]) -> None:
    token = "a-token-of-enough-characters"
    given = {**settings, "SERVER_TOKEN": token}
    with serving(home, given) as (process, port), client(port) as api:
        assert api.get("/runs", params={"token": token}).status_code == 401
        assert api.get("/runs", headers={"Authorization": f"Bearer {token}"}).status_code == 200
        assert api.get("/runs", headers={"Authorization": f"Bearer {token}?"}).status_code == 401
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert token not in out + err
    assert all(token.encode() not in path.read_bytes() for path in home.glob("server.sqlite*"))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org"])
def test_any_address_but_loopback_requires_a_token(
    home: Path, host: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = run_here(monkeypatch, capsys, "--home", home, "serve", "--host", host, "--port", "0")
    assert refused.code == 2 and f"--host {host}" in refused.err and "CITELOOM_SERVER_TOKEN" in refused.err


@pytest.mark.parametrize("token", ["short", "with a line\nbreak and more", "ümläute-sind-keine-zeichen"])
def test_a_weak_token_is_refused_without_being_shown(
    home: Path, token: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    given = {"SERVER_TOKEN": token}
    refused = run_here(monkeypatch, capsys, "--home", home, "serve", "--port", "0", settings=given)
    assert refused.code == 2 and "CITELOOM_SERVER_TOKEN" in refused.err and token not in refused.err
