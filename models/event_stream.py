"""An answer as server-sent events: the chunks of the OpenAI protocol, checked as they come."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import Any, Final

from citeloom.models.errors import BrokenAnswerError, raise_hidden, server_message

# A token comes in a chunk of some 300 bytes: room for 100,000 of them.
MOST_BYTES_OF_STREAM: Final = 32_000_000


class StreamEndedError(ConnectionError):
    """A stream ended before its answer did; never leaves `models`."""


def is_event_stream(response: Any) -> bool:
    """Whether a response is one; some servers answer whole, whatever they were asked."""
    return str(response.headers.get("content-type", "")).partition(";")[0].strip().lower() == "text/event-stream"


async def answer_chunks(response: Any) -> AsyncGenerator[dict[str, Any], None]:
    """The chunks of an answer; the response is closed at the end.

    Raises `ServerRefusalError` for an error among them, `BrokenAnswerError` for what is no chunk, `StreamEndedError`,
    and errors of the HTTP client.
    """
    ended = False
    try:
        async for line in _lines(response):
            if not line.startswith(b"data:"):
                continue  # a comment that keeps the connection open, or a field of no use
            data = line[5:].strip()
            if data == b"[DONE]":
                ended = True
                continue  # to the end of the body, so that the connection can be used again
            if data:
                chunk = _chunk(data)
                ended = ended or any(choice.get("finish_reason") for choice in chunk.get("choices") or ())
                yield chunk
    finally:
        await response.aclose()
    if not ended:
        raise StreamEndedError("the stream ended before the answer did")


def whole_as_chunk(answer: Mapping[str, Any]) -> dict[str, Any]:
    """An answer that came whole, as the only chunk of a stream."""
    choice = answer["choices"][0]
    message = dict(choice["message"])
    if calls := message.get("tool_calls"):
        message["tool_calls"] = [{**call, "index": place} for place, call in enumerate(calls)]
    return {**answer, "choices": [{"index": 0, "delta": message, "finish_reason": choice.get("finish_reason")}]}


async def _lines(response: Any) -> AsyncIterator[bytes]:
    left = b""
    size = 0
    async for part in response.aiter_bytes():
        size += len(part)
        if size > MOST_BYTES_OF_STREAM:
            raise BrokenAnswerError(f"an answer of more than {MOST_BYTES_OF_STREAM // 1_000_000} MB")
        *lines, left = (left + part).split(b"\n") if b"\n" in part else ([left + part])
        for line in lines:
            yield line.rstrip(b"\r")
    if left:
        yield left


def _chunk(data: bytes) -> dict[str, Any]:
    try:
        chunk = json.loads(data)
    except ValueError as error:
        said = server_message(data[:2000].decode("utf-8", "replace"))
        raise BrokenAnswerError(f"a chunk that is not JSON but {said!r}") from error
    if not isinstance(chunk, dict):
        raise BrokenAnswerError("a chunk that is no JSON object")
    if chunk.get("error"):
        raise_hidden(chunk["error"])
    choices = chunk.get("choices")
    if not isinstance(choices, list | None):
        raise BrokenAnswerError("a chunk whose choices are no list")
    for choice in choices or ():
        _check_delta(choice)
    return chunk


def _check_delta(choice: object) -> None:
    delta = choice.get("delta") if isinstance(choice, dict) else None
    if not isinstance(delta, dict):
        raise BrokenAnswerError("a chunk without a delta")
    if not isinstance(delta.get("content"), str | None):
        raise BrokenAnswerError("a chunk whose content is no text")
