"""Sessions shared by the runs of one process, as in the LangGraph server and inside a parent graph.

The settings of a run are the graph's context, which Studio shows as a form. It has every field of
`settings.config.Settings` except API keys and where keys are found: secrets stay in the environment of the process. An
empty field takes its value from the environment or `citeloom.toml`. The context comes with a request to the server, and
any page open in a browser may send one: an address given here gets a key only when it is on this machine.

An unknown field is an error. LangGraph's server drops fields that the JSON schema does not list before the graph
sees them, whatever the model would say about them; a schema without properties would let them through, but leave
Studio's form empty.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final, Optional, Self
from weakref import WeakKeyDictionary, WeakValueDictionary

from langgraph.runtime import Runtime
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ModelWrapValidatorHandler,
    ValidationError,
    create_model,
    model_validator,
)

from ..settings.config import Settings, load_settings
from ..settings.key_trust import CONTEXT
from ..stores.home import Home, configured_home
from .input_check import GraphInputError, require_known
from .prompt_fitting import fitted
from .session import LATEST_RUNS, Session, create_session
from .state import Update


class _Context(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _named(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Raise Citeloom's own errors: LangGraph passes on what is raised here."""
        if isinstance(given, dict):
            keys = [str(name) for name in given if str(name).endswith("_api_key")]
            if keys:
                message = f"context: {keys[0]} is an API key and is not accepted here."
                raise GraphInputError(message, help="Set it in the environment of the process.")
            require_known("context", given, cls.model_fields)
        try:
            return handler(given)
        except ValidationError as error:
            wrong = error.errors()[0]
            name = ".".join(str(part) for part in wrong["loc"])
            secret = name.endswith("_base_url")
            value = "a value that is not shown" if secret else f"{wrong['input']!r:.80}"
            raise GraphInputError(f"context: field {name}: {wrong['msg'].lower()}, got {value}.") from None


def _fields() -> dict[str, Any]:
    # `X | None` needs an annotation that is known statically; these are read at runtime.
    return {
        name: (Optional[info.annotation], Field(default=None, description=info.description))  # noqa: UP045
        for name, info in Settings.model_fields.items()
        if not name.endswith("_api_key")
    }


SectionContext = create_model("SectionContext", __base__=_Context, **_fields())
SectionContext.__doc__ = "Settings of one run; an empty field takes the value of the environment."


def settings_of(context: object) -> Settings:
    """The settings of a run; raises `ConfigurationError`.

    A parent graph passes its own context down to us; one that is not ours leaves everything to the environment.
    """
    if isinstance(context, SectionContext):
        return load_settings(brought=context.model_dump(exclude_none=True), origin=CONTEXT)
    return load_settings()


@dataclass
class _LoopSessions:
    """What the runs of one event loop share: stores by the settings that open them, and a session for each settings."""

    opened: dict[str, asyncio.Task[Session]] = field(default_factory=dict)
    benches: dict[str, Session] = field(default_factory=dict)


_shared: WeakKeyDictionary[asyncio.AbstractEventLoop, _LoopSessions] = WeakKeyDictionary()


# Settings that library and journal are opened with; runs that differ only in others share the open stores.
_OF_STORES: Final = frozenset(
    {"embedding_model", "embedding_base_url", "prompts_dir", "request_timeout", "max_retries", "max_concurrency"}
)


async def shared_session(runtime: Runtime[Any]) -> Session:
    """The process's session for the settings of a run's context; raises `InputError`, also when there is no library."""
    settings, home = await asyncio.to_thread(_settings_and_home, runtime.context)
    shared = _shared.setdefault(asyncio.get_running_loop(), _LoopSessions())
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


SessionProvider = Callable[[Runtime[Any]], Awaitable[Session]]


def bound(node: Callable[..., Awaitable[Update]], session_of: SessionProvider) -> Callable[..., Awaitable[Update]]:
    """The node as a graph calls it; `session_of` provides library, roles and journal of the run."""

    async def run(state: Any, runtime: Runtime[Any]) -> Update:
        session = await session_of(runtime)
        return await fitted(session, session.run_id(runtime), lambda: node(state, runtime, session))

    run.__name__ = node.__name__
    run.__doc__ = node.__doc__
    return run
