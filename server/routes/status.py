"""Health, readiness, metrics, usage and settings of the server."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Response

from ...api.library_health import acheck_library, alibrary_counts, settings_in_force
from ...api.spending import spending_record, usage_by_day, usage_total
from ..metrics import TEXT_FORMAT, metrics_text
from ..response_models import METRICS, DoctorRecord, Health, Readiness, SettingRecord, UsageRecords, problems
from ..server_state import StateOf

router = APIRouter(tags=["status"])


@router.get("/health", responses=problems())
async def health() -> Health:
    """Whether the server answers at all; needs no token."""
    return Health(status="ok")


@router.get("/ready", responses=problems(503))
async def ready(state: StateOf) -> Readiness:
    """Whether library, journal and registers can be read."""
    counts = await alibrary_counts(state.session)
    await state.session.journal.spending([])
    await state.jobs.known()
    return Readiness(status="ready", papers=counts["papers"])


@router.get("/metrics", response_class=Response, responses={200: METRICS, **problems()})
async def metrics(state: StateOf) -> Response:
    """Counts for Prometheus: requests, jobs, streams, papers, model calls and tokens."""
    text = await asyncio.to_thread(metrics_text, state)
    return Response(text, headers={"Content-Type": TEXT_FORMAT})


@router.get("/usage", responses=problems())
async def usage(state: StateOf) -> UsageRecords:
    """What runs cost, by run and by day."""
    journal, prices = state.session.journal, state.session.settings.prices
    rows, days = await journal.spending(), await journal.spending_by_day()
    return UsageRecords(
        runs=[spending_record(row, prices) for row in rows],
        days=usage_by_day(days, prices),
        total=usage_total(rows, prices),
    )


@router.get("/settings", responses=problems())
async def settings(state: StateOf) -> dict[str, SettingRecord]:
    """Every setting in force with its origin; keys are shown as set or not."""
    shown = settings_in_force(state.session.settings)
    return {name: SettingRecord(value=value, origin=origin) for name, (value, origin) in shown.items()}


@router.get("/doctor", responses=problems())
async def doctor(state: StateOf) -> DoctorRecord:
    """What is fine with the library, and what is not; changes nothing."""
    session = state.session
    return DoctorRecord(
        home=str(session.home.name), library=await alibrary_counts(session), findings=await acheck_library(session)
    )
