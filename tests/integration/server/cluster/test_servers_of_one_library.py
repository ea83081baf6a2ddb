"""Several servers over one library in PostgreSQL: whichever answers, conversations, streams and keys are the same."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from tests.integration.server.cluster.conftest import Cluster
from tests.support.openai_server import FakeOpenAI
from tests.support.served_app import Event
from tests.support.server_machines import Machine, eventually

pytestmark = [pytest.mark.long, pytest.mark.attack]
QUESTION = "How does temperature scaling change the calibration for new wearers?"
RUN = "Where is the sensor worn?"


def paid_twice(model: FakeOpenAI) -> int:
    """How many requests the model has had more than once."""
    sent = [json.dumps(body, sort_keys=True) for body in model.requests]
    return len(sent) - len(set(sent))


def opened(model: FakeOpenAI) -> None:
    assert model.gate is not None
    model.gate.open()


def names(events: list[Event]) -> list[str]:
    return [event.name for event in events]


def conversation(machine: Machine) -> str:
    return str(machine.api.post("/conversations").raise_for_status().json()["thread_id"])


def test_a_stream_moves_to_another_server_while_its_job_continues(cluster: Cluster, model: FakeOpenAI) -> None:
    first, second = cluster(2)
    path = f"/conversations/{conversation(first)}"
    seen = first.until_token(f"{path}/turns", {"question": QUESTION})
    assert second.api.get(path).json()["active"]["state"] == "working"
    with ThreadPoolExecutor() as pool:
        following = pool.submit(second.events, f"{path}/events", seen[-1].id)
        opened(model)
        rest = following.result(300)
    whole = first.events(f"{path}/events")
    assert [event.id for event in [*seen, *rest]] == [event.id for event in whole], "nothing lost, nothing repeated"
    assert rest[-1].name == "done" and rest[-1].data == whole[-1].data
    assert second.api.get(path).json()["turns"][0]["number"] == 1
    assert paid_twice(model) == 0


def test_another_server_takes_over_from_a_killed_one_within_seconds(cluster: Cluster, model: FakeOpenAI) -> None:
    first, second = cluster(2)
    turn = f"/conversations/{conversation(first)}"
    seen_turn = first.until_token(f"{turn}/turns", {"question": QUESTION}, Idempotency_Key="turn")
    seen_run = first.until_token("/research", {"question": RUN}, Idempotency_Key="run")
    (run,) = second.api.get("/runs").json()["runs"]
    assert run["active"] is not None
    first.kill()
    opened(model)
    for path, seen in ((f"{turn}/events", seen_turn), (f"/runs/{run['thread_id']}/events", seen_run)):
        events = second.events(path, seen[-1].id)
        assert "reset" in names(events) and events[-1].name == "done", "what the client has is void"
        assert events[-1].data["result"]["citations"]
    assert paid_twice(model) <= 2, "only the two calls that were cut off"
    calls = model.calls()
    again = second.api.post(f"{turn}/turns", json={"question": QUESTION}, headers={"Idempotency-Key": "turn"})
    assert again.status_code == 200 and again.json()["number"] == 1
    same = second.api.post("/research", json={"question": RUN}, headers={"Idempotency-Key": "run"})
    assert same.json()["thread_id"] == run["thread_id"] and model.calls() == calls


def test_a_frozen_server_neither_pays_nor_writes_after_waking(
    cluster: Cluster, model: FakeOpenAI, library: str
) -> None:
    first, second = cluster(2)
    path = f"/conversations/{conversation(first)}"
    seen = first.until_token(f"{path}/turns", {"question": QUESTION})
    first.freeze()
    opened(model)
    events = second.events(f"{path}/events", seen[-1].id)
    assert "reset" in names(events) and events[-1].name == "done"
    calls, before = model.calls(), get_state(library)
    first.thaw()
    eventually(lambda: first.api.get("/ready").status_code == 200, "the frozen server joins the others again")
    assert model.calls() == calls and get_state(library) == before
    assert len(first.api.get(path).json()["turns"]) == 1
    assert first.api.post(f"{path}/turns", json={"question": RUN}).json()["number"] == 2


def get_state(library: str) -> list[tuple[object, ...]]:
    """What a run writes."""
    with psycopg.connect(library) as connection:
        found = []
        for query in (
            "SELECT count(*), max(id) FROM answers",
            "SELECT count(*), max(checkpoint_id) FROM checkpoints",
            "SELECT count(*), max(answered_at) FROM turns",
            "SELECT count(*), max(epoch) FROM server_jobs WHERE ended_at IS NULL",
        ):
            found += connection.execute(query).fetchall()
        return found


def test_one_key_sent_to_two_servers_at_once_starts_one_job(cluster: Cluster, model: FakeOpenAI) -> None:
    first, second = cluster(2)
    opened(model)

    def ask(machine: Machine) -> tuple[int, str]:
        answer = machine.api.post("/research", json={"question": RUN}, headers={"Idempotency-Key": "same"})
        return answer.status_code, answer.json().get("thread_id", "")

    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(ask, [first, second] * 3))
    statuses = {status for status, _ in answers}
    assert statuses <= {200, 409} and 200 in statuses
    assert len({run for status, run in answers if status == 200}) == 1
    assert ask(first) == ask(second)
    other = second.api.post("/research", json={"question": QUESTION}, headers={"Idempotency-Key": "same"})
    assert other.status_code == 422
    assert paid_twice(model) == 0


def test_the_same_request_without_a_key_at_two_servers_is_one_run(cluster: Cluster, model: FakeOpenAI) -> None:
    servers = cluster(2)
    opened(model)
    with ThreadPoolExecutor() as pool:
        asked = pool.map(lambda machine: machine.api.post("/research", json={"question": RUN}).json(), servers)
        runs = [answer["thread_id"] for answer in asked]
    assert runs[0] == runs[1] and paid_twice(model) == 0


def test_a_turn_can_be_stopped_from_another_server_and_a_second_turn_is_refused(
    cluster: Cluster, model: FakeOpenAI
) -> None:
    first, second = cluster(2)
    path = f"/conversations/{conversation(first)}"
    first.until_token(f"{path}/turns", {"question": QUESTION})
    for kind, body in (("turns", {"question": RUN}), ("improve", {"feedback": "Shorter."})):
        refused = second.api.post(f"{path}/{kind}", json=body)
        assert refused.status_code in (409, 422), refused.text
    assert second.api.delete(path).status_code == 409
    assert second.api.post(f"{path}/cancel").json()["stopped"] is True
    assert first.api.get(path).json()["active"] is None
    assert first.events(f"{path}/events")[-1].name == "stopped"
    assert second.api.get(path).json()["paused"]["asked"] == QUESTION
    opened(model)
    assert second.api.post(f"{path}/turns", json={"question": QUESTION}).json()["number"] == 1


def test_exactly_one_of_several_survivors_takes_a_job(cluster: Cluster, model: FakeOpenAI, library: str) -> None:
    first, second, third = cluster(3)
    path = f"/conversations/{conversation(first)}"
    seen = first.until_token(f"{path}/turns", {"question": QUESTION})
    first.kill()
    opened(model)
    with ThreadPoolExecutor() as pool:
        streams = list(pool.map(lambda machine: machine.events(f"{path}/events", seen[-1].id), (second, third)))
    new = [[event.id for event in stream[names(stream).index("reset") + 1 :]] for stream in streams]
    assert new[0] == new[1] and streams[0][-1].name == "done"
    assert paid_twice(model) <= 1
    with psycopg.connect(library) as connection:
        assert connection.execute("SELECT moves FROM server_jobs").fetchall() == [(1,)]


def test_a_stopped_server_hands_its_work_over_at_once(cluster: Cluster, model: FakeOpenAI) -> None:
    first, second = cluster(2)
    path = f"/conversations/{conversation(first)}"
    seen = first.until_token(f"{path}/turns", {"question": QUESTION})
    first.stop()
    opened(model)
    assert second.events(f"{path}/events", seen[-1].id)[-1].name == "done"
    assert "Traceback" not in "".join(first.said + second.said)
