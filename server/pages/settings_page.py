"""Settings: current values and their origins, the models, and the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Annotated, Any, Final

from fastapi import APIRouter, Form, Request, Response

from ...api import model_setup, remembering
from ...api.library_upkeep import alibrary_counts, settings_in_force
from ...errors import CiteloomError
from ...settings.config import Settings
from ...settings.key_trust import DEFAULT
from ..access import caller
from ..problems import ServerError, to_problem
from ..server_state import ServerState, StateOf
from .html import page

router = APIRouter(include_in_schema=False)
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


@router.get("/settings")
async def settings(request: Request, state: StateOf) -> Response:
    return await _settings_page(request, state)


@router.get("/settings/memory")
async def memory(request: Request, state: StateOf) -> Response:
    """The lines of the memory, and what edits suggest; changed through the API."""
    session = state.session
    context = {
        "lines": await remembering.alist_memory(session.settings, session.home),
        "proposals": await remembering.apropose_memory(session.settings, session.home),
        "used": session.settings.use_memory,
    }
    return page(request, "memory.html", context)


@router.post("/settings/models")
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
        if model.strip():
            await model_setup.atry_choice(state.session, choice)
        kept = await model_setup.achoose_model(state.session, choice) if act == "save" else ""
    except CiteloomError as error:
        problem = to_problem(error)
        return await _settings_page(request, state, {**entered, "problem": problem}, int(problem["status"]))
    key_said = f" Its key is in {kept}." if kept else ""
    said = f"{model} answers." if act != "save" else f"{model or 'No model of its own'} is set for {role}.{key_said}"
    return await _settings_page(request, state, {**entered, "said": said})


def may_change(state: ServerState) -> bool:
    """Whether whoever got past the guard owns the server: they have its token, or only this machine reaches it."""
    if (who := caller.get()) is not None:
        return "admin" in who.rights
    return state.tokens.needed or (state.options.loopback and not state.options.names)


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
                "model": getattr(session.settings, f"{role}_model") or "",
                "base_url": getattr(session.settings, f"{role}_base_url") or "",
                "has_key": getattr(session.settings, f"{role}_api_key") is not None,
            }
            for role, purpose in model_setup.MODEL_ROLES.items()
        ],
        "found": found,
        "entered": entered or {"role": ""},
        "may_change": may_change(state),
        "groups": grouped(session.settings),
        "home": str(session.home.name),
        "library": await alibrary_counts(session),
        "notice": session.notice(),
        "options": state.options,
    }
    return page(request, "settings.html", context, status)


def grouped(settings: Settings) -> list[tuple[str, list[dict[str, Any]]]]:
    groups: dict[str, list[dict[str, Any]]] = {name: [] for name in _GROUPS}
    for name, (value, origin) in settings_in_force(settings).items():
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
