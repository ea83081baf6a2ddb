"""Streams a complete answer of the protocol in chunks, as servers do, with the faults that occur in practice."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any, Literal

from starlette.responses import StreamingResponse
from starlette.types import Receive, Scope, Send

Json = dict[str, Any]

# What goes wrong after the first half of the pieces; "unended" closes cleanly without a last chunk or [DONE].
StreamFault = Literal["cut", "unended", "garbage", "stream-error", "list-chunk", "no-delta", "silence"]
STREAM_FAULTS: frozenset[str] = frozenset(StreamFault.__args__)  # type: ignore[attr-defined]
_GARBAGE: dict[str, str] = {
    "garbage": "data: {not json",
    "stream-error": 'data: {"error": {"message": "worker died", "code": 503}}',
    "list-chunk": "data: [1, 2]",
    "no-delta": 'data: {"choices": [{"index": 0}]}',
}


def pieces_of(text: str) -> list[str]:
    """Pieces similar to a model's tokens: short, and splitting words and markers."""
    return re.findall(r"\s?\w{1,4}|\s|[^\w\s]", text)


def chunks_of(answer: Json, *, usage: bool) -> Iterator[Json]:
    """The chunks of an answer: role, content pieces, tool calls, finish reason, and usage when requested."""
    head = {name: answer.get(name) for name in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
    choice = answer["choices"][0]
    message = choice["message"]

    def chunk(delta: Json, finish_reason: str | None = None) -> Json:
        return head | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}]}

    yield chunk({"role": message["role"], "content": ""})
    for piece in pieces_of(message.get("content") or ""):
        yield chunk({"content": piece})
    for place, call in enumerate(message.get("tool_calls") or ()):
        given = call["function"]["arguments"]
        yield chunk({"tool_calls": [{**call, "index": place, "function": {**call["function"], "arguments": ""}}]})
        for part in (given[: len(given) // 2], given[len(given) // 2 :]):
            yield chunk({"tool_calls": [{"index": place, "function": {"arguments": part}}]})
    yield chunk({}, choice.get("finish_reason") or "stop")
    if usage and answer.get("usage"):
        yield head | {"choices": [], "usage": answer["usage"]}


class Gate:
    """Holds streams after a number of chunks until it is opened."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.reached = threading.Event()
        self._open = threading.Event()

    def open(self) -> None:
        """Release all streams, including later ones."""
        self._open.set()

    async def passed(self) -> None:
        """Wait here until the gate is open."""
        self.reached.set()
        await asyncio.to_thread(self._open.wait)


class EventStream(StreamingResponse):
    """An answer in chunks.

    Args:
        pace: seconds before each chunk except the first.
        fault: what happens after half of the chunks.
    """

    def __init__(
        self, answer: Json, body: Json, *, pace: float = 0.0, fault: StreamFault | None = None, gate: Gate | None = None
    ) -> None:
        self._chunks = list(chunks_of(answer, usage=bool((body.get("stream_options") or {}).get("include_usage"))))
        self._pace = pace
        self._fault = fault
        self._gate = gate
        self._cut = False
        super().__init__(self._events(), media_type="text/event-stream")

    async def _events(self) -> AsyncIterator[str]:
        yield ": as some servers do to keep a connection open\n\n"
        for place, chunk in enumerate(self._chunks):
            if self._pace and place:
                await asyncio.sleep(self._pace)
            if self._gate is not None and place == self._gate.after:
                await self._gate.passed()
            if self._fault is not None and place == len(self._chunks) // 2:
                if self._fault == "silence":
                    await asyncio.Event().wait()  # until the server stops
                if self._fault in _GARBAGE:
                    yield f"{_GARBAGE[self._fault]}\n\n"
                self._cut = self._fault == "cut"
                return
            yield f"data: {json.dumps(chunk)}\n\n"
        yield "data: [DONE]\n\n"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def until_cut(message: Any) -> None:
            if self._cut:
                # uvicorn's request cycle, which holds the socket: closed without the last chunk of the body.
                cycle: Any = receive.__self__  # type: ignore[attr-defined]
                cycle.transport.close()
                return
            await send(message)

        await super().__call__(scope, receive, until_cut)
