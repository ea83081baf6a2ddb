"""Two conflicting requests at once, at two servers of one library in PostgreSQL."""

from __future__ import annotations

import httpx
import pytest

from tests.integration.server.cluster.conftest import Cluster
from tests.support.openai_server import FakeOpenAI
from tests.support.orders_at_once import Request, at_once, require_one_carried_out
from tests.support.server_machines import Machine

pytestmark = [pytest.mark.long, pytest.mark.attack]
QUESTION = {"question": "Where is the sensor worn?"}
ROUNDS = 5


def paused_run(machine: Machine) -> str:
    answer = machine.api.post("/research", json={**QUESTION, "max_calls": 1, "fresh": True})
    assert answer.status_code == 503, answer.text
    return str(answer.headers["content-location"].rpartition("/")[2])


def conversation(machine: Machine) -> str:
    return str(machine.api.post("/conversations").raise_for_status().json()["thread_id"])


def test_of_two_conflicting_requests_one_is_executed_and_the_other_told_why_not(
    cluster: Cluster, model: FakeOpenAI
) -> None:
    servers = cluster(2)
    first, second = servers
    clients = [machine.api for machine in servers]
    assert model.gate is not None
    for number in range(ROUNDS):
        delete: Request = ("DELETE", f"/runs/{paused_run(first)}", None)
        resume: Request = ("POST", f"{delete[1]}/resume", {})
        answers = at_once(clients, (delete, resume) if number % 2 else (resume, delete))
        require_one_carried_out(answers, "deleted|active")
        gone = 204 in [answer.status_code for answer in answers]
        assert [server.api.get(delete[1]).status_code for server in servers] == [404 if gone else 200] * 2
        assert not gone or 202 not in [answer.status_code for answer in answers]
        second.api.post(f"{delete[1]}/cancel")

        delete = ("DELETE", f"/runs/{paused_run(second)}", None)
        answers = at_once(clients, (delete, delete))
        require_one_carried_out(answers, "deleted")
        assert sorted(answer.status_code for answer in answers) == [204, 409]

        path = f"/conversations/{conversation(first)}"
        ask: Request = ("POST", f"{path}/turns", QUESTION)
        answers = at_once(clients, (("DELETE", path, None), ask))
        require_one_carried_out(answers, "deleted|active")
        if 204 not in [answer.status_code for answer in answers]:
            first.api.post(f"{path}/cancel")
            assert first.api.delete(path).status_code == 204
        assert [server.api.get(path).status_code for server in servers] == [404, 404]
    removal: Request = ("DELETE", "/papers/varga2021calibration", None)
    require_one_carried_out(at_once(clients, (removal, removal)), "removed")


def test_an_mcp_session_is_valid_and_can_be_ended_on_every_server(cluster: Cluster, settings: dict[str, str]) -> None:
    settings["SERVER_TOKEN"] = "a-token-of-enough-characters"
    servers = cluster(2)
    first, second = (server.url.removesuffix("/api/v1") for server in servers)
    session = httpx.post(f"{first}/sign-in", data={"token": settings["SERVER_TOKEN"]}).cookies["citeloom_session"]
    cookie = {"Cookie": f"citeloom_session={session}"}
    assert httpx.get(f"{second}/api/v1/runs", headers=cookie).status_code == 200
    assert httpx.post(f"{second}/sign-out", headers=cookie).status_code == 303
    assert httpx.get(f"{first}/api/v1/runs", headers=cookie).status_code == 401
