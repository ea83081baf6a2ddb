"""Servers of one library as machines: processes with caches of their own, which can be killed, frozen and restarted."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx

from tests.support.cli_process import CLI, environment
from tests.support.network_hosts import Host
from tests.support.served_app import SSE, Event, events_of

_ADDRESS = re.compile(r"http://[\d.]+:(\d+)")
_PATIENCE = 90.0


class Machine:
    """`serve` on a library in PostgreSQL, with a folder of its own, and a network of its own if there is a `host`."""

    def __init__(self, folder: Path, home: str, settings: Mapping[str, str], host: Host | None = None) -> None:
        folder.mkdir()
        self._folder = folder
        self._environment = {**environment({**settings, "HOME": home}), "XDG_CACHE_HOME": str(folder / "caches")}
        self._prefix = [] if host is None else host.prefix
        self._address = "127.0.0.1" if host is None else host.address
        self._headers = {"Authorization": f"Bearer {settings['SERVER_TOKEN']}"} if "SERVER_TOKEN" in settings else {}
        self._process: subprocess.Popen[str] | None = None
        self._reader: threading.Thread | None = None
        self.said: list[str] = []
        self.port = 0
        self.api = httpx.Client()

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def url(self) -> str:
        """The address of its API."""
        return f"http://{self._address}:{self.port}/api/v1"

    @property
    def caches(self) -> Path:
        """The caches that only this machine has."""
        return self._folder / "caches"

    def start(self) -> Machine:
        """Start it, and wait until it answers; started again it keeps its port."""
        self.launch()
        return self.ready()

    def launch(self) -> None:
        """Start its process."""
        self._process = subprocess.Popen(
            [*self._prefix, sys.executable, str(CLI), "serve", "--host", self._address, "--port", str(self.port)],
            cwd=self._folder,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )

    def ready(self) -> Machine:
        """Wait until it answers."""
        assert self._process is not None
        self.port = self._said_port(self._process)
        transport = httpx.HTTPTransport(retries=50)
        self.api = httpx.Client(base_url=self.url, headers=self._headers, timeout=300, transport=transport)
        self.api.get("/health").raise_for_status()
        return self

    def _said_port(self, process: subprocess.Popen[str]) -> int:
        stream = process.stderr
        assert stream is not None
        for line in stream:
            self.said.append(line)
            if found := _ADDRESS.search(line):
                self._reader = threading.Thread(target=lambda: self.said.extend(stream), daemon=True)
                self._reader.start()
                return int(found[1])
        raise AssertionError("".join(self.said))

    def kill(self) -> None:
        """Kill it without warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it with the signal that the system sends."""
        self._end(signal.SIGTERM)

    def freeze(self) -> None:
        """Stop its process without ending it: its connections stay open."""
        os.kill(self.pid, signal.SIGSTOP)

    def thaw(self) -> None:
        """Let it go on."""
        os.kill(self.pid, signal.SIGCONT)

    @property
    def running(self) -> bool:
        """Whether its process runs, even frozen."""
        return self._process is not None and self._process.poll() is None

    def _end(self, how: signal.Signals) -> None:
        if self._process is None:
            return
        self._process.send_signal(how)
        self._process.wait(300)
        if self._reader is not None:
            self._reader.join(10)
        if self._process.stderr is not None:
            self._process.stderr.close()
        self.api.close()
        self._process = None

    def close(self) -> None:
        """End it in any case."""
        if self.running:
            self.thaw()
            self.kill()

    def events(self, path: str, last_id: str | None = None) -> list[Event]:
        """All events of a stream until it ends."""
        headers = SSE | ({"Last-Event-ID": last_id} if last_id else {})
        with self.api.stream("GET", path, headers=headers) as answer:
            assert answer.status_code == 200, answer.read()
            return list(events_of(answer.iter_lines()))

    def until_token(self, path: str, body: Mapping[str, Any], **headers: str) -> list[Event]:
        """The events of a request that are seen until the text begins; then the client goes away."""
        seen = []
        sent = SSE | {name.replace("_", "-"): value for name, value in headers.items()}
        with self.api.stream("POST", path, json=dict(body), headers=sent) as answer:
            assert answer.status_code == 200, answer.read()
            for event in events_of(answer.iter_lines()):
                seen.append(event)
                if event.name == "token":
                    return seen
        raise AssertionError([(event.name, event.data) for event in seen][-2:])


@contextmanager
def machines(
    folder: Path, home: str, settings: Mapping[str, str], count: int, hosts: Sequence[Host] = ()
) -> Iterator[list[Machine]]:
    """This many machines that serve one library, until the end of the block, each on its host if there are any."""
    places = hosts or [None] * count
    made = [Machine(folder / f"machine-{number}", home, settings, places[number]) for number in range(count)]
    try:
        for machine in made:
            machine.launch()
        yield [machine.ready() for machine in made]
    finally:
        for machine in made:
            machine.close()


def eventually(what: Callable[[], Any], about: str, patience: float = _PATIENCE) -> Any:
    """The first value of `what` that is true; polled, since it depends on other processes."""
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if found := what():
            return found
        time.sleep(0.1)
    raise AssertionError(f"it never came to this: {about}")
