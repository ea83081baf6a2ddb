"""Counts answered requests for Prometheus."""

from __future__ import annotations

from typing import Final

from prometheus_client import CollectorRegistry, Counter
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestCounts:
    """Answered requests by method and status, in a registry of one server."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._answered = Counter(
            "citeloom_requests", "Answered requests.", ("method", "status"), registry=self.registry
        )

    def add(self, method: str, status: int) -> None:
        """Count an answer."""
        self._answered.labels(method if method in _METHODS else "other", str(status)).inc()


class CountRequests:
    """ASGI middleware that counts answers."""

    def __init__(self, app: ASGIApp, counts: RequestCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Forward the request and count its answer once it starts."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts.add(scope["method"], message["status"])
            await send(message)

        await self._app(scope, receive, counted)
