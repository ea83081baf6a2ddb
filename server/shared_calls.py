"""Calls of the service layer that are a route and an MCP tool alike, each registered once in `SHARED_CALLS`.

The fields of its options are the query of a GET route, or the body of a POST route, and the arguments of the tool; its
record is the answer of both; its docstring describes both. Calls that run for long are jobs instead (`run_jobs.py`).
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import MISSING, dataclass, fields
from typing import Annotated, Any, Final, Literal, get_type_hints

from fastapi import APIRouter, Query
from pydantic import AliasChoices, Field

from ..api.library_search import apassage_window
from ..api.results import PassageWindow
from ..api.run_options import WindowOptions, spread_options
from ..api.serving import Session
from .response_models import problems
from .server_state import ServerState, StateOf

_EARLIER_NAMES: Final = {"from_year": ("min_year",), "to_year": ("max_year",)}  # of tools' arguments


@dataclass(frozen=True, slots=True)
class SharedCall:
    """A call with what the faces need to offer it.

    Args:
        name: of the tool.
        title: of the tool.
        path: of the route.
        options: a dataclass of options.
        record: the type of the result.
        call: gets the session and the options.
        description: what it does, for agents and in the OpenAPI document.
        method: of the route.
        tag: of the route.
    """

    name: str
    title: str
    path: str
    options: type
    record: Any
    call: Callable[[Session, Any], Awaitable[Any]]
    description: str
    method: Literal["GET", "POST"] = "POST"
    tag: str = "search"

    def add_route(self, router: APIRouter) -> None:
        """Add the route."""

        async def answer(state: ServerState, options: Any) -> Any:
            return await self.call(state.session, options)

        answer.__annotations__ = {"state": StateOf, "options": self.options, "return": self.record}
        answer.__name__, answer.__doc__ = self.name, self.description
        endpoint = spread_options(answer, {"options": self.options}, _query) if self.method == "GET" else answer
        router.add_api_route(self.path, endpoint, methods=[self.method], tags=[self.tag], responses=problems(404))

    def tool(self, session: Session) -> Callable[..., Awaitable[Any]]:
        """The function of the tool."""

        async def answer(options: Any) -> Any:
            return await self.call(session, options)

        answer.__annotations__ = {"options": self.options, "return": self.record}
        answer.__name__, answer.__doc__ = self.name, self.description
        return with_fields(answer, options=self.options)


def with_fields(call: Callable[..., Awaitable[Any]], **groups: type) -> Callable[..., Awaitable[Any]]:
    """Return a tool that takes the fields of its dataclass arguments."""
    return spread_options(call, groups, _arguments)


def _arguments(group: type) -> Iterator[inspect.Parameter]:
    return _parameters(
        group, lambda name, limits: Field(validation_alias=AliasChoices(name, *_EARLIER_NAMES.get(name, ())), **limits)
    )


def _query(group: type) -> Iterator[inspect.Parameter]:
    return _parameters(group, lambda _, limits: Query(**limits))


def _parameters(group: type, limited: Callable[[str, dict[str, Any]], Any]) -> Iterator[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    for item in fields(group):
        annotation: Any = Annotated[types[item.name], limited(item.name, dict(item.metadata))]
        default = inspect.Parameter.empty if item.default is MISSING else item.default
        yield inspect.Parameter(item.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


SHARED_CALLS: Final = (
    SharedCall(
        name="get_context_window",
        title="Read around a passage",
        path="/search/window",
        options=WindowOptions,
        record=PassageWindow,
        call=apassage_window,
        description="Read the passages before and after one that search_evidence or search_papers gave. Free and fast.",
        method="GET",
    ),
)
router = APIRouter()
for shared_call in SHARED_CALLS:
    shared_call.add_route(router)
