"""Resumes a run by its id: its request and settings as stored in the home, checked against the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final, cast

from ..errors import ConfigurationError, InputError
from ..experiment import parse_experiment
from ..graph.session import Session
from ..settings.config import EXTRACTIVE, Settings, load_settings
from ..settings.key_trust import DEFAULT, RUN, same_endpoint, shown_address
from ..stores.home import Home
from ..stores.run_register import RunRecord
from .execution import same_run
from .fingerprint import KEPT_ROLES, KEPT_SETTINGS, RunKind
from .run_requests import ResearchRequest, SectionRequest

_OF_ANSWERS: Final = frozenset({"answer_words", "answer_sources"})

_ASKED: Final = frozenset(field.name for field in fields(ResearchRequest))


def request_to_resume(run: RunRecord) -> SectionRequest | ResearchRequest:
    """The request of a registered run, to resume exactly this run."""
    if run.section == "research":
        return ResearchRequest.of(run.request, fresh=run.fresh, thread_id=run.thread_id)
    source = run.request["source"]
    experiment = parse_experiment(run.request["experiment"], source=source)
    return SectionRequest(cast(RunKind, run.section), experiment, source, run.fresh, run.thread_id)


def require_same_run(run: RunRecord, request: SectionRequest | ResearchRequest, session: Session) -> None:
    """Raise `InputError` if the request would now start another run; blocks."""
    if not same_run(run, request, session):
        raise InputError(
            f"Run {run.thread_id} was started with another library or other prompts.",
            help="Restore them, or run the original command for a new run.",
        )


def settings_to_resume(run: RunRecord, current: Settings, home: Home, given: Mapping[str, Any]) -> Settings:
    """The settings stored with the run, overridden by those `given` now.

    A home may come from somebody else, so only settings of the text are taken from it, and addresses get only the keys
    that the run started with. Raises `ConfigurationError` when the run used another endpoint than the current settings
    name.
    """
    _require_request(run, home)
    kept, marks = run.request["settings"], run.request.get("key_marks", [])
    taken = {
        name: value
        for name, value in kept.items()
        if name in KEPT_SETTINGS | _OF_ANSWERS and value != getattr(current, name)  # what is set now keeps its origin
    }
    settings = load_settings(
        brought=taken, origin=RUN, vouched=[mark for mark in marks if isinstance(mark, str)], home=home.address, **given
    )
    _require_same_endpoints(run, current, settings, home)
    return settings


def _require_request(run: RunRecord, home: Home) -> None:
    """Raise `ConfigurationError` for a request from which no run can be repeated."""
    request, needed = run.request, {"asked": dict} if run.section == "research" else {"source": str, "experiment": dict}
    expected: dict[str, type] = {"settings": dict, **needed}
    wrong = [name for name, kind in expected.items() if not isinstance(request.get(name), kind)]
    wrong += ["asked"] if not wrong and not _ASKED.issuperset(request.get("asked", ())) else []
    wrong += ["key_marks"] if not isinstance(request.get("key_marks", []), list) else []
    if wrong:
        place = f"table runs, column request, row thread_id={run.thread_id!r}"
        raise ConfigurationError(
            f"{home.register_name}: {place}: {wrong[0]} cannot be read.",
            help="Delete the run with 'runs delete' and start it again.",
        )


def _require_same_endpoints(run: RunRecord, current: Settings, settings: Settings, home: Home) -> None:
    for role in KEPT_ROLES:
        model, url = settings.address_of(role)
        _, now = current.address_of(role)
        setting = current.url_setting(role)
        if model == EXTRACTIVE or current.origin(setting) == DEFAULT or same_endpoint(url, now):
            continue
        variable = f"CITELOOM_{settings.url_setting(role).upper()}"
        raise ConfigurationError(
            f"{home.register_name}: run {run.thread_id} was begun at {shown_address(url)}, but {setting} is "
            f"{shown_address(now)} now ({current.origin(setting)}): nothing was sent.",
            help=f"To resume it there, set {variable}={shown_address(url)} in the environment; "
            "to use the endpoint set now, give the command again for a new run.",
        )
