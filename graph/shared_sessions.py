"""Sessions shared by the runs of one process, as in the LangGraph server and inside a parent graph."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakKeyDictionary, WeakValueDictionary

from langgraph.runtime import Runtime

from ..settings.config import Settings
from ..stores.home import Home, configured_home
from .context import settings_of
from .session import LATEST_RUNS, Session, create_session


@dataclass
class _Shared:
    """What the runs of one event loop share: stores by the settings that open them, and a session for each settings."""

    opened: dict[str, asyncio.Task[Session]] = field(default_factory=dict)
    benches: dict[str, Session] = field(default_factory=dict)


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _Shared] = WeakKeyDictionary()


# Settings that library and journal are opened with; runs that differ only in others share the open stores.
_OF_STORES: Final = frozenset(
    {"embedding_model", "embedding_base_url", "prompts_dir", "request_timeout", "max_retries", "max_concurrency"}
)


async def shared_session(runtime: Runtime[Any]) -> Session:
    """The process's session for the settings of a run's context; raises `InputError`, also when there is no library."""
    settings, home = await asyncio.to_thread(_settings_and_home, runtime.context)
    shared = _shared.setdefault(asyncio.get_running_loop(), _Shared())
    origin = settings.origin("embedding_base_url")
    stores = f"{home.root}\n{settings.model_dump_json(include=set(_OF_STORES))}\n{origin}"
    if stores not in shared.opened:
        shared.opened[stores] = asyncio.ensure_future(asyncio.to_thread(create_session, settings, home, create=False))
    opening = shared.opened[stores]
    try:
        first = await asyncio.shield(opening)
    except BaseException:
        # When a run is cancelled while it waits, the others still get the session.
        if opening.done() and (opening.cancelled() or opening.exception() is not None):
            shared.opened.pop(stores, None)
        raise
    mark = f"{home.root}\n{settings.model_dump_json()}\n{settings.origins()}"
    if mark not in shared.benches:
        shared.benches[mark] = replace(
            first,
            settings=settings,
            _scopes=WeakValueDictionary(),
            _roles={},
            _budgets=WeakValueDictionary(),
            _contexts=[],
        )
        while len(shared.benches) > LATEST_RUNS:
            shared.benches.pop(next(iter(shared.benches)))
    return shared.benches[mark]


def _settings_and_home(context: object) -> tuple[Settings, Home]:
    settings = settings_of(context)
    return settings, configured_home(settings)
