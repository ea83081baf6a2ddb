"""The server as a user starts it, in a process of its own that can be killed and started again."""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path

import httpx

from tests.support.cli_process import start

_ADDRESS = re.compile(r"http://[\d.]+:(\d+)")


class ServedProcess:
    """`serve` on a home, with these settings (`CHAT_MODEL=...`); started again it keeps its port."""

    def __init__(self, home: Path, settings: Mapping[str, str]) -> None:
        self.home = home
        self._settings = settings
        self._process: subprocess.Popen[str] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        """Where it is reached."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """The id of its process."""
        assert self._process is not None
        return self._process.pid

    def start(self, *options: str) -> None:
        """Start it and wait until it answers."""
        arguments = ("--home", self.home, "serve", "--port", str(self.port), *options)
        self._process = start(*arguments, cwd=self.home.parent, settings=self._settings)
        assert self._process.stderr is not None
        said = []
        for line in self._process.stderr:
            said.append(line)
            if found := _ADDRESS.search(line):
                self.port = int(found[1])
                break
        else:
            raise AssertionError(f"the server ended while it started: {''.join(said)}")
        httpx.get(f"{self.url}/api/v1/health", timeout=300).raise_for_status()

    def kill(self) -> None:
        """Kill it without warning."""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """Stop it with the signal that the system sends."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        assert self._process is not None
        self._process.send_signal(how)
        self._process.communicate()
