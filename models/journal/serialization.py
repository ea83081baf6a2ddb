"""Serializes conversations to journal keys, and answers to journal payloads."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call
from langchain_core.messages.utils import count_tokens_approximately

from ..http.endpoints import ModelIdentity, canonical_json, hash_key
from ..http.responses import read_usage

# Increment when the same conversation is sent to a model in a different form.
_KEY_VERSION = 1
# Control characters except tab and line ends, and bidirectional overrides.
_UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
_HALF_CHARACTER = re.compile("[\ud800-\udfff]")
_READING = (LookupError, TypeError, ValueError, AttributeError, RecursionError)
_FINISH_REASONS = ("finish_reason", "stop_reason", "done_reason")


class UnreadableAnswerError(Exception):
    """A journaled answer cannot be read; never leaves `models`."""


def request_key(
    identity: ModelIdentity,
    messages: Sequence[BaseMessage],
    *,
    tools: Sequence[Mapping[str, Any]] = (),
    schema: Mapping[str, Any] | None = None,
    max_tokens: int | None = None,
) -> str:
    """The journal key of a call: a hash of endpoint, model, parameters, schema, tools and messages.

    Usage, response metadata and ids are ignored. The id of a tool call is replaced by its position in the conversation,
    so that keys are equal even if servers generate different ids.
    """
    places: dict[str | None, int] = {}
    entries: list[dict[str, Any]] = []
    for message in messages:
        content: object = message.content
        if isinstance(content, list):
            content = [
                {name: value for name, value in block.items() if name != "id"} if isinstance(block, dict) else block
                for block in content
            ]
        entry: dict[str, Any] = {"role": message.type, "content": content}
        if message.name:
            entry["name"] = message.name
        if isinstance(message, AIMessage) and (calls := [*message.tool_calls, *message.invalid_tool_calls]):
            entry["calls"] = [[call["name"], call["args"]] for call in calls]
            for call in calls:
                places[call["id"]] = len(places)
        if isinstance(message, ToolMessage):
            entry["answers"] = places.get(message.tool_call_id, -1)
        entries.append(entry)
    asked = {"max_tokens": max_tokens, "tools": list(tools), "schema": schema, "messages": entries}
    model = {"endpoint": identity.endpoint, "model": identity.model, "parameters": identity.parameters}
    return hash_key({"version": _KEY_VERSION, **model, **asked})


def to_payload(message: AIMessage, key: str) -> str:
    """Serialize an answer as JSON: content, tool calls, usage and finish reason, without unprintable characters.

    The ids of tool calls are regenerated from the key: some servers omit them or give every call the same one, and a
    replayed answer must not differ between runs. All servers accept nine letters and digits.
    """
    metadata = message.response_metadata
    finish = next((metadata[name] for name in _FINISH_REASONS if metadata.get(name)), None)
    calls = [
        {"name": printable(call["name"]), "args": printable(call["args"]), "id": f"{key[:7]}{place:02d}"}
        for place, call in enumerate([*message.tool_calls, *message.invalid_tool_calls])
    ]
    return canonical_json(
        {
            "content": printable(message.content),
            "tool_calls": calls[: len(message.tool_calls)],
            "invalid_tool_calls": [
                {**call, "error": printable(broken["error"])}
                for call, broken in zip(calls[len(message.tool_calls) :], message.invalid_tool_calls, strict=True)
            ],
            "usage": read_usage(message.usage_metadata, "input_tokens", "output_tokens"),
            "finish_reason": printable(finish) if isinstance(finish, str) else None,
            "refusal": printable(message.additional_kwargs.get("refusal")),
        }
    )


def printable(value: Any) -> Any:
    """Strip control characters, which terminals interpret, and lone surrogates, which no store takes, at any depth."""
    if isinstance(value, str):
        return _HALF_CHARACTER.sub("\ufffd", _UNSEEN.sub("", value))
    if isinstance(value, list):
        return [printable(item) for item in value]
    if isinstance(value, dict):
        return {printable(name): printable(item) for name, item in value.items()}
    return value


def count_usage(answer: AIMessage, asked: Sequence[BaseMessage]) -> tuple[int, int]:
    """Tokens of prompt and answer by the server's count, else estimated; never 0, which would bypass any budget."""
    usage = read_usage(answer.usage_metadata, "input_tokens", "output_tokens")
    read, written = (usage["input_tokens"], usage["output_tokens"]) if usage else (0, 0)
    return read or count_tokens_approximately(asked), written or count_tokens_approximately([answer])


def from_payload(payload: str) -> AIMessage:
    """Deserialize an answer, new or replayed, so that both are equal; raises `UnreadableAnswerError`."""
    try:
        data = json.loads(payload)
        refusal = data["refusal"]
        return AIMessage(
            content=data["content"],
            tool_calls=[tool_call(**call) for call in data["tool_calls"]],
            invalid_tool_calls=[invalid_tool_call(**call) for call in data["invalid_tool_calls"]],
            usage_metadata=read_usage(data["usage"], "input_tokens", "output_tokens"),
            response_metadata={"finish_reason": data["finish_reason"]} if data["finish_reason"] else {},
            additional_kwargs={"refusal": refusal} if refusal else {},
        )
    except _READING as error:
        raise UnreadableAnswerError(str(error)) from error
