"""Validates answers, whole or streamed as server-sent events, and extracts text, tool calls, usage and finish reason.

Everything is sanitized here before it is committed: a paid answer is kept even if its usage is nonsense, and nothing
unreadable enters the journal. A streamed answer is complete at `[DONE]` or once it has a finish reason; what the server
does with the connection afterwards does not invalidate the paid answer.
"""

from __future__ import annotations

import asyncio
import json
import math
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing
from typing import Any, Final

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call

from ...documents.marker_escaping import strip_placeholders
from .failures import BrokenAnswerError, classify_failure, one_line
from .response_body import data_lines, parse_object

MOST_TOKENS: Final = 1_000_000_000  # per call; no model reads or writes that much
MOST_CALLS: Final = 64  # tool calls in one answer; further ones are dropped
_MOST_ARGUMENTS: Final = 50_000  # characters
_MOST_NESTED: Final = 32
_KEPT_OF_BROKEN: Final = 2_000  # characters of non-JSON arguments, shown to the model so that it corrects them
_NAME: Final = 200
_REASON: Final = 40


def token_count(value: object) -> int:
    """A server's token count, rounded up; 0 for anything invalid, such as -1, "many", 10^24 or true."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return math.ceil(value) if 0 <= value <= MOST_TOKENS else 0


def read_usage(usage: object, asked: str = "prompt_tokens", given: str = "completion_tokens") -> UsageMetadata | None:
    """The usage that a server reports, with non-negative counts; None if it reports nothing usable."""
    if not isinstance(usage, Mapping):
        return None
    read, written = token_count(usage.get(asked)), token_count(usage.get(given))
    if not read + written:
        return None
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


def read_answer(data: Mapping[str, Any]) -> AIMessage:
    """The first choice of a whole answer; raises `BrokenAnswerError` if there is none."""
    choice = data["choices"][0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BrokenAnswerError("no message in it")
    role = message.get("role")
    if isinstance(role, str) and role not in ("assistant", ""):
        raise BrokenAnswerError(f"a {one_line(role)} message instead of an answer")
    good: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
    calls = message.get("tool_calls")
    for call in calls[:MOST_CALLS] if isinstance(calls, list) else ():
        function = call.get("function") if isinstance(call, dict) else None
        if not isinstance(function, dict) or not isinstance(function.get("name"), str):
            raise BrokenAnswerError("a tool call without a name")
        name, arguments = function["name"][:_NAME], function.get("arguments")
        try:
            good.append(tool_call(name=name, args=_arguments_of(arguments), id=None))
        except ValueError as error:
            kept = arguments[:_KEPT_OF_BROKEN] if isinstance(arguments, str) else ""
            broken.append(invalid_tool_call(name=name, args=kept, error=one_line(str(error)), id=None))
    finish, refusal = choice.get("finish_reason"), message.get("refusal")
    return AIMessage(
        content=read_text(message.get("content")),
        tool_calls=good,
        invalid_tool_calls=broken,
        usage_metadata=read_usage(data.get("usage")),
        response_metadata={"finish_reason": finish[:_REASON]} if finish and isinstance(finish, str) else {},
        additional_kwargs={"refusal": refusal} if refusal and isinstance(refusal, str) else {},
    )


def read_text(content: object) -> str:
    """The text of an answer: a string, content blocks or nothing; raises `BrokenAnswerError` for anything else."""
    if content is None or isinstance(content, str):
        return strip_placeholders(content or "")
    if not isinstance(content, list):
        raise BrokenAnswerError("its content is neither text nor blocks")
    texts = [block.get("text") if isinstance(block, dict) else block for block in content]
    return strip_placeholders("".join(text for text in texts if isinstance(text, str)))


def _arguments_of(arguments: object) -> dict[str, Any]:
    """Parse the arguments of a tool call; raises ValueError with one line that tells the model what to correct."""
    if isinstance(arguments, str) and len(arguments) > _MOST_ARGUMENTS:
        raise ValueError(f"{len(arguments):,} characters, at most {_MOST_ARGUMENTS:,} are read")
    try:
        read = json.loads(arguments, strict=False) if isinstance(arguments, str) and arguments else arguments
        nested = not _is_shallow(read, _MOST_NESTED)
    except RecursionError:
        nested = True
    if nested:
        raise ValueError(f"more than {_MOST_NESTED} levels deep")
    if read in (None, ""):
        return {}
    if not isinstance(read, dict):
        raise ValueError("no JSON object")
    return read


def _is_shallow(value: object, levels: int) -> bool:
    inner: Iterable[object] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)


# Seconds to wait for usage and [DONE] after the finish reason, and for the end of the body after [DONE]: a connection
# that is read to the end can be reused.
TIMEOUT_AFTER_REASON = 3.0
TIMEOUT_AFTER_DONE = 0.3


class _StreamedResponse:
    """The part of an answer received so far; `whole` returns it in the form of an unstreamed response."""

    def __init__(self) -> None:
        self.ended = False  # whether a finish reason or [DONE] has arrived
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
        text = read_text(delta.get("content"))
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
        calls = [{"function": {"name": call["name"], "arguments": "".join(call["arguments"])}} for call in self._calls]
        message = {"content": "".join(self._text), "refusal": "".join(self._refusal), "tool_calls": calls}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}


async def read_stream(response: Any, say: Callable[[str], None]) -> dict[str, Any]:
    """The answer in an event stream, in the form of an unstreamed response; `say` receives its text piece by piece.

    Raises `ServerRefusalError` for an error event, `BrokenAnswerError` for an invalid chunk, ConnectionError, and
    errors of the HTTP client.
    """
    answer = _StreamedResponse()
    until: float | None = None
    now = asyncio.get_running_loop().time
    try:
        async with aclosing(data_lines(response)) as lines:
            while (line := await _next(lines, until)) is not None:
                data = line.strip()
                if data == b"[DONE]":
                    answer.ended, until = True, now() + TIMEOUT_AFTER_DONE
                    continue  # read on to the end of the body
                if data and (piece := answer.add(parse_object(data, "a chunk"))):
                    say(piece)
                    await asyncio.sleep(0)  # lets listeners run even if the whole answer arrived at once
                if answer.ended and until is None:
                    until = now() + TIMEOUT_AFTER_REASON
    except BrokenAnswerError:
        if not answer.ended:
            raise
    if not answer.ended:
        raise ConnectionError("the stream ended before the answer was complete")
    return answer.whole()


async def _next(lines: AsyncIterator[bytes], until: float | None) -> bytes | None:
    """The next line of data; None at the end, or at the deadline `until` of an answer that is already complete."""
    try:
        async with asyncio.timeout_at(until):
            return await anext(lines, None)
    except Exception as error:
        if until is None or classify_failure(error) is None:
            raise
        return None
