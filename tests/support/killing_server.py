"""A fake server that kills its client at the n-th request: while the client waits, or once it has the answer.

Moments are events, not times: the n-th request received, or the n-th answer sent. Processes are identified by their
key, so that the calls in flight of a killed one are known exactly.
"""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import threading
from collections import Counter
from dataclasses import dataclass
from typing import Literal

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import Response

from tests.support.openai_server import Answer, FakeOpenAI

Side = Literal["asked", "answered"]


@dataclass(frozen=True)
class Moment:
    """The `number`th request (from 1) of the client with key `key`, before or after its answer."""

    key: str
    side: Side
    number: int


class KillingServer(FakeOpenAI):
    """Counts requests by key; `at` and `victim` determine the kill."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: Counter[str] = Counter()
        self._answered_to: Counter[str] = Counter()
        self.at: Moment | None = None
        self.victim: subprocess.Popen[str] | None = None
        self._held: tuple[Moment, threading.Event, threading.Event] | None = None

    def hold(self, key: str, number: int) -> tuple[threading.Event, threading.Event]:
        """Hold a request: returns an event that it has arrived, and one to be set before it is answered."""
        came, go_on = threading.Event(), threading.Event()
        self._held = Moment(key, "asked", number), came, go_on
        return came, go_on

    def forget(self) -> None:
        """Reset the counts."""
        self.asked.clear()
        self._answered_to.clear()
        self.requests.clear()
        self.headers.clear()
        self.at = self.victim = self._held = None

    async def _handle(self, request: Request, answer: Answer) -> Response:
        key = request.headers.get("authorization", "").removeprefix("Bearer ")
        self.asked[key] += 1
        self._strike("asked", key, self.asked[key])
        if self._held is not None and self._held[0] == Moment(key, "asked", self.asked[key]):
            _, came, go_on = self._held
            came.set()
            await asyncio.to_thread(go_on.wait)
        response = await super()._handle(request, answer)

        def answered() -> None:
            self._answered_to[key] += 1
            self._strike("answered", key, self._answered_to[key])

        response.background = BackgroundTask(answered)
        return response

    def _strike(self, side: Side, key: str, number: int) -> None:
        if self.at == Moment(key, side, number) and self.victim is not None:
            os.kill(self.victim.pid, signal.SIGKILL)
