"""Concurrent conversations streamed by a server, against a bare FastAPI application that streams the same events.

The model takes 20 ms per call. Measured are the time to the first event, the events per second, and how much stalled
readers slow the others. Errors, the slowest conversation and the server's memory are reported in one line.

`python -m bench.served HOME 1000` holds that many conversations with a server on this home, twenty at once, and prints
the server's memory after every hundred.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

import httpx

from bench.measure import Row, row_of
from bench.papers import ROOT
from bench.server import serving
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home

AT_ONCE = 50
STALLED = 10
DELAY = 0.02  # seconds that the model takes for a call
GROUP, REPORTED = 20, 100  # concurrent conversations; the memory is printed after this many
BESIDE_STALLED = 1.2  # largest ratio by which stalled readers may slow the others
_SSE = {"Accept": "text/event-stream"}


@dataclass
class Stream:
    """What a client saw of one conversation."""

    first: float = 0.0
    last: float = 0.0
    events: list[tuple[str, str]] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        """Whether the conversation ended with an answer."""
        return bool(self.events) and self.events[-1][0] == "done"


async def measure(home: Home, rounds: int, at_once: int = AT_ONCE) -> list[Row]:
    """Measure the first event, events per second, and the slowdown by stalled readers; print errors and memory."""
    first: list[tuple[float, float]] = []
    pace: list[tuple[float, float]] = []
    stalled: list[tuple[float, float]] = []
    seen: list[Stream] = []
    with serving(DELAY, librarian=True) as model, _citeloom(home, model) as (url, process):
        (warm,) = await _conversations(url, 1, "warming up")
        before = _memory(process, "VmRSS")
        with _echo(home.root / "bench-events.json", warm.events) as bare:
            for number in range(max(1, rounds // 3)):
                ours = await _conversations(url, at_once, f"round {number}")
                reference = await _echoes(bare, at_once)
                seen += ours
                first.append((_p95(ours), _p95(reference)))
                pace.append((1 / _pace(ours), 1 / _pace(reference)))
                beside = await _beside_stalled(url, at_once, f"stalled {number}")
                stalled.append((_seconds(beside), _seconds(ours)))
                seen += beside
        _report(seen, before, process)
    return [
        row_of(f"first event, p95 of {at_once} conversations : bare echo", first),
        row_of("time of an event : bare echo", pace, scale=1e6, unit="us"),
        row_of(f"{at_once} conversations beside {STALLED} stalled readers : alone", stalled, target=BESIDE_STALLED),
    ]


def _report(seen: list[Stream], before: int, process: subprocess.Popen[str]) -> None:
    lasts = [stream.last for stream in seen]
    failed = [stream for stream in seen if not stream.complete]
    print(
        f"server: {len(seen)} conversations, {len(failed)} failed; "
        f"slowest {max(lasts):.1f} s, median {median(lasts):.1f} s; "
        f"memory {before} MiB before, {_memory(process, 'VmRSS')} after, {_memory(process, 'VmHWM')} at most",
        file=sys.stderr,
    )
    for stream in failed:
        print(f"server: failed after {len(stream.events)} events: {stream.events[-1:]}", file=sys.stderr)


async def _conversations(url: str, count: int, about: str) -> list[Stream]:
    """Ask a question in each of `count` new conversations at the same time."""
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=f"{url}/api/v1", timeout=600, limits=limits) as client:
        created = await asyncio.gather(*(client.post("/conversations") for _ in range(count)))
        ids = [answer.raise_for_status().json()["thread_id"] for answer in created]
        asked = [(f"/conversations/{each}/turns", {"question": _question(each, about)}) for each in ids]
        return list(await asyncio.gather(*(_read(client, path, body) for path, body in asked)))


async def _echoes(url: str, count: int) -> list[Stream]:
    async with httpx.AsyncClient(base_url=url, timeout=600, limits=httpx.Limits(max_connections=None)) as client:
        return list(await asyncio.gather(*(_read(client, "/echo", {}) for _ in range(count))))


async def _beside_stalled(url: str, count: int, about: str) -> list[Stream]:
    """Hold conversations while other clients keep the event stream of another one open without reading it."""
    api = f"{url}/api/v1"
    small = httpx.AsyncHTTPTransport(
        limits=httpx.Limits(max_connections=None), socket_options=[(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)]
    )
    async with AsyncExitStack() as held:
        client = await held.enter_async_context(httpx.AsyncClient(base_url=api, timeout=600, transport=small))
        thread_id = (await client.post("/conversations")).json()["thread_id"]
        path = f"/conversations/{thread_id}"
        await client.post(f"{path}/turns", json={"question": _question(thread_id, about)})
        for _ in range(STALLED):
            await held.enter_async_context(client.stream("GET", f"{path}/events"))
        return await _conversations(url, count, about)


def _question(thread_id: str, about: str) -> str:
    """A unique question, so that no answer comes from the journal."""
    return f"What is reported on machine learning, seen from {thread_id} while {about}?"


async def _read(client: httpx.AsyncClient, path: str, body: dict[str, str]) -> Stream:
    seen = Stream()
    began = time.perf_counter()
    name = ""
    async with client.stream("POST", path, json=body, headers=_SSE) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("event: "):
                name = line.removeprefix("event: ")
                seen.first = seen.first or time.perf_counter() - began
            elif line.startswith("data: "):
                seen.events.append((name, line.removeprefix("data: ")))
    seen.last = time.perf_counter() - began
    return seen


def _p95(streams: list[Stream]) -> float:
    firsts = [stream.first for stream in streams]
    return quantiles(firsts, n=20)[-1] if len(firsts) > 1 else firsts[0]


def _seconds(streams: list[Stream]) -> float:
    return max(stream.last for stream in streams)


def _pace(streams: list[Stream]) -> float:
    return sum(len(stream.events) for stream in streams) / _seconds(streams)


def _memory(process: subprocess.Popen[str], what: str) -> int:
    """Mebibytes of a process; 0 where the system does not say."""
    status = Path(f"/proc/{process.pid}/status")
    found = re.search(rf"{what}:\s+(\d+)", status.read_text()) if status.exists() else None
    return int(found[1]) // 1024 if found else 0


@contextmanager
def _citeloom(home: Home, model: str) -> Iterator[tuple[str, subprocess.Popen[str]]]:
    settings = {"CHAT_MODEL": "fake", "CHAT_BASE_URL": model, "CHAT_API_KEY": "k"}
    environment = os.environ | {f"CITELOOM_{name}": value for name, value in settings.items()}
    command = [sys.executable, ROOT / "cli.py", "--home", home.root, "serve", "--port", "0"]
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stderr is not None
        yield next(found[0] for line in process.stderr if (found := re.search(r"http://[\d.]+:\d+", line))), process
    finally:
        process.kill()
        process.communicate()


@contextmanager
def _echo(file: Path, events: list[tuple[str, str]]) -> Iterator[str]:
    file.write_text(json.dumps(events), encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    process = subprocess.Popen([sys.executable, "-m", "bench.echo", str(file), str(port)], cwd=ROOT)
    try:
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), timeout=1).close()
                break
            except OSError:
                assert process.poll() is None, "the echo server ended"
                time.sleep(0.05)
        yield f"http://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        file.unlink(missing_ok=True)


async def _grow(home: Home, total: int) -> None:
    """Print the memory of a server while it holds up to `total` conversations."""
    with serving(0, librarian=True) as model, _citeloom(home, model) as (url, process):
        failed = 0
        for done in range(0, total, GROUP):
            if done % REPORTED == 0:
                print(f"{done} conversations, {failed} failed: {_memory(process, 'VmRSS')} MiB", flush=True)
            failed += sum(not stream.complete for stream in await _conversations(url, GROUP, f"after {done}"))
        print(f"{total} conversations, {failed} failed: {_memory(process, 'VmRSS')} MiB")


if __name__ == "__main__":
    asyncio.run(_grow(FolderHome(Path(sys.argv[1])), int(sys.argv[2])))
