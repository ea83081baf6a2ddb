"""Validates a server's answer and extracts text, tool calls, token counts and finish reason.

Everything is sanitized here before it is committed: a paid answer is kept even if its usage is nonsense, and nothing
enters the journal that cannot be read back.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any, Final

from langchain_core.messages import AIMessage, InvalidToolCall, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import invalid_tool_call, tool_call

from ...documents.marker_escaping import without_stand_ins
from .failures import BrokenAnswerError, one_line

MOST_TOKENS: Final = 1_000_000_000  # per call; no model reads or writes as much
MOST_CALLS: Final = 64  # tool calls in one answer; further ones are dropped
_MOST_ARGUMENTS: Final = 50_000  # characters
_MOST_NESTED: Final = 32
_KEPT_OF_BROKEN: Final = (
    2_000  # characters of arguments that are not JSON, shown to the model so that it can correct them
)
_NAME: Final = 200
_REASON: Final = 40


def token_count(value: object) -> int:
    """A server's token count, rounded up; 0 for anything invalid, such as -1, "many", 10^24 or true."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,10}", value.strip()):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return 0
    return math.ceil(value) if 0 <= value <= MOST_TOKENS else 0


def usage_of(usage: object, asked: str = "prompt_tokens", given: str = "completion_tokens") -> UsageMetadata | None:
    """The usage that a server reports, with non-negative counts; None if it reports nothing usable."""
    if not isinstance(usage, Mapping):
        return None
    read, written = token_count(usage.get(asked)), token_count(usage.get(given))
    if not read + written:
        return None
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)


def answer_of(data: Mapping[str, Any]) -> AIMessage:
    """The first choice of a whole answer; raises `BrokenAnswerError` if there is none."""
    choice = data["choices"][0]
    message = choice.get("message") if isinstance(choice, dict) else None
    if not isinstance(message, dict):
        raise BrokenAnswerError("no message in it")
    role = message.get("role")
    if isinstance(role, str) and role not in ("assistant", ""):
        raise BrokenAnswerError(f"a {one_line(role)} message instead of an answer")
    good, broken = _calls_of(message.get("tool_calls"))
    finish, refusal = choice.get("finish_reason"), message.get("refusal")
    return AIMessage(
        content=text_of(message.get("content")),
        tool_calls=good,
        invalid_tool_calls=broken,
        usage_metadata=usage_of(data.get("usage")),
        response_metadata={"finish_reason": finish[:_REASON]} if finish and isinstance(finish, str) else {},
        additional_kwargs={"refusal": refusal} if refusal and isinstance(refusal, str) else {},
    )


def text_of(content: object) -> str:
    """The text of an answer: a string, content blocks or nothing; raises `BrokenAnswerError` for anything else."""
    if content is None or isinstance(content, str):
        return without_stand_ins(content or "")
    if not isinstance(content, list):
        raise BrokenAnswerError("its content is neither text nor blocks")
    texts = [block.get("text") if isinstance(block, dict) else block for block in content]
    return without_stand_ins("".join(text for text in texts if isinstance(text, str)))


def _calls_of(calls: object) -> tuple[list[ToolCall], list[InvalidToolCall]]:
    good: list[ToolCall] = []
    broken: list[InvalidToolCall] = []
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
    return good, broken


def _arguments_of(arguments: object) -> dict[str, Any]:
    """Parse the arguments of a tool call; raises ValueError with one line on what the model has to correct."""
    if isinstance(arguments, str) and len(arguments) > _MOST_ARGUMENTS:
        raise ValueError(f"{len(arguments):,} characters, at most {_MOST_ARGUMENTS:,} are read")
    try:
        read = json.loads(arguments, strict=False) if isinstance(arguments, str) and arguments else arguments
    except RecursionError:
        read = None
        nested = True
    else:
        nested = not _is_shallow(read, _MOST_NESTED)
    if nested:
        raise ValueError(f"more than {_MOST_NESTED} levels deep")
    if read is None or read == "":
        return {}
    if not isinstance(read, dict):
        raise ValueError("no JSON object")
    return read


def _is_shallow(value: object, levels: int) -> bool:
    inner: Iterable[object] = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return levels > 0 and all(_is_shallow(item, levels - 1) for item in inner)
