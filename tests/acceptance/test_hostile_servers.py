"""Whole commands against hostile servers: each ends, in bounded time and memory, with one line or with its section.

A command is a process of its own. Whatever a server did to it, the commands after it work on the same home.
"""

from __future__ import annotations

import json
import resource
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_process import Finished, finish, run, start
from tests.support.hostile_server import HOLD, RESET, HostileServer, Part, packed, response, said, stream, without_end
from tests.support.openai_server import FakeOpenAI, Json, Raw
from tests.support.protocol_answers import completion
from tests.support.sample_library import EXPERIMENT, SAMPLES, THREE

pytestmark = pytest.mark.attack

PATIENCE = 240.0  # seconds, many times what a command takes
MOST_MEMORY = 1_500_000  # kilobytes, with the bundled embedding and the vector store loaded
DEEP = b"[" * 200_000 + b"]" * 200_000


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile") / ".citeloom"
    papers = [SAMPLES / f"{key}.md" for key in THREE]
    done = run("ingest", *papers, "--bib", SAMPLES / "library.bib", "--home", root, cwd=root.parent)
    assert done.code == 0, done.err
    return root


def settings(base_url: str, **more: str) -> dict[str, str]:
    limits = {"REQUEST_TIMEOUT": "4", "MAX_RETRIES": "1", "MAX_SEARCH_ITERATIONS": "1", "TOP_K_INITIAL": "4"}
    return {"CHAT_MODEL": "some-model", "CHAT_BASE_URL": base_url, **limits, **more}


def discussion(home: Path, base_url: str, *options: str, **more: str) -> Finished:
    """The command, which must end on its own."""
    arguments = ("discussion", "--exp", EXPERIMENT, "--home", home, "--out", home.parent / "out", *options)
    process = start(*arguments, cwd=home.parent, settings=settings(base_url, **more))
    out, err = process.communicate(timeout=PATIENCE)
    return Finished(process.returncode, out, err)


def check(ended: Finished, home: Path) -> None:
    """No traceback, one line of error, and a home that other commands can use."""
    assert ended.code in (0, 2, 3), ended.err
    assert "Traceback" not in ended.err
    assert len(ended.errors) == (ended.code == 2)
    assert "\x1b[2J" not in ended.err
    assert resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss < MOST_MEMORY
    for command in (("runs", "list"), ("journal", "stats")):
        after = finish(start(*command, "--home", home, cwd=home.parent))
        assert after.code == 0, after.err


def for_ever(head: bytes, part: bytes, pause: float = 0.0) -> Callable[[], Iterable[Part]]:
    def script() -> Iterable[Part]:
        yield head
        yield from without_end(part, pause)

    return script


BODY = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n"
SCRIPTS: dict[str, Callable[[], Iterable[Part]]] = {
    "JSON of 200,000 levels": lambda: [response(DEEP)],
    "a refusal of 200,000 levels": lambda: [response(DEEP, status="503 Busy")],
    "300 MB in 300 kB": lambda: [response(packed(300), "Content-Encoding: gzip")],
    "packed twice": lambda: [response(packed(300, 2), "Content-Encoding: gzip, gzip")],
    "a body without end": for_ever(BODY, b" " * 65_536),
    "a body that trickles": for_ever(BODY, b" ", 0.05),
    "headers without end": for_ever(b"HTTP/1.1 200 OK\r\n", b"X: " + b"a" * 60_000 + b"\r\n"),
    "100 Continue for ever": for_ever(b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.001),
    "a stream that trickles": for_ever(stream(b""), b": \n", 0.05),
    "nothing": lambda: [HOLD],
    "reset": lambda: [RESET],
    "no HTTP": lambda: [b"\x00\xff nonsense\r\n\r\n"],
    "a redirect loop": lambda: [response(b"", "Location: /v1/chat/completions", status="307 Temporary")],
    "a redirect elsewhere": lambda: [response(b"", "Location: http://127.0.0.1:9/v1", status="308 Permanent")],
    "wait for ever": lambda: [response(b"", "Retry-After: 999999999", status="429 Slow")],
    "orders to a terminal": lambda: [response(b'{"error": "\\u001b[2J\\u202e"}', status="400 Bad")],
    "a number as content": lambda: [response(said(7))],
}


@pytest.mark.parametrize("script", SCRIPTS.values(), ids=SCRIPTS)
def test_a_command_ends_with_one_error_line(home: Path, script: Callable[[], Iterable[Part]]) -> None:
    with HostileServer(script) as server:
        ended = discussion(home, server.base_url)
        assert server.calls() <= 80
    assert ended.code in (2, 3)
    check(ended, home)


def odd_usage(usage: Any) -> Callable[[Json], Raw]:
    def behave(body: Json) -> Raw:
        return Raw(json.dumps(completion(body, 1) | {"usage": usage}))

    return behave


@pytest.mark.parametrize(
    "count", [1.5, "many", 10**24, -1_000_000, True, [1], {"a": 1}, float("nan")], ids=lambda count: str(count)[:12]
)
def test_a_section_is_written_and_kept_whatever_the_server_reports_as_usage(home: Path, count: Any) -> None:
    usage = {"prompt_tokens": count, "completion_tokens": count, "total_tokens": count}
    with FakeOpenAI(behaviour=odd_usage(usage)) as server:
        first = discussion(home, server.base_url)
        calls = server.calls()
        fresh = discussion(home, server.base_url)
        assert server.calls() == calls
    assert (first.code, fresh.code) == (0, 0), first.err + fresh.err
    check(first, home)


def test_a_limit_holds_against_a_server_that_ignores_it(home: Path) -> None:
    billed = {"prompt_tokens": 500, "completion_tokens": 28_000}
    with FakeOpenAI(behaviour=odd_usage(billed)) as server:
        ended = discussion(home, server.base_url, "--max-tokens", "100000")
        assert server.calls() * 28_500 <= 100_000
    assert ended.code == 3 and "--max-tokens" in ended.err
    check(ended, home)
