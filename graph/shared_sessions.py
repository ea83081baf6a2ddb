"""Sessions shared by the runs of one process, as in the LangGraph server and inside a parent graph."""

from __future__ import annotations

import asyncio
import threading
from dataclasses import replace
from typing import Any, Final
from weakref import WeakValueDictionary

from langgraph.runtime import Runtime

from ..stores.home import configured_home
from .context import settings_of
from .session import LATEST_RUNS, Session, create_session

# Settings that library and journal are opened with; runs that differ only in others share the open stores.
_OF_STORES: Final = frozenset(
    {"embedding_model", "embedding_base_url", "prompts_dir", "request_timeout", "max_retries", "max_concurrency"}
)
_opening: Final = threading.Lock()
_opened: Final[dict[str, Session]] = {}  # by the home and the settings that open its stores
_sessions: Final[dict[str, Session]] = {}  # by the home and all settings


async def shared_session(runtime: Runtime[Any]) -> Session:
    """The process's session for the settings of a run's context; raises `InputError`, also when there is no library."""
    return await asyncio.to_thread(_share_session, runtime.context)


def _share_session(context: object) -> Session:
    settings = settings_of(context)
    home = configured_home(settings)
    key = f"{home.root}\n{settings.model_dump_json()}\n{settings.origins()}"
    stores_key = (
        f"{home.root}\n{settings.model_dump_json(include=set(_OF_STORES))}\n{settings.origin('embedding_base_url')}"
    )
    with _opening:
        if stores_key not in _opened:
            _opened[stores_key] = create_session(settings, home, create=False)
        if key not in _sessions:
            _sessions[key] = replace(
                _opened[stores_key],
                settings=settings,
                _scopes=WeakValueDictionary(),
                _roles={},
                _budgets=WeakValueDictionary(),
                _contexts=[],
            )
            while len(_sessions) > LATEST_RUNS:
                _sessions.pop(next(iter(_sessions)))
        return _sessions[key]
