"""The official MCP client against `citeloom mcp`, a process of its own, and against `/mcp` of a served library."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pexpect
import pytest
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from pydantic import TypeAdapter

from citeloom.api.agent_tools import Categories, Keys, YearSpan
from tests.support.cli_process import CLI, environment, start
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.served_home import served

TOKEN = "a-token-of-more-than-16-characters"
QUESTION = "How are scores calibrated?"
Opened = Callable[[], Any]


@pytest.fixture(scope="module")
def settings() -> Iterator[dict[str, str]]:
    with FakeOpenAI(behaviour=Librarian()) as model:
        yield {"CHAT_MODEL": "fake", "CHAT_BASE_URL": model.base_url, "CHAT_API_KEY": "k"}


@pytest.fixture(scope="module")
def served_home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(sample_home, tmp_path_factory.mktemp("agents") / "home")


@pytest.fixture(scope="module")
def url(served_home: Path, settings: dict[str, str]) -> Iterator[str]:
    with served(served_home, "--name", "library.example", settings={**settings, "SERVER_TOKEN": TOKEN}) as address:
        yield f"{address}/mcp"


@pytest.fixture(params=["stdio", "http", "http-2025"])
def connect(request: pytest.FixtureRequest, served_home: Path, settings: dict[str, str]) -> Opened:
    """Opens a client, over each transport and in the protocol of 2025 too, which most agents still speak."""
    if request.param == "stdio":
        arguments = [str(CLI), "--home", str(served_home), "mcp"]
        return lambda: Client(StdioServerParameters(command=sys.executable, args=arguments, env=environment(settings)))
    address = request.getfixturevalue("url")
    return lambda: over_http(address, "legacy" if request.param == "http-2025" else "auto")


@asynccontextmanager
async def over_http(address: str, mode: str = "auto") -> AsyncIterator[Client]:
    async with (
        httpx.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=300) as http,
        Client(streamable_http_client(address, http_client=http), mode=mode) as client,
    ):
        yield client


async def test_an_agent_searches_reads_and_asks(connect: Opened) -> None:
    async with connect() as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        free = {"search_evidence", "search_papers", "get_context_window", "list_figures", "library_status"}
        shown = {"list_memory", "fetch", "search", "get_table", "suggest_citations"}
        others = {
            "agree",
            "answer_run",
            "check_claim",
            "check_text",
            "import_text",
            "make_table",
            "research",
            "update_texts",
        }
        assert tools.keys() == {*free, *shown, *others}
        found = (
            await client.call_tool("search_evidence", {"query": "temperature scaling", "limit": 3})
        ).structured_content
        first = found["passages"][0]
        assert len(found["passages"]) == 3 and first["sentence"] and first["text"]
        around = await client.call_tool("get_context_window", {"chunk_id": first["chunk_id"], "window": 2})
        assert first["text"] in [item["text"] for item in around.structured_content["passages"]]
        papers = await client.call_tool("search_papers", {"query": "ensembles", "by": "summary"})
        assert "okafor2022ensembles" in [paper["key"] for paper in papers.structured_content["papers"]]
        steps: list[str] = []

        async def note(_: float, __: float | None, message: str | None) -> None:
            steps.append(message or "")

        asked = {"question": QUESTION, "to_year": 2023, "fresh": True}
        answer = await client.call_tool("research", asked, progress_callback=note)
        record = answer.structured_content
        assert (
            any("writing the answer" in step for step in steps) and record["answered"] and record["cost"]["llm_calls"]
        )
        assert all(citation["quote"] and citation["verdict"] for citation in record["citations"])
        assert f"[{record['sources'][0]['label']}]" in answer.content[0].text.partition("**Sources**")[2]


async def test_search_and_fetch_of_chatgpt_return_one_json_text_and_there_are_prompts(connect: Opened) -> None:
    async with connect() as client:
        (content,) = (await client.call_tool("search", {"query": "temperature scaling"})).content
        first = json.loads(content.text)["results"][0]
        assert first.keys() == {"id", "title", "url"}
        for name, whole in ((first["id"], False), ("varga2021calibration", True)):
            answer = await client.call_tool("fetch", {"id": name})
            read = json.loads(answer.content[0].text)
            assert read.keys() == {"id", "title", "text", "url", "metadata"} and read["id"] == name
            assert not answer.structured_content and ("\n## Introduction" in read["text"]) is whole
        assert "no paper" in (await client.call_tool("fetch", {"id": "nobody1999"})).content[0].text
        prompts = {prompt.name: prompt for prompt in (await client.list_prompts()).prompts}
        assert prompts.keys() == {"write_section", "ask", "check"}
        asked = await client.get_prompt("write_section", {"section": "discussion", "about": "seeds"})
        assert "discussion of a paper about: seeds" in asked.messages[0].content.text


async def test_papers_can_be_read_as_mcp_resources(connect: Opened) -> None:
    async with connect() as client:
        papers = (await client.list_resources()).resources
        status = (await client.call_tool("library_status")).structured_content
        assert len(papers) == status["papers"] == 4 and not status["problems"] and status["chat_models"]
        (text,) = (await client.read_resource("citeloom://papers/varga2021calibration")).contents
        assert text.mime_type == "text/markdown" and "\n## Introduction" in text.text
        for uri in ("citeloom://papers/varga", "citeloom://papers/..%2F..%2Fcatalog.sqlite", "file:///etc/passwd"):
            with pytest.raises(MCPError):
                await client.read_resource(uri)


@pytest.mark.parametrize(
    ("tool", "given", "said"),
    [
        ("search_evidence", {}, "query: is missing. It takes query, limit"),
        ("search_evidence", {"query": "x", "min_year": 2000}, "min_year: is unknown"),
        ("search_evidence", {"query": "seeds", "papers": "varga"}, "Did you mean varga2021calibration?"),
        ("search_evidence", {"query": "seeds", "years": ["soon"]}, "years"),
        ("get_context_window", {"chunk_id": "../catalog.sqlite"}, "Use an id that a search returned."),
        ("search_papers", {"query": "x", "min_year": 2020, "max_year": 2010}, "Swap the two years."),
        ("research", {"question": "?!"}, "Give it some words."),
        ("research", {"question": "What about seeds?", "max_calls": 1}, "Completed calls are saved"),
    ],
)
async def test_a_mistake_is_reported_in_one_line_with_the_remedy(
    url: str, tool: str, given: dict[str, Any], said: str
) -> None:
    async with over_http(url) as client:
        answer = await client.call_tool(tool, given)
    (content,) = answer.content
    assert answer.is_error and said in content.text and "\n" not in content.text


async def test_an_unknown_tool_is_reported(url: str) -> None:
    async with over_http(url) as client:
        with pytest.raises(MCPError, match="no tool 'delete_paper'; there are search_evidence"):
            await client.call_tool("delete_paper", {"key": "varga2021calibration"})


def test_lists_sent_as_strings_by_a_model_are_read() -> None:
    for kind, given, read in ((Keys, "a", ["a"]), (Categories, "method", ["method"]), (YearSpan, 2020, [2020, 2020])):
        assert TypeAdapter(kind).validate_python(given) == read


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "evil.example"}, 421),
        ({"Authorization": f"Bearer {TOKEN}", "Origin": "https://evil.example"}, 403),
        ({"Authorization": f"Bearer {TOKEN}", "Host": "library.example"}, 200),
        ({"Authorization": f"Bearer {TOKEN}"}, 200),
    ],
)
def test_host_origin_and_token_are_checked(url: str, headers: dict[str, str], status: int) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}
    accepts = {"Accept": "application/json, text/event-stream"}
    assert httpx.post(url, json=body, headers={**accepts, **headers}).status_code == status


def test_standard_output_contains_only_the_protocol(served_home: Path) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
    asked = {"name": "search_evidence", "arguments": {"query": "seeds"}}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked},
    ]
    process = subprocess.Popen(
        [sys.executable, str(CLI), "--home", str(served_home), "mcp"],
        env=environment({}),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("".join(f"{json.dumps(message)}\n" for message in messages))
    process.stdin.flush()
    answers = [json.loads(process.stdout.readline()) for _ in range(2)]
    process.stdin.close()
    assert process.stdout.read() == "" and process.wait() == 0
    process.stdout.close()
    assert [answer["id"] for answer in answers] == [1, 2] and not answers[1]["result"]["isError"]


def test_without_a_library_the_command_says_so(tmp_path: Path) -> None:
    out, err = start("--home", tmp_path / "none", "mcp", cwd=tmp_path).communicate()
    assert not out and "holds no library" in err and not (tmp_path / "none").exists()


def test_a_person_who_types_the_command_is_told_what_it_waits_for(served_home: Path) -> None:
    command = [str(CLI), "--home", str(served_home), "mcp"]
    child: Any = pexpect.spawn(sys.executable, command, env=environment({}), encoding="utf-8", timeout=300)
    child.expect("agents start this command themselves")
    child.sendeof()
    child.expect(pexpect.EOF)
    child.close()
    assert child.exitstatus == 0
