"""Health, readiness, metrics, usage and settings of the server; counts its answers for Prometheus."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import asdict
from typing import Final

from fastapi import APIRouter, Request, Response
from prometheus_client import CollectorRegistry, Counter, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ...api.library_upkeep import acheck_library, alibrary_counts, settings_in_force
from ...api.model_setup import aoffered_models
from ...api.people import owned_runs
from ...api.results import DoctorRecord, UsageRecords
from ...api.stored_runs import spending_record, usage_by_day, usage_total
from ..response_models import METRICS, Health, OfferedModels, Readiness, SettingRecord, problems
from ..server_state import ServerState, StateOf

router = APIRouter(tags=["status"])
_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})
_SPENT: Final = ("llm_calls", "journal_hits", "input_tokens", "output_tokens", "embedded_texts")


@router.get("/health", responses=problems())
async def health() -> Health:
    """Whether the server answers at all; needs no token."""
    return {"status": "ok"}


@router.get("/ready", responses=problems(503))
async def ready(state: StateOf) -> Readiness:
    """Whether library, journal and registers can be read."""
    counts = await alibrary_counts(state.session)
    await state.session.journal.spending([])
    await state.jobs.known()
    return {"status": "ready", "papers": counts["papers"]}


@router.get("/metrics", response_class=Response, responses={200: METRICS, **problems()})
async def metrics(request: Request, state: StateOf) -> Response:
    """Counts for Prometheus: requests, jobs, streams, papers, model calls and tokens."""
    scraped = CollectorRegistry()
    registries = (request.app.state.answered, scraped)

    def text() -> bytes:
        scraped.register(_Scraped(state))
        return b"".join(map(generate_latest, registries))

    return Response(await asyncio.to_thread(text), headers={"Content-Type": CONTENT_TYPE_LATEST})


@router.get("/usage", responses=problems())
async def usage(state: StateOf) -> UsageRecords:
    """What runs cost, by run and by day."""
    journal, prices = state.session.journal, state.session.settings.prices
    owned = await asyncio.to_thread(owned_runs, state.session.home)
    rows, days = await journal.spending(owned), await journal.spending_by_day(owned)
    return {
        "runs": [spending_record(row, prices) for row in rows],
        "days": usage_by_day(days, prices),
        "total": usage_total(rows, prices),
    }


@router.get("/models", responses=problems(422))
async def models(state: StateOf) -> OfferedModels:
    """The models that a question of a conversation may choose, the configured one first; none without a chat model."""
    return {"models": await aoffered_models(state.session)}


@router.get("/settings", responses=problems())
async def settings(state: StateOf) -> dict[str, SettingRecord]:
    """Every setting in force with its origin; keys are shown as set or not."""
    shown = settings_in_force(state.session.settings)
    return {name: {"value": value, "origin": origin} for name, (value, origin) in shown.items()}


@router.get("/doctor", responses=problems())
async def doctor(state: StateOf) -> DoctorRecord:
    """Check the library; changes nothing."""
    session = state.session
    findings = await acheck_library(session)
    return {"home": str(session.home.name), "library": await alibrary_counts(session), "findings": findings}


class CountAnswers:
    """ASGI middleware that counts answers by method and status."""

    def __init__(self, app: ASGIApp, registry: CollectorRegistry) -> None:
        self._app = app
        self._answered = Counter("citeloom_requests", "Answered requests.", ("method", "status"), registry=registry)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def counted(message: Message) -> None:
            if message["type"] == "http.response.start":
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._answered.labels(method, str(message["status"])).inc()
            await send(message)

        await self._app(scope, receive, counted)


class _Scraped:
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
