"""The names in the OpenAPI document and in the MCP tools stay those that programs know."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.contracts import key_paths, require_contract, schema_keys
from tests.support.served_app import Served, served_app

QUESTION = "How are scores calibrated?"


@pytest.fixture(scope="module")
def served(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("contracts") / "home")
    with served_app(home, per_minute=1_000_000) as server:
        yield server


def test_the_routes_keep_their_parameters_and_keys(served: Served) -> None:
    document = served.api.get("/openapi.json").json()
    schemas = document["components"]["schemas"]
    found = {
        f"{method.upper()} {path}": {
            "parameters": sorted(f"{item['in']} {item['name']}" for item in operation.get("parameters", ())),
            "body": _content(operation.get("requestBody", {}), schemas),
            "answers": {status: _content(answer, schemas) for status, answer in sorted(operation["responses"].items())},
        }
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    }
    for route in found.values():  # every route answers a problem alike
        route["answers"] = {
            status: answer if int(status) < 400 else "problem" for status, answer in route["answers"].items()
        }
    found["problem"] = schema_keys(schemas["Problem"], schemas)
    require_contract("routes", found)


def _content(described: dict[str, Any], schemas: dict[str, Any]) -> dict[str, Any]:
    content = described.get("content", {})
    return {kind: schema_keys(media.get("schema", {}), schemas) for kind, media in sorted(content.items())}


async def test_the_tools_keep_their_names_arguments_and_keys(served: Served) -> None:
    async with (
        httpx.AsyncClient(timeout=300) as http,
        Client(streamable_http_client(f"{served.url}/mcp", http_client=http)) as client,
    ):
        tools = (await client.list_tools()).tools
    found = {
        tool.name: {
            "title": tool.title,
            "description": tool.description,
            "arguments": schema_keys(tool.input_schema, tool.input_schema.get("$defs", {})),
            "required": sorted(tool.input_schema.get("required", ())),
            "result": schema_keys(tool.output_schema or {}, (tool.output_schema or {}).get("$defs", {})),
        }
        for tool in tools
    }
    require_contract("tools", found)


def test_the_answers_of_routes_keep_their_keys(served: Served) -> None:
    answer = served.post("/research", {"question": QUESTION}).json()
    thread = served.conversation()
    turn = served.post(f"/conversations/{thread}/turns", {"question": QUESTION}).json()
    events = served.events(f"/runs/{answer['thread_id']}/events")
    found = {
        "research": key_paths(answer),
        "turn": key_paths(turn),
        "end of a run": [event.name for event in events],
        "run": key_paths(served.api.get(f"/runs/{answer['thread_id']}").json()),
        "conversation": key_paths(served.api.get(f"/conversations/{thread}").json()),
        "files": key_paths(served.api.get(f"/runs/{answer['thread_id']}/files").json()),
        "usage": key_paths(served.api.get("/usage").json()),
        "doctor": key_paths(served.api.get("/doctor").json()),
        "search": key_paths(served.api.get("/search", params={"q": "scores"}).json()),
        "papers": key_paths(served.api.get("/papers").json()),
        "models": key_paths(httpx.get(f"{served.url}/v1/models", timeout=300).json()),
    }
    body = {"model": "citeloom", "messages": [{"role": "user", "content": QUESTION}]}
    found["chat"] = key_paths(httpx.post(f"{served.url}/v1/chat/completions", json=body, timeout=300).json())
    require_contract("answers", found)
