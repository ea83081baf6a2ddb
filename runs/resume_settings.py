"""The settings for resuming a run by its id: those stored in its home, checked against the user's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ..config import EXTRACTIVE, Settings, load_settings
from ..errors import ConfigurationError
from ..key_trust import DEFAULT, RUN, same_endpoint, shown_address
from ..stores.home import Home
from ..stores.run_registry import RunRecord
from .fingerprint import KEPT_ROLES, KEPT_SETTINGS

_OF_ANSWERS: Final = frozenset({"answer_words", "answer_sources"})


def settings_to_resume(run: RunRecord, current: Settings, home: Home, given: Mapping[str, Any]) -> Settings:
    """The settings stored with the run, overridden by those `given` now.

    A home may come from somebody else, so only settings of the text are taken from it, and addresses get only the keys
    that the run started with. Raises `ConfigurationError` when the run used another endpoint than the current settings
    name.
    """
    kept = run.request.get("settings")
    marks = run.request.get("key_marks", [])
    if not isinstance(kept, dict) or not isinstance(marks, list):
        raise ConfigurationError(
            f"{home.runs}: run {run.thread_id} cannot be read.", help="Delete it with 'runs delete' and begin it anew."
        )
    taken = {
        name: value
        for name, value in kept.items()
        if name in KEPT_SETTINGS | _OF_ANSWERS and value != getattr(current, name)  # what is set now keeps its origin
    }
    settings = load_settings(
        brought=taken, origin=RUN, vouched=[mark for mark in marks if isinstance(mark, str)], home=home.root, **given
    )
    _require_same_endpoints(run, current, settings, home)
    return settings


def _require_same_endpoints(run: RunRecord, current: Settings, settings: Settings, home: Home) -> None:
    for role in KEPT_ROLES:
        model, url = settings.address_of(role)
        _, now = current.address_of(role)
        setting = current.url_setting(role)
        if model == EXTRACTIVE or current.origin(setting) == DEFAULT or same_endpoint(url, now):
            continue
        variable = f"CITELOOM_{settings.url_setting(role).upper()}"
        raise ConfigurationError(
            f"{home.runs}: run {run.thread_id} was begun at {shown_address(url)}, but {setting} is "
            f"{shown_address(now)} now ({current.origin(setting)}): nothing was sent.",
            help=f"To resume it there, set {variable}={shown_address(url)} in the environment; "
            "to use the endpoint set now, give the command again for a new run.",
        )
