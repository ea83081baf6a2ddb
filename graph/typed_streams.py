"""Our events as typed projections of LangGraph's v3 stream, of a graph of ours and of one that embeds it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from langgraph.stream import ProtocolEvent, StreamChannel, StreamTransformer

from .run_events import Event

_PROJECTIONS: Final[Mapping[str, str]] = {
    "stage": "progress",
    "finding": "passages",
    "evidence": "passages",
    "token": "draft",
    "citation": "draft",
    "restarted": "draft",
}


class EventProjections(StreamTransformer):
    """Projects our events, also those of subgraphs, onto `run.extensions`: "progress", "passages" and "draft".

    Our graphs are compiled with it. A graph that embeds one is given it with `compile(transformers=[EventProjections])`
    or `astream_events(..., version="v3", transformers=[EventProjections])`; what else it emits stays in `run.custom`.
    LangGraph's server has them as its channels `custom:progress`, `custom:passages` and `custom:draft`.
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
