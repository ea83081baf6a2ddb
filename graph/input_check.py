"""Graphs that validate their input, since LangGraph silently drops unknown fields, and project our events.

In a subgraph the input is the parent's whole state, so only missing fields are reported, by the first node.
"""

from __future__ import annotations

import difflib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping
from functools import cache
from typing import Any, ClassVar, Final, NotRequired, get_args, get_origin, get_type_hints

from langchain_core.messages import convert_to_messages
from langchain_core.runnables.config import ensure_config
from langgraph.graph import StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.stream import ProtocolEvent, StreamChannel, StreamTransformer
from langgraph.typing import ContextT, InputT, OutputT, StateT
from pydantic import TypeAdapter, ValidationError

from ..errors import InputError
from ..invalid_values import describe_invalid, field_path
from ..models.concurrency import iterate_async
from .run_events import Event

_CHECKED_BY_NODES: Final = frozenset({"section", "experiment", "question", "asked"})  # with more specific messages
_MESSAGES: Final = "messages"


class GraphInputError(InputError):
    """The input of a graph has an unknown field, or lacks a required one."""


_PROJECTIONS: Final[Mapping[str, str]] = {
    "stage": "progress",
    "finding": "passages",
    "evidence": "passages",
    "token": "draft",
    "citation": "draft",
    "restarted": "draft",
}


class EventProjections(StreamTransformer):
    """Projects our events, including those of subgraphs, onto `run.extensions`: "progress", "passages" and "draft".

    Our graphs are compiled with it. An embedding graph needs `compile(transformers=[EventProjections])` or
    `astream_events(..., version="v3", transformers=[EventProjections])`; its other events stay in `run.custom`.
    LangGraph's server offers the channels `custom:progress`, `custom:passages` and `custom:draft`.
    """

    supports_sync: ClassVar[bool] = True
    required_stream_modes: ClassVar[tuple[str, ...]] = ("custom",)

    def __init__(self, scope: tuple[str, ...] = ()) -> None:
        super().__init__(scope)
        self._channels: dict[str, StreamChannel[Event]] = {name: StreamChannel(name) for name in _PROJECTIONS.values()}

    def init(self) -> dict[str, Any]:
        return dict(self._channels)

    def process(self, event: ProtocolEvent) -> bool:
        if event["method"] == "custom":
            data, inside = event["params"]["data"], event["params"]["namespace"][: len(self.scope)]
            ours = isinstance(data, dict) and data.get("source") == "citeloom" and tuple(inside) == self.scope
            if ours and (name := _PROJECTIONS.get(data["kind"])):
                self._channels[name].push(data)
        return True


class CheckedGraph(CompiledStateGraph[StateT, ContextT, InputT, OutputT]):
    """A compiled graph whose runs raise `GraphInputError` for unknown input fields before doing any work."""

    def stream(self, input: Any, config: Any = None, **options: Any) -> Iterator[Any]:
        """Like the base method, for asynchronous nodes; raises `GraphInputError`; fails in a running event loop."""
        self._require(input, config)
        yield from iterate_async(lambda: super(CheckedGraph, self).astream(input, config, **options))

    async def astream(self, input: Any, config: Any = None, **options: Any) -> AsyncIterator[Any]:
        """Like the base method; raises `GraphInputError`."""
        self._require(input, config)
        async for part in super().astream(input, config, **options):
            yield part

    def _require(self, given: Any, config: Any) -> None:
        nested = ensure_config(config)["configurable"].get("checkpoint_ns")
        if isinstance(given, Mapping) and not nested:
            require_input(given, self.builder.input_schema)


class CheckedStateGraph(StateGraph[StateT, ContextT, InputT, OutputT]):
    """A builder whose compiled graph validates its input, and projects our events in LangGraph's v3 stream."""

    def compile(self, *args: Any, **options: Any) -> CheckedGraph[StateT, ContextT, InputT, OutputT]:
        compiled = super().compile(*args, transformers=[EventProjections], **options)
        return CheckedGraph(**{name: value for name, value in vars(compiled).items() if name != "__orig_class__"})


def require_input(given: Mapping[str, Any], schema: type) -> None:
    """Raise `GraphInputError` for an empty input, unknown fields, or a value of the wrong type."""
    types = _types(schema)
    if _MESSAGES in given and _MESSAGES not in types and "question" in types:
        raise GraphInputError(
            "input: this graph takes no messages.",
            help="Give the last message as question, or use the conversation graph, which takes messages.",
        )
    require_known("input", given, types)
    if not given:
        raise GraphInputError(f"input is empty; {_list_known(types)}.")
    if _MESSAGES in given:  # LangGraph's own error has many lines
        messages = given[_MESSAGES]
        try:
            convert_to_messages(messages if isinstance(messages, list) else [messages])
        except Exception as error:
            raise GraphInputError(
                f"input: field messages cannot be read, got {messages!r:.80}.",
                help='Give a list such as [{"role": "user", "content": "What is calibration?"}].',
            ) from error
    for name in given.keys() - _CHECKED_BY_NODES - {_MESSAGES}:
        try:
            types[name].validate_python(given[name])
        except ValidationError as error:
            wrong = error.errors()[0]
            place = field_path((name, *wrong["loc"]))
            raise GraphInputError(f"input: field {place}: {describe_invalid(wrong, show=True)}.") from None


def require_given(state: Mapping[str, Any], name: str, schema: type) -> None:
    """Raise `GraphInputError` when a required field of the input is missing."""
    if name not in state:
        raise GraphInputError(f"input: field {name} is missing; {_list_known(_types(schema))}.")


def require_known(what: str, given: Collection[str], known: Collection[str]) -> None:
    """Raise `GraphInputError` naming all unknown fields, the closest known names, and all known fields."""
    unknown = [str(name) for name in given if name not in known]
    if not unknown:
        return
    near = {name: difflib.get_close_matches(name, known, n=1) for name in unknown}
    named = ", ".join(f"{name!r}{f' (did you mean {close[0]!r}?)' if close else ''}" for name, close in near.items())
    raise GraphInputError(f"{what}: unknown field{'s' if len(unknown) > 1 else ''} {named}; {_list_known(known)}.")


def _list_known(known: Collection[str]) -> str:
    return f"known fields: {', '.join(known)}"


@cache
def _types(schema: type) -> dict[str, TypeAdapter[Any]]:
    hints = get_type_hints(schema, include_extras=True)
    return {
        name: TypeAdapter(get_args(hint)[0] if get_origin(hint) is NotRequired else hint)
        for name, hint in hints.items()
    }
