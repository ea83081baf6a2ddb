"""A bare HTTP client: what the same requests cost when nothing is done but send them and read the JSON."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Self

import httpx

Stage = Sequence[dict[str, Any]]


class BareClient:
    """Sends stages of requests to an endpoint, each stage at once, `at_once` requests at most."""

    def __init__(self, base_url: str, at_once: int) -> None:
        self._url = f"{base_url}/chat/completions"
        self._at_once = asyncio.Semaphore(at_once)
        self._client = httpx.AsyncClient(
            limits=httpx.Limits(max_connections=1000, max_keepalive_connections=100),
            headers={"Authorization": "Bearer none"},
            timeout=60,
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.aclose()

    async def walk(self, stages: Sequence[Stage]) -> float:
        """Seconds for the stages one after the other."""
        started = time.perf_counter()
        for stage in stages:
            await asyncio.gather(*(self._post(body) for body in stage))
        return time.perf_counter() - started

    async def _post(self, body: dict[str, Any]) -> Any:
        async with self._at_once:
            response = await self._client.post(self._url, json=body)
        response.raise_for_status()
        return response.json()
