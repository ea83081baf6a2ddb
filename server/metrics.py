"""Counts for Prometheus: answered requests, and the state of jobs, streams, library and journal at each scrape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Final

from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.spending import Usage

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


@dataclass(frozen=True, eq=False)
class ServerCounts:
    """What is counted at a scrape: active jobs by kind and state, and all else by name."""

    jobs: Mapping[tuple[str, str], int]
    streams: int
    papers: int
    usage: Usage

    def collect(self) -> Iterator[Metric]:
        """The counts as the registry reads them."""
        active = GaugeMetricFamily("citeloom_jobs", "Active jobs.", labels=("kind", "state"))
        for (kind, name), count in self.jobs.items():
            active.add_metric((kind, name), count)
        yield active
        yield GaugeMetricFamily("citeloom_streams", "Open event streams.", value=self.streams)
        yield GaugeMetricFamily("citeloom_papers", "Papers in the library.", value=self.papers)
        spent = asdict(self.usage)
        for name in _SPENT:
            text = f"{name.replace('_', ' ').capitalize()} since the server started."
            yield CounterMetricFamily(f"citeloom_{name}", text, value=spent[name])


def metrics_text(requests: RequestCounts, counts: ServerCounts) -> bytes:
    """All counts in the text format of Prometheus."""
    scraped = CollectorRegistry()
    scraped.register(counts)
    return generate_latest(requests.registry) + generate_latest(scraped)
