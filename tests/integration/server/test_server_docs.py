"""The examples of docs/server.md do what the page says, as they stand there."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

from tests.support.cli_process import ROOT, environment
from tests.support.served_home import served

PAGE = (ROOT / "docs" / "server.md").read_text(encoding="utf-8")
ADDRESS = "http://127.0.0.1:8765"


def blocks(language: str) -> list[str]:
    """The fenced examples of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def own_home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return shutil.copytree(sample_home, tmp_path_factory.mktemp("documented") / "home")


@pytest.fixture(scope="module")
def url(own_home: Path) -> Iterator[str]:
    with served(own_home) as address:
        yield address


def run(command: list[str], home: Path) -> str:
    done = subprocess.run(command, env=environment({"HOME": str(home)}), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("command", blocks("bash"))
def test_a_documented_command_is_answered(command: str, url: str, own_home: Path) -> None:
    out = run(["bash", "-c", command.replace(ADDRESS, url)], own_home)
    assert '"error":' not in out
    if '"stream": true' in command:
        *_, usage, done = [line for line in out.splitlines() if line]
        assert done == "data: [DONE]" and json.loads(usage.removeprefix("data: "))["usage"]
    else:
        assert json.loads(out)


@pytest.mark.parametrize("program", blocks("python"))
def test_a_documented_program_runs(program: str, url: str, own_home: Path) -> None:
    out = run([sys.executable, "-c", program.replace(ADDRESS, url)], own_home)
    assert out or "print" not in program


def documented() -> set[str]:
    """The tools of the page."""
    return set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))


def described(block: str) -> dict[str, Any]:
    server: dict[str, Any] = json.loads(block)["mcpServers"]["citeloom"]
    return server


async def test_an_agent_starts_the_program_as_documented(own_home: Path) -> None:
    given = described(blocks("json")[0])
    program = str(Path(sys.executable).with_name(given["command"]))
    arguments = [str(own_home) if item.endswith(".citeloom") else item for item in given["args"]]
    async with Client(StdioServerParameters(command=program, args=arguments, env=environment({}))) as agent:
        listed = {tool.name for tool in (await agent.list_tools()).tools}
    assert listed == documented()


async def test_an_agent_connects_as_documented(url: str) -> None:
    given = described(blocks("json")[1])
    address = given["url"].replace(ADDRESS, url)
    async with (
        httpx.AsyncClient(headers=given["headers"]) as http,
        Client(streamable_http_client(address, http_client=http)) as agent,
    ):
        listed = {tool.name for tool in (await agent.list_tools()).tools}
    assert listed == documented()
