"""Two conflicting requests at once: one is executed; the other is executed too, or refused with 409 and the reason."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from citeloom.stores import server_jobs
from tests.support.judging_model import GOOD, WEAK, JudgingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.orders_at_once import Request, at_once, require_one_carried_out
from tests.support.run_fixtures import experiment
from tests.support.served_app import Served, served_app

pytestmark = pytest.mark.attack

__all__ = ["experiment"]
ROUNDS = 6


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("orders") / "home")
    with FakeOpenAI(behaviour=JudgingModel(f"{GOOD} {WEAK}")) as model:
        settings = {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k", "max_repairs": 0}
        with served_app(home, settings, per_minute=100_000) as server, pytest.MonkeyPatch.context() as patch:
            patch.setattr(server_jobs, "_RECENT", 600.0)  # on a busy machine the second of two requests comes late
            yield server


@pytest.fixture
def clients(served: Served) -> Iterator[list[httpx.Client]]:
    """Two clients, each with a connection of its own that is open already."""
    opened = [httpx.Client(base_url=f"{served.url}/api/v1", timeout=300) for _ in range(2)]
    for client in opened:
        client.get("/health").raise_for_status()
    yield opened
    for client in opened:
        client.close()


def paused_run(served: Served, experiment: dict[str, Any]) -> str:
    answer = served.post("/sections/discussion", {"experiment": experiment, "max_calls": 1, "fresh": True})
    assert answer.status_code == 503, answer.text
    return str(answer.headers["content-location"].rpartition("/")[2])


@pytest.fixture(scope="module")
def written(served: Served) -> Callable[[dict[str, Any]], str]:
    """A finished discussion, whose answers are taken from the journal after the first time."""

    def write(experiment: dict[str, Any]) -> str:
        answer = served.post("/sections/discussion", {"experiment": experiment})
        assert answer.status_code == 200, answer.text
        return str(answer.json()["thread_id"])

    return write


@dataclass(frozen=True)
class Pair:
    """Two requests on one thing; `after` is the ending that the one who comes too late is told."""

    first: Request
    second: Request
    told: str


ON_RUNS = {
    "delete and resume": Pair(("DELETE", "/runs/{id}", None), ("POST", "/runs/{id}/resume", {}), "deleted|active"),
    "two deletions": Pair(("DELETE", "/runs/{id}", None), ("DELETE", "/runs/{id}", None), "deleted"),
    "delete and cancel": Pair(("DELETE", "/runs/{id}", None), ("POST", "/runs/{id}/cancel", None), "deleted"),
}


@pytest.mark.parametrize("pair", ON_RUNS.values(), ids=ON_RUNS)
def test_of_two_requests_on_a_paused_run_one_is_executed(
    served: Served, clients: list[httpx.Client], experiment: dict[str, Any], pair: Pair
) -> None:
    for _ in range(ROUNDS):
        run = paused_run(served, experiment)
        requests = tuple((method, path.format(id=run), body) for method, path, body in (pair.first, pair.second))
        answers = at_once(clients, requests)
        require_one_carried_out(answers, pair.told)
        gone = 204 in [answer.status_code for answer in answers]
        assert (served.api.get(f"/runs/{run}").status_code == 404) == gone
        if gone:
            assert 202 not in [answer.status_code for answer in answers], "nothing is begun for a run that is gone"
        served.post(f"/runs/{run}/cancel")


def edit(position: int = 0) -> dict[str, Any]:
    return {"position": position, "text": "My own words.", "keep": True, "check": False}


EXPORT: Request = ("GET", "/runs/{id}/files/discussion.edited.md", None)
KEEP: Request = ("POST", "/runs/{id}/sentences", edit())
WITHDRAW: Request = ("DELETE", "/runs/{id}/sentences/0", None)
DELETE: Request = ("DELETE", "/runs/{id}", None)
ON_SENTENCES = {
    "keep and withdraw": Pair(KEEP, WITHDRAW, "withdrawn"),
    "two withdrawals": Pair(WITHDRAW, WITHDRAW, "withdrawn"),
    "withdraw and export": Pair(WITHDRAW, EXPORT, "withdrawn"),
    "keep and export": Pair(KEEP, EXPORT, "withdrawn"),
    "keep and delete": Pair(KEEP, DELETE, "deleted"),
    "check and delete": Pair(("POST", "/runs/{id}/sentences", {"position": 0, "text": "Mine."}), DELETE, "deleted"),
    "withdraw and delete": Pair(WITHDRAW, DELETE, "deleted"),
    "export and delete": Pair(EXPORT, DELETE, "deleted"),
}


@pytest.mark.parametrize("pair", ON_SENTENCES.values(), ids=ON_SENTENCES)
def test_of_two_requests_on_a_sentence_one_is_executed(
    served: Served,
    clients: list[httpx.Client],
    experiment: dict[str, Any],
    written: Callable[[dict[str, Any]], str],
    pair: Pair,
) -> None:
    for _ in range(ROUNDS):
        run = written(experiment)
        assert served.post(f"/runs/{run}/sentences", edit()).status_code == 200
        requests = tuple((method, path.format(id=run), body) for method, path, body in (pair.first, pair.second))
        require_one_carried_out(at_once(clients, requests), pair.told)


QUESTION = {"question": "How are scores calibrated?"}
ON_CONVERSATIONS = {
    "ask and delete": Pair(("POST", "{id}/turns", QUESTION), ("DELETE", "{id}", None), "deleted|active"),
    "two deletions": Pair(("DELETE", "{id}", None), ("DELETE", "{id}", None), "deleted"),
    "cancel and delete": Pair(("POST", "{id}/cancel", None), ("DELETE", "{id}", None), "deleted"),
    "two questions": Pair(
        ("POST", "{id}/turns", QUESTION), ("POST", "{id}/turns", {"question": "What of seeds?"}), "another question"
    ),
}


@pytest.mark.parametrize("pair", ON_CONVERSATIONS.values(), ids=ON_CONVERSATIONS)
def test_of_two_requests_on_a_conversation_one_is_executed(
    served: Served, clients: list[httpx.Client], pair: Pair
) -> None:
    for _ in range(ROUNDS):
        path = f"/conversations/{served.conversation()}"
        requests = tuple((method, form.format(id=path), body) for method, form, body in (pair.first, pair.second))
        answers = at_once(clients, requests)
        require_one_carried_out(answers, pair.told)
        gone = 204 in [answer.status_code for answer in answers]
        assert (served.api.get(path).status_code == 404) == gone
        if not gone:
            served.post(f"{path}/cancel")
            assert served.api.delete(path).status_code == 204
        assert served.api.get(path).status_code == 404, "no turn brings a deleted conversation back"


def test_of_two_requests_on_a_paper_one_is_executed(served: Served, clients: list[httpx.Client]) -> None:
    for number in range(ROUNDS):
        text = f"# Paper {number}\n\nText of it.".encode()
        sent = served.api.post("/papers", files=[("files", (f"paper{number}.md", text, "text/markdown"))])
        report = served.events(f"/ingests/{sent.json()['id']}/events")[-1].data["result"]
        (key,) = report["added"]
        request: Request = ("DELETE", f"/papers/{key}", None)
        require_one_carried_out(at_once(clients, (request, request)), "removed")


def test_replacing_and_removing_a_paper_at_once_leaves_it_whole_or_gone(
    served: Served, clients: list[httpx.Client]
) -> None:
    def upload(client: httpx.Client, text: str) -> str:
        files = [("files", ("replaced.md", f"# Replaced\n\n{text}".encode(), "text/markdown"))]
        answer = client.post("/papers", files=files, data={"replace": "true"})
        assert answer.status_code == 202, answer.text
        return str(answer.json()["id"])

    for number in range(ROUNDS):
        done = served.events(f"/ingests/{upload(served.api, f'First {number}.')}/events")[-1]
        (key,) = [*done.data["result"]["added"], *done.data["result"]["updated"]]
        with ThreadPoolExecutor(2) as pool:
            replacing = pool.submit(upload, clients[0], f"Second {number}.")
            removing = pool.submit(clients[1].delete, f"/papers/{key}")
            assert removing.result().status_code in (204, 409), removing.result().text
            ended = served.events(f"/ingests/{replacing.result()}/events")[-1]
        assert ended.name == "done" and not ended.data["result"]["refused"]
        shown = served.api.get(f"/papers/{key}/text")
        assert shown.status_code == 404 or f"Second {number}." in shown.text


def test_a_request_after_a_deletion_finds_nothing(
    served: Served, experiment: dict[str, Any], written: Callable[[dict[str, Any]], str]
) -> None:
    run = written(experiment)
    assert served.post(f"/runs/{run}/sentences", edit()).status_code == 200
    assert [served.api.delete(f"/runs/{run}/sentences/0").status_code for _ in range(2)] == [204, 422]
    assert [served.api.delete(f"/runs/{run}").status_code for _ in range(2)] == [204, 404]
    assert served.post(f"/runs/{run}/resume").status_code == 404
    assert served.post("/runs/unknown/resume").status_code == 404
