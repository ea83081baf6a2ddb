"""Settings: current values and their origins."""

from __future__ import annotations

from typing import Any, Final

from fastapi import APIRouter, Request, Response

from ...api.library_upkeep import alibrary_counts, settings_in_force
from ...settings.config import Settings
from ...settings.key_trust import DEFAULT
from ..server_state import StateOf
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
_WORDS: Final = {"True": "yes", "False": "no"}


@router.get("/settings")
async def settings(request: Request, state: StateOf) -> Response:
    session = state.session
    context = {
        "groups": grouped(session.settings),
        "home": str(session.home.name),
        "library": await alibrary_counts(session),
        "notice": session.notice,
        "options": state.options,
    }
    return page(request, "settings.html", context)


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
