"""Health, metrics, usage, settings, models and memory of the server, and their pages."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Path, Request, Response
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from ...api import model_setup, people, remembering, results, stored_runs
from ...api.library_upkeep import acheck_library, alibrary_counts, describe_settings
from ...errors import CiteloomError
from ...settings.config import Settings
from ...settings.key_trust import DEFAULT, user_configuration
from ..access import caller
from ..problems import ServerError, to_problem
from ..request_models import MemoryBody, ProposalBody
from ..response_models import METRICS, Health, OfferedModels, Readiness, SettingRecord, problems
from ..server_state import ServerState, StateOf
from ..shared_calls import SessionOf, shared_tool
from .html import page
from .people_page import may_begin

router = APIRouter(tags=["status"])
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
async def usage(state: StateOf) -> results.UsageRecords:
    """What runs cost, by run and by day."""
    journal, prices = state.session.journal, state.session.settings.prices
    owned = await asyncio.to_thread(people.owned_runs, state.session.home)
    rows, days = await journal.spending(owned), await journal.spending_by_day(owned)
    return {
        "runs": [stored_runs.spending_record(row, prices) for row in rows],
        "days": stored_runs.usage_by_day(days, prices),
        "total": stored_runs.usage_total(rows, prices),
    }


@router.get("/models", responses=problems(422))
async def models(state: StateOf) -> OfferedModels:
    """The models that a question of a conversation may choose, the configured one first; none without a chat model."""
    return {"models": await model_setup.aoffered_models(state.session)}


@router.get("/settings", responses=problems())
async def settings(state: StateOf) -> dict[str, SettingRecord]:
    """Every setting in force with its origin; keys are shown as set or not."""
    shown = describe_settings(state.session.settings)
    return {name: {"value": value, "origin": origin} for name, (value, origin) in shown.items()}


@router.get("/doctor", responses=problems())
async def doctor(state: StateOf) -> results.DoctorRecord:
    """Check the library; changes nothing."""
    session = state.session
    findings = await acheck_library(session)
    return {"home": str(session.home.name), "library": await alibrary_counts(session), "findings": findings}


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


pages = APIRouter(include_in_schema=False)
# Groups by name prefix, in the order of the page; all others come last.
_GROUPS: Final = {
    "Models": "chat_ agent_ reader_ writer_ judge_ summarizer_ vision_ embedding_ temperature",
    "Limits and prices": "max_calls max_tokens max_cost prices max_concurrency max_retries request_",
    "Searching and reading": "retrieval_ rerank top_k_ per_paper window_ read_ search_ paper_share",
    "Scores": "vector_ llm_ score_ answer_threshold enough_ max_search_",
    "Writing": "section_ answer_ summary_ max_repairs max_output_ context_ prompts_ cite_ csl strict",
    "Conversations": "conversation_",
    "Library": "home chunk_ pdf_",
}
Field = Annotated[str, Form(max_length=2000)]
_NOT_OWNER: Final = "Serve it on 127.0.0.1 without --name, or with a token that only its owner has."
_WORDS: Final = {"True": "yes", "False": "no"}


@pages.get("/settings")
async def settings_page(request: Request, state: StateOf) -> Response:
    return await _settings_page(request, state)


@pages.get("/settings/memory")
async def memory_page(request: Request, state: StateOf) -> Response:
    """The lines of the memory, and what edits suggest; changed through the API."""
    session = state.session
    context = {
        "lines": await remembering.alist_memory(session.settings, session.home),
        "proposals": await remembering.apropose_memory(session.settings, session.home),
        "used": session.settings.use_memory,
    }
    return page(request, "memory.html", context)


@pages.post("/settings/models")
async def choose(
    request: Request,
    state: StateOf,
    role: Field = "chat",
    model: Field = "",
    base_url: Field = "",
    key: Field = "",
    act: Field = "test",
) -> Response:
    """Test the connection to a model, or choose it; only the server's owner may."""
    choice = model_setup.ModelChoice(role, model, base_url, key)
    entered = {"role": role, "model": model, "base_url": base_url}
    try:
        if not may_change(state):
            raise ServerError(403, "Only the owner of this server may change its models.", help=_NOT_OWNER)
        if act == "test" and not model.strip():
            if offered := await model_setup.alist_models(state.session, choice):
                listed = f"The server answers. Choose one of its models: {', '.join(offered[:20])}."
                return await _settings_page(request, state, {**entered, "said": listed, "offered": offered})
            raise ServerError(422, "Model is empty: there is nothing to test.", help="Give the name of a model.")
        if model.strip():
            await model_setup.atry_choice(state.session, choice)
        kept = await model_setup.achoose_model(state.session, choice) if act == "save" else ""
    except CiteloomError as error:
        problem = to_problem(error)
        return await _settings_page(request, state, {**entered, "problem": problem}, int(problem["status"]))
    saved = (
        f"{model or 'No model of its own'} is set for {role}. Saved in {user_configuration()}, for all your libraries."
    )
    key_said = f" Its key is in {kept}." if kept else ""
    said = f"{model} answers. It is not saved yet." if act != "save" else saved + key_said
    return await _settings_page(request, state, {**entered, "said": said, "saved": act == "save"})


def may_change(state: ServerState) -> bool:
    """Whether whoever got past the guard owns the server: they have its token, or only this machine reaches it."""
    if (who := caller.get()) is not None:
        return "admin" in who.rights
    return state.tokens.needed or state.options.local_only


async def _settings_page(
    request: Request, state: ServerState, entered: Mapping[str, Any] | None = None, status: int = 200
) -> Response:
    session = state.session
    found = await asyncio.to_thread(model_setup.find_servers) if may_change(state) else []
    context = {
        "models": [
            {
                "role": role,
                "purpose": purpose,
                **{name: getattr(session.settings, f"{role}_{name}") or "" for name in ("model", "base_url")},
                "has_key": getattr(session.settings, f"{role}_api_key") is not None,
            }
            for role, purpose in model_setup.MODEL_ROLES.items()
        ],
        "found": found,
        "entered": entered or {"role": ""},
        "may_change": may_change(state),
        "may_begin": may_begin(request, state),
        "groups": group_settings(session.settings),
        "home": str(session.home.name),
        "library": await alibrary_counts(session),
        "notice": session.notice(),
        "options": state.options,
    }
    return page(request, "settings.html", context, status)


def group_settings(settings: Settings) -> list[tuple[str, list[dict[str, Any]]]]:
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in _GROUPS}
    for name, (value, origin) in describe_settings(settings).items():
        group = next((group for group, starts in _GROUPS.items() if name.startswith(tuple(starts.split()))), "Other")
        row = {
            "name": name,
            "value": _WORDS.get(value, value),
            "origin": origin,
            "purpose": type(settings).model_fields[name].description or "",
            "changed": origin != DEFAULT,
            "variable": f"CITELOOM_{name.upper()}",
        }
        groups.setdefault(group, []).append(row)
    changed = [row for rows in groups.values() for row in rows if row["changed"]]
    return [(group, rows) for group, rows in [("Set for this server", changed), *groups.items()] if rows]


memory_router = APIRouter(prefix="/memory", tags=["memory"])
Id = Annotated[str, Path(min_length=1, max_length=40, description="Id of a line or proposal, or a prefix of it.")]


@memory_router.get("", responses=problems())
@shared_tool("What the author wants")
async def list_memory(session: SessionOf) -> results.MemoryLines:
    """What the author wants of every text: terms, spelling, papers never to cite, facts. Follow it in what you write
    for the author. Free and fast."""
    return {"lines": await remembering.alist_memory(session.settings, session.home)}


@memory_router.post("", status_code=201, responses=problems())
async def add_line(body: MemoryBody, state: StateOf) -> results.MemoryLine:
    """Add a line."""
    return await remembering.aremember(state.session.settings, state.session.home, **body.model_dump())


@memory_router.get("/proposals", responses=problems())
async def list_proposals(state: StateOf) -> results.MemoryProposals:
    """What the edits of finished texts suggest; nothing is stored until it is accepted."""
    return {"proposals": await remembering.apropose_memory(state.session.settings, state.session.home)}


@memory_router.post("/proposals/{line_id}", responses=problems(404))
async def answer_proposal(line_id: Id, body: ProposalBody, state: StateOf) -> results.MemoryLines:
    """Accept a proposal, or decline it for good; returns the new line, if any."""
    session = state.session
    line = await remembering.aanswer_proposal(session.settings, session.home, line_id, **body.model_dump())
    return {"lines": [] if line is None else [line]}


@memory_router.put("/{line_id}", responses=problems(404))
async def edit_line(line_id: Id, body: MemoryBody, state: StateOf) -> results.MemoryLine:
    """Replace a line; it stays shared or not."""
    return await remembering.aremember(state.session.settings, state.session.home, body.text, note_id=line_id)


@memory_router.delete("/{line_id}", status_code=204, response_class=Response, responses=problems(404))
async def delete_line(line_id: Id, state: StateOf) -> None:
    """Delete a line."""
    await remembering.aforget(state.session.settings, state.session.home, line_id)


@pages.get("/library-check")
async def library_check(request: Request, state: StateOf) -> Response:
    return page(request, "library_check.html", {"record": await doctor(state)})
