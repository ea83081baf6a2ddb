"""A run that asks a person, over HTTP, on its page, and through MCP."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from tests.support.served_app import Served, served_app

QUESTION = {"question": "How does temperature scaling change the calibration for new wearers?"}


@pytest.fixture
def served(home: Path) -> Iterator[Served]:
    with served_app(home) as server:
        yield server


def waiting_run(served: Served, *asks: str) -> dict[str, Any]:
    answer = served.post("/research", {**QUESTION, "interrupts": asks})
    assert answer.status_code == 503 and answer.json()["type"] == "urn:citeloom:WaitingError", answer.text
    (run,) = [run for run in served.api.get("/runs").json()["runs"] if run["status"] == "asking"]
    return dict(served.api.get(f"/runs/{run['thread_id']}").json())


def test_a_waiting_run_accepts_one_answer_and_continues(served: Served) -> None:
    plain = served.post("/research", QUESTION).json()
    run = waiting_run(served, "needs", "evidence")
    path, asked = f"/runs/{run['thread_id']}/answer", run["waiting"]
    assert (asked["ask"], asked["answers"]) == ("needs", ["accept", "edit"])
    page = served.api.get(f"{served.url}/runs/{run['thread_id']}").text
    assert "Waiting for you" in page and 'name="N1"' in page and asked["fields"][0]["value"] in page
    for wrong in ({"args": {"N9": "x"}}, {"type": "ignore"}, {"args": {"N1": ""}}, {"fields": {}}):
        refused = served.post(path, wrong)
        assert refused.status_code == 422 and "\n" not in refused.json()["detail"]
    with ThreadPoolExecutor() as two:
        given = [{"question": asked["question"], "args": {"add": text}} for text in ("dropout", "label noise")]
        ended = list(two.map(lambda answer: served.post(path, answer), given))
    assert sorted(answer.status_code for answer in ended) == [409, 503], "one is taken, and it asks for more"
    assert served.post(path, given[0]).status_code == 409
    record = served.post(path, {"type": "accept", "by": "Ada"})
    assert record.status_code == 200, record.text
    assert record.json()["steering"][-1]["by"] == "Ada" and record.json()["thread_id"] != plain["thread_id"]
    assert served.post(path, {"type": "accept"}).status_code == 409


@pytest.mark.parametrize("mode", ["auto", "legacy"])  # the question as the result of the call, or sent to the client
async def test_an_mcp_client_that_can_ask_its_user_gets_the_questions(served: Served, mode: str) -> None:
    messages: list[str] = []
    said: list[ElicitResult] = [
        ElicitResult(action="decline"),
        ElicitResult(action="accept", content={"N1": ""}),
        ElicitResult(action="accept", content={"N7": "dropout"}),
        ElicitResult(action="accept", content={"add": "dropout"}),
        ElicitResult(action="accept", content={}),
    ]

    async def ask(_: Any, params: Any) -> ElicitResult:
        messages.append(params.message)
        return said.pop(0)

    arguments = {**QUESTION, "interrupts": ["needs", "evidence"]}
    async with Client(streamable_http_client(f"{served.url}/mcp"), mode=mode, elicitation_callback=ask) as able:
        for named in ("waits for you", "all needs were dropped", "N7"):
            refused = await able.call_tool("research", arguments)
            text = refused.content[0].text  # type: ignore[union-attr]
            assert refused.is_error and named in text, text
            assert "\n" not in text or named == "waits for you"
            (run,) = served.api.get("/runs").json()["runs"]
            assert run["status"] == "asking"
        answer = await able.call_tool("research", arguments)
        assert not answer.is_error and ["need" in message[:8] for message in messages] == [True] * 4 + [False]
        assert not said and "N2: dropout" in messages[-1]
        assert (await able.call_tool("research", arguments)).content == answer.content, "asked no more"


async def test_an_mcp_client_that_cannot_ask_its_user_is_told_how_to_answer(served: Served) -> None:
    arguments = {**QUESTION, "interrupts": ["needs"]}
    async with Client(streamable_http_client(f"{served.url}/mcp")) as unable:
        answer = await unable.call_tool("research", arguments)
        text = answer.content[0].text  # type: ignore[union-attr]
        assert answer.is_error and "answer_run" in text and "add" in text
        (run,) = [run for run in served.api.get("/runs").json()["runs"] if run["status"] == "asking"]
        answer = await unable.call_tool("answer_run", {"run_id": run["thread_id"], "fields": {"add": "dropout"}})
        assert not answer.is_error and answer.structured_content
