"""Answers of the OpenAI protocol derived from the request alone: the same request always has the same answer.

Knows the protocol but not our prompts: text is made of words in the request, markers such as `[E3]` are cited when
they occur in it, and JSON follows the requested schema.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections.abc import Mapping, Sequence
from typing import Any

MARKER = re.compile(r"\[E\d+\]")
EMBEDDING_DIMENSIONS = 64

Json = dict[str, Any]


def request_hash(body: Mapping[str, Any]) -> str:
    """The hash of a request; ids of tool calls and the `stream` flag do not count."""
    messages = [
        {name: value for name, value in message.items() if name != "tool_call_id"}
        | {"tool_calls": [call.get("function") for call in message.get("tool_calls") or ()]}
        for message in body.get("messages") or ()
    ]
    rest = {name: value for name, value in body.items() if name not in ("messages", "stream", "stream_options")}
    return hashlib.sha256(json.dumps([rest, messages], sort_keys=True).encode()).hexdigest()


def completion(body: Mapping[str, Any], tool_turns: int) -> Json:
    """A chat completion: a tool call while turns are left, JSON when a schema is given, else sentences."""
    dice = random.Random(request_hash(body))
    words = request_words(body)
    tools = body.get("tools") or []
    turns = sum(bool(message.get("tool_calls")) for message in body.get("messages") or ())
    wanted = (body.get("response_format") or {}).get("type")
    if tools and turns < tool_turns and body.get("tool_choice") != "none":
        return envelope(body, tool_calls=[tool_call(dice, tools, words, turns)])
    if wanted == "json_schema":
        schema = body["response_format"]["json_schema"]["schema"]
        return envelope(body, content=json.dumps(instance(schema, dice, words)))
    if wanted == "json_object":
        return envelope(body, content=json.dumps({"answer": phrase(dice, words)}))
    return envelope(body, content=sentences(dice, words, markers(body)))


def envelope(
    body: Mapping[str, Any],
    *,
    content: str | None = None,
    tool_calls: Sequence[Json] = (),
    finish_reason: str | None = None,
) -> Json:
    """A complete response around one choice, with usage."""
    message: Json = {"role": "assistant", "content": content}
    if tool_calls:
        message["tool_calls"] = list(tool_calls)
    asked = len(json.dumps(body.get("messages") or []).split())
    given = len((content or json.dumps(list(tool_calls))).split())
    return {
        "id": f"chatcmpl-{request_hash(body)[:12]}",
        "object": "chat.completion",
        "created": 0,
        "model": body.get("model"),
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": finish_reason or ("tool_calls" if tool_calls else "stop"),
            }
        ],
        "usage": {"prompt_tokens": asked, "completion_tokens": given, "total_tokens": asked + given},
    }


def tool_call(dice: random.Random, tools: Sequence[Json], words: Sequence[str], turn: int) -> Json:
    """A call of one of the tools, with arguments valid by its schema."""
    function = dice.choice(list(tools))["function"]
    arguments = instance(function.get("parameters") or {"type": "object"}, dice, words)
    return {
        "id": f"call_{turn}_{dice.getrandbits(32):08x}",
        "type": "function",
        "function": {"name": function["name"], "arguments": json.dumps(arguments)},
    }


def reading(statement: str, score: float, *sentences: int, need: str = "N1") -> Json:
    """A reader's answer with one finding, resting on the first sentence by default."""
    return {"findings": [{"statement": statement, "sentences": list(sentences) or [1], "need": need, "score": score}]}


def readings(statement: str, score: float, count: int = 3) -> Json:
    """A reader's answer with the same finding for each of the first sentences."""
    return {"findings": [reading(statement, score, number)["findings"][0] for number in range(1, count + 1)]}


def planned(needs: Sequence[str]) -> Json:
    """A planner's answer with these needs, each searched for by its own words."""
    return {"needs": [{"need": need, "asks": "finding", "queries": [need]} for need in needs]}


def request_words(body: Mapping[str, Any]) -> list[str]:
    """The longer words of the last user message, in order, without repeats."""
    texts = [_text(message) for message in body.get("messages") or () if message.get("role") == "user"]
    found = re.findall(r"[A-Za-z]{4,}", texts[-1] if texts else "")
    return list(dict.fromkeys(word.lower() for word in found)) or ["nothing"]


def markers(body: Mapping[str, Any]) -> list[str]:
    """The markers anywhere in the request, in order, without repeats."""
    found = [marker for message in body.get("messages") or () for marker in MARKER.findall(_text(message))]
    return list(dict.fromkeys(found))


def _text(message: Mapping[str, Any]) -> str:
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(block.get("text", "") for block in content)


def phrase(dice: random.Random, words: Sequence[str], low: int = 3, high: int = 7) -> str:
    """A few words of the request."""
    return " ".join(dice.choice(words) for _ in range(dice.randint(low, high)))


def sentences(dice: random.Random, words: Sequence[str], cited: Sequence[str]) -> str:
    """Two paragraphs of sentences; every marker is cited at the end of one."""
    count = max(6, len(cited))
    lines = []
    for place in range(count):
        line = phrase(dice, words, 9, 16).capitalize()
        lines.append(f"{line} {cited[place]}." if place < len(cited) else f"{line}.")
    half = count // 2
    return " ".join(lines[:half]) + "\n\n" + " ".join(lines[half:])


def instance(
    schema: Mapping[str, Any],
    dice: random.Random,
    words: Sequence[str],
    root: Mapping[str, Any] | None = None,
    depth: int = 0,
) -> Any:
    """A value that is valid by `schema`.

    Numbers without bounds are in 0-1, integers without bounds are 1, and of several allowed values the first is used.
    """
    root = schema if root is None else root
    if "$ref" in schema:
        target: Any = root
        for part in schema["$ref"].lstrip("#/").split("/"):
            target = target[part]
        return instance(target, dice, words, root, depth + 1)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return schema["enum"][0]
    for several in ("anyOf", "oneOf"):
        if several in schema:
            # The first form that is not null; null where the tree would grow endlessly.
            forms = sorted(schema[several], key=lambda form: (form.get("type") == "null") is (depth < 5))
            return instance(forms[0], dice, words, root, depth + 1)
    if "allOf" in schema:
        return instance({**schema["allOf"][0], **schema}, dice, words, root, depth + 1)
    kind = schema.get("type", "object" if "properties" in schema else "string")
    if isinstance(kind, list):
        kind = next((name for name in kind if name != "null"), "null")
    return _MAKERS[kind](schema, dice, words, root, depth)


def _object(schema: Any, dice: Any, words: Any, root: Any, depth: int) -> Json:
    required = schema.get("required", [])
    return {
        name: instance(part, dice, words, root, depth + 1)
        for name, part in (schema.get("properties") or {}).items()
        if name in required or (depth < 5 and dice.random() < 0.3)
    }


def _array(schema: Any, dice: Any, words: Any, root: Any, depth: int) -> list[Any]:
    low = schema.get("minItems", 0 if depth > 4 else 1)
    count = dice.randint(low, min(schema.get("maxItems", low + 2), low + 2))
    return [instance(schema.get("items") or {}, dice, words, root, depth + 1) for _ in range(count)]


def _string(schema: Any, dice: Any, words: Any, root: Any, depth: int) -> str:
    text = phrase(dice, words)
    while len(text) < schema.get("minLength", 0):
        text += f" {phrase(dice, words)}"
    return text[: schema.get("maxLength", len(text))]


def _number(schema: Any, dice: Any, words: Any, root: Any, depth: int) -> float:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0))
    high = schema.get("maximum", schema.get("exclusiveMaximum", low + 1))
    return round(low + (high - low) * dice.uniform(0.05, 0.95), 3)


def _integer(schema: Any, dice: Any, words: Any, root: Any, depth: int) -> int:
    low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
    high = schema.get("maximum", schema.get("exclusiveMaximum", max(low, 1) + 1) - 1)
    bounded = "maximum" in schema or "exclusiveMaximum" in schema
    return dice.randint(low, high) if bounded else max(low, 1)


_MAKERS = {
    "object": _object,
    "array": _array,
    "string": _string,
    "number": _number,
    "integer": _integer,
    "boolean": lambda schema, dice, words, root, depth: dice.random() < 0.5,
    "null": lambda schema, dice, words, root, depth: None,
}


def embedding(text: str) -> list[float]:
    """A vector in which texts with common words are near, [64]."""
    vector = [1e-3] * EMBEDDING_DIMENSIONS
    for word in re.findall(r"\w{3,}", text.lower()):
        digest = hashlib.sha256(word.encode()).digest()
        vector[digest[0] % EMBEDDING_DIMENSIONS] += 1.0 if digest[1] % 2 else -1.0
    return vector
