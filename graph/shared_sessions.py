"""Sessions shared by the runs of one process, as in the LangGraph server and inside a parent graph.

A run's settings are the graph's context, a form in Studio: all `Settings` except API keys and their locations; an
empty field takes its value from the environment or `citeloom.toml`. Any page open in a browser may send a context, so
an address given here gets a key only if it is on this machine.

An unknown field is an error, but LangGraph's server silently drops fields missing from the JSON schema. A schema
without properties would let them through, but leave Studio's form empty.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any, Final, Optional, Self

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

from ..drafts.person_questions import SteeringRecord
from ..invalid_values import describe_invalid, field_path
from ..models.journal.budget import BudgetReachedError
from ..settings.config import Settings, load_settings
from ..settings.key_trust import CONTEXT
from ..stores.folder_home import configured_home
from ..stores.tables import PERSON, acting
from .input_check import GraphInputError, require_known
from .nodes.ask import ask_budget, asks_of
from .prompt_fitting import run_fitted
from .session import LATEST_RUNS, Session, add_memory, open_session
from .state import Update

_ACRONYMS: Final = frozenset({"csl", "llm", "ocr"})


def _as_form(schema: dict[str, Any]) -> None:
    """Add the settings' titles, options and bounds to a form, but no defaults, which would override the environment."""
    bounded = Settings.model_json_schema()["properties"]
    for name, own in schema["properties"].items():
        field = own if "$ref" in str(bounded[name]) else bounded[name]  # a `$ref` points into the other schema
        options = [item for item in field.pop("anyOf", ()) if item != {"type": "null"}]
        field |= options[0] if len(options) == 1 else {"anyOf": options} if options else {}
        field.pop("default", None)
        usual = Settings.model_fields[name].default
        if isinstance(usual, str | int | float) and usual != "":
            field["description"] += f" Default: {usual}."
        words = " ".join(word.upper() if word in _ACRONYMS else word for word in name.split("_"))
        schema["properties"][name] = field | {"title": words[:1].upper() + words[1:]}


class _Context(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True, json_schema_extra=_as_form)

    @model_validator(mode="wrap")
    @classmethod
    def _translate_errors(cls, given: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Raise Citeloom's own errors for wrong fields, which LangGraph passes on."""
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
            name = field_path(wrong["loc"])
            problem = describe_invalid(wrong, show=not name.endswith("_base_url"))
            raise GraphInputError(f"context: field {name}: {problem}.") from None


_fields: Final[dict[str, Any]] = {
    # `X | None` needs a static annotation; these are read at runtime.
    name: (Optional[info.annotation], Field(default=None, description=info.description))  # noqa: UP045
    for name, info in Settings.model_fields.items()
    if not name.endswith("_api_key")
}
SectionContext = create_model("SectionContext", __base__=_Context, **_fields)
SectionContext.__doc__ = "Settings of one run; an empty field takes the value of the environment."


def settings_of(context: object) -> Settings:
    """Load the settings of a run; in a parent graph's context only from the environment.

    Raises `ConfigurationError`.
    """
    if isinstance(context, SectionContext):
        return load_settings(brought=context.model_dump(exclude_none=True), origin=CONTEXT)
    return load_settings()


# Settings with which library and journal are opened; runs that differ only in other settings share the open stores.
_OF_STORES: Final = frozenset(
    {"embedding_model", "embedding_base_url", "prompts_dir", "request_timeout", "max_retries", "max_concurrency"}
)
# Settings that people with accounts cannot choose, since they read from the server or change what others see.
_OWNERS: Final = ("home", "vectors", "prompts_dir", "retraction_watch")
_opening: Final = threading.Lock()
_opened: Final[dict[str, Session]] = {}  # by the home and the settings that open its stores
_sessions: Final[dict[str, Session]] = {}  # by the home and all settings


async def shared_session(runtime: Runtime[Any]) -> Session:
    """Return the session in a run's context, else a shared session for its settings; raises `InputError`."""
    if isinstance(runtime.context, Session):
        return runtime.context
    return await asyncio.to_thread(_share_session, runtime.context)


def _share_session(context: object) -> Session:
    settings = settings_of(context)
    if acting.get() and (own := next((name for name in _OWNERS if settings.origin(name) == CONTEXT), "")):
        raise GraphInputError(f"context: only the server's owner can choose {own}.", help="Leave it empty.")
    home = configured_home(settings)
    settings = add_memory(settings, home)
    key = f"{home.root}\n{settings.model_dump_json()}\n{settings.origins()}"
    stores_key = (
        f"{home.root}\n{settings.model_dump_json(include=set(_OF_STORES))}\n{settings.origin('embedding_base_url')}"
    )
    with _opening:
        if stores_key not in _opened:
            _opened[stores_key] = open_session(settings, home, create=False)
        if key not in _sessions:
            opened = _opened[stores_key]
            _sessions[key] = Session(settings, home, opened.library, opened.journal, opened.prompts)
            while len(_sessions) > LATEST_RUNS:
                _sessions.pop(next(iter(_sessions)))
        return _sessions[key]


def bind_node(node: Callable[..., Awaitable[Update]]) -> Callable[..., Awaitable[Update]]:
    """Wrap a node for a graph: pass it the session of its run, and run it again with smaller prompts if necessary.

    If the run asks about budgets, a person may raise a limit that the node reaches; otherwise it pauses. The node then
    runs again from its beginning, with its answered calls from the journal. Since earlier answers are repeated in the
    same order, the limits start as they were before the node.
    """

    async def run(state: Any, runtime: Runtime[Any]) -> Update:
        user = runtime.server_info.user if runtime.server_info else None
        if user is not None and PERSON in (getattr(user, "permissions", None) or ()):
            acting.set(user.identity)
        session = await shared_session(runtime)
        run_id = session.run_id(runtime)
        budget = await asyncio.to_thread(session.budget, run_id)  # reads and writes the run's owner
        raised, records = dict(state.get("raised") or {}), list[SteeringRecord]()
        asks = "budget" in asks_of(state, session)
        while True:
            if asks:
                budget.set_limits(session.settings, raised)
            try:
                update = await run_fitted(session, run_id, lambda: node(state, runtime, session))
            except BudgetReachedError as error:
                if not asks:
                    raise
                limit, record = await ask_budget(error)
                raised |= limit
                records.append(record)
                continue
            if records:
                return {**update, "raised": raised, "steering": [*update.get("steering", ()), *records]}
            return update

    run.__name__ = node.__name__
    run.__doc__ = node.__doc__
    return run
