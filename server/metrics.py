"""Counts for Prometheus: answered requests, and the state of jobs, streams, library and journal at each scrape."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

if TYPE_CHECKING:
    from .server_state import ServerState

TEXT_FORMAT: Final = CONTENT_TYPE_LATEST
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SPENT: Final = ("llm_calls", "journal_hits", "input_tokens", "output_tokens", "embedded_texts")


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
        """Pass the request on, and count its answer when it begins."""

        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                self._counts.add(scope["method"], message["status"])
            await send(message)

        await self._app(scope, receive, counted)


def metrics_text(state: ServerState) -> bytes:
    """All counts in the text format of Prometheus; blocks."""
    scraped = CollectorRegistry()
    scraped.register(_State(state))
    return generate_latest(state.requests.registry) + generate_latest(scraped)


class _State:
    def __init__(self, state: ServerState) -> None:
        self._state = state

    def collect(self) -> Iterator[Metric]:
        state = self._state
        active = GaugeMetricFamily("citeloom_jobs", "Active jobs.", labels=("kind", "state"))
        for (kind, name), count in state.jobs.counts().items():
            active.add_metric((kind, name), count)
        yield active
        yield GaugeMetricFamily("citeloom_streams", "Open event streams.", value=state.streams.open_now)
        yield GaugeMetricFamily("citeloom_papers", "Papers in the library.", value=len(state.session.library.papers()))
        spent = asdict(state.session.spent_now())
        for name in _SPENT:
            text = f"{name.replace('_', ' ').capitalize()} since the server started."
            yield CounterMetricFamily(f"citeloom_{name}", text, value=spent[name])
