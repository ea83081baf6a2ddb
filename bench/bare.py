"""A bare HTTP client: what the same requests cost when they are only sent and their JSON is read.

It is as fast as possible: the pool of one httpx client checks all its connections for every request, which makes 60
concurrent requests slower than 20, so connections beyond 20 go to further clients of 15 each.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import httpx

Stage = Sequence[dict[str, Any]]


class BareClient:
    """Sends stages of requests to an endpoint, each stage concurrently, at most `at_once` requests at a time."""

    def __init__(self, base_url: str, at_once: int) -> None:
        self._url = f"{base_url}/chat/completions"
        self._at_once = asyncio.Semaphore(at_once)
        count = 1 if at_once <= 20 else -(-at_once // 15)
        limits = httpx.Limits(max_connections=1000, max_keepalive_connections=100)
        headers = {"Authorization": "Bearer none"}
        self._clients = [httpx.AsyncClient(limits=limits, headers=headers, timeout=60) for _ in range(count)]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for client in self._clients:
            await client.aclose()

    async def walk(self, stages: Sequence[Stage]) -> float:
        """Seconds for all stages in sequence."""
        started = time.perf_counter()
        for stage in stages:
            await asyncio.gather(*(self._post(place, body) for place, body in enumerate(stage)))
        return time.perf_counter() - started

    async def until_first_word(self, stages: Sequence[Stage]) -> float:
        """Seconds for all stages; the last one, a streamed request, ends at its first word."""
        started = time.perf_counter()
        await self.walk(stages[:-1])
        seconds = 0.0
        async with self._clients[0].stream("POST", self._url, json=stages[-1][0]) as response:
            async for line in response.aiter_lines():
                if not seconds and line.startswith("data: {") and _says_something(json.loads(line[6:])):
                    seconds = time.perf_counter() - started
        assert seconds, "no word was received"
        return seconds

    async def _post(self, place: int, body: dict[str, Any]) -> Any:
        client = self._clients[place % len(self._clients)]
        async with self._at_once:
            response = await client.post(self._url, json=body)
        response.raise_for_status()
        if not body.get("stream"):
            return response.json()
        return [json.loads(line[6:]) for line in response.text.splitlines() if line.startswith("data: {")]


def _says_something(chunk: dict[str, Any]) -> bool:
    return any(choice["delta"].get("content") for choice in chunk["choices"])
