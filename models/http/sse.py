"""Parses answers streamed as server-sent events of the OpenAI protocol.

An answer is complete at `[DONE]` or once it has a finish reason: whatever the server does with the connection after
that does not invalidate the paid answer.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final

from .failures import BrokenAnswerError, failure_of, raise_embedded_error, server_message
from .response_body import body_parts, json_of
from .response_validation import MOST_CALLS, text_of

# A token takes a chunk of about 300 bytes: room for 100,000 of them.
MOST_BYTES_OF_STREAM: Final = 32_000_000
MOST_BYTES_OF_LINE: Final = 4_000_000
_DATA: Final = re.compile(rb"^data:([^\n]*)", re.M)
# Seconds to wait for usage and [DONE] after the finish reason, and for the end of the body after [DONE]: a connection
# that is read to its end can be reused.
PATIENCE_AFTER_REASON = 3.0
PATIENCE_AFTER_DONE = 0.3


class StreamEndedError(ConnectionError):
    """A stream ended before its answer was complete; never leaves `models`."""


class StreamedResponse:
    """The part of an answer received so far; `whole` returns it in the format of an unstreamed response."""

    def __init__(self) -> None:
        self.ended = False  # with a reason or [DONE]
        self._text: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._places: dict[int, dict[str, Any]] = {}
        self._finish: Any = None
        self._refusal: list[str] = []
        self._usage: Any = None

    def add(self, chunk: dict[str, Any]) -> str:
        """Add a chunk and return its text; raises `BrokenAnswerError` if it is not a valid chunk."""
        # Usage may come with every chunk, as a running total.
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices")
        if not isinstance(choices, list | None):
            raise BrokenAnswerError("a chunk whose choices are not a list")
        if not choices:
            return ""
        delta = choices[0].get("delta") if isinstance(choices[0], dict) else None
        if not isinstance(delta, dict):
            raise BrokenAnswerError("a chunk without a delta")
        if isinstance(delta.get("refusal"), str):
            self._refusal.append(delta["refusal"])
        for call in delta["tool_calls"] if isinstance(delta.get("tool_calls"), list) else ():
            self._add_call(call)
        if reason := choices[0].get("finish_reason"):
            self._finish, self.ended = reason, True
        text = text_of(delta.get("content"))
        self._text.append(text)
        return text

    def _add_call(self, part: Any) -> None:
        function = part.get("function") if isinstance(part, dict) else None
        if not isinstance(function, dict):
            return
        place, name, given = part.get("index"), function.get("name"), function.get("arguments")
        call = self._places.get(place) if isinstance(place, int) else next(reversed(self._calls), None)
        # Some servers give every call the same index, or none.
        if call is None or (name and call["id"] and part.get("id") not in (None, "", call["id"])):
            if len(self._calls) >= MOST_CALLS:
                return
            call = {"id": part.get("id"), "name": name, "arguments": []}
            self._calls.append(call)
        if isinstance(place, int):
            self._places[place] = call
        call["arguments"].append(given if isinstance(given, str) else "")

    def whole(self) -> dict[str, Any]:
        """The answer in the format of an unstreamed response."""
        calls = [{"function": {"name": call["name"], "arguments": "".join(call["arguments"])}} for call in self._calls]
        message = {"content": "".join(self._text), "refusal": "".join(self._refusal), "tool_calls": calls}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}


def is_event_stream(response: Any) -> bool:
    """Whether a response is an event stream; some servers never stream."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower() == "text/event-stream"


async def answer_pieces(response: Any, answer: StreamedResponse) -> AsyncGenerator[str, None]:
    """Yield the text pieces of an answer and collect it in `answer`; closes the response at the end.

    Raises `ServerRefusalError` for an error event, `BrokenAnswerError` for an invalid chunk, `StreamEndedError`, and
    errors of the HTTP client.
    """
    until: float | None = None
    now = asyncio.get_running_loop().time
    try:
        async with aclosing(_lines(response)) as lines:
            while (line := await _next(lines, until)) is not None:
                data = line.strip()
                if data == b"[DONE]":
                    answer.ended, until = True, now() + PATIENCE_AFTER_DONE
                    continue  # read on to the end of the body
                if data and (piece := answer.add(_chunk(data))):
                    yield piece
                if answer.ended and until is None:
                    until = now() + PATIENCE_AFTER_REASON
    except BrokenAnswerError:
        if not answer.ended:
            raise
    finally:
        await response.aclose()
    if not answer.ended:
        raise StreamEndedError("the stream ended before the answer was complete")


async def _next(lines: AsyncIterator[bytes], until: float | None) -> bytes | None:
    """The next line of data; None at the end, or at the deadline `until` of an answer that is already complete."""
    if until is None:
        return await anext(lines, None)
    try:
        async with asyncio.timeout_at(until):
            return await anext(lines, None)
    except Exception as error:
        if failure_of(error) is None:
            raise
        return None


async def _lines(response: Any) -> AsyncGenerator[bytes, None]:
    """Yield the data lines; others are keep-alive comments or unused fields."""
    left: list[bytes] = []
    size = 0
    async with aclosing(body_parts(response, MOST_BYTES_OF_STREAM)) as parts:
        async for part in parts:
            left.append(part)
            size += len(part)
            if b"\n" in part:
                block, _, rest = b"".join(left).rpartition(b"\n")
                left, size = [rest], len(rest)
                for line in _DATA.findall(block):
                    yield line
            elif size > MOST_BYTES_OF_LINE:
                raise BrokenAnswerError(f"a line of more than {MOST_BYTES_OF_LINE // 1_000_000} MB")
    for line in _DATA.findall(b"".join(left)):
        yield line


def _chunk(data: bytes) -> dict[str, Any]:
    try:
        chunk = json_of(data)
    except ValueError as error:
        excerpt = server_message(data[:2000].decode("utf-8", "replace"))
        raise BrokenAnswerError(f"a chunk that is not JSON but {excerpt!r}") from error
    if not isinstance(chunk, dict):
        raise BrokenAnswerError("a chunk that is not a JSON object")
    if chunk.get("error"):
        raise_embedded_error(chunk["error"])
    return chunk
