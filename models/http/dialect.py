"""Detects from a server's refusals which parts of the OpenAI protocol it supports.

Servers differ in support for `json_schema`, `response_format` and temperature, and in the name of the output limit. The
best form is tried first; refused parts are left out from then on.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

Format = Literal["json_schema", "json_object", "none"]

_ABOUT_FORMAT = re.compile(
    r"response_?format|json_?schema|json_?object|json mode|structured|guided|grammar|output schema", re.I
)
_ABOUT_TEMPERATURE = re.compile(r"temperature", re.I)
_ABOUT_LIMIT = re.compile(r"max_(?:completion_)?tokens", re.I)
_ABOUT_STREAM_USAGE = re.compile(r"stream_options|include_usage", re.I)
_ABOUT_STREAMING = re.compile(r"\bstream(?:ing|ed)?\b", re.I)
_UNSUPPORTED = re.compile(r"unsupported|not supported|unrecognized|unknown|unexpected|not permitted|extra", re.I)
_NO_STREAMS = re.compile(rf"{_UNSUPPORTED.pattern}|disabled|not allowed", re.I)
_STATUSES = frozenset({400, 404, 405, 415, 422, 500, 501})


@dataclass(frozen=True, slots=True)
class Dialect:
    """The form of requests that a server accepts: structured output, the name of the output limit, parameters."""

    format: Format = "json_schema"
    limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    temperature: bool = True
    streams: bool = True
    stream_usage: bool = True  # whether a stream may include usage

    def arguments(
        self,
        *,
        schema: Mapping[str, Any] | None,
        max_tokens: int | None,
        temperature: float | None,
        streamed: bool = False,
    ) -> dict[str, Any]:
        """The part of a request body that differs between servers."""
        body: dict[str, Any] = {}
        if schema is not None and self.format == "json_schema":
            name = re.sub(r"[^A-Za-z0-9_-]", "_", str(schema.get("title") or "answer"))[:64]
            body["response_format"] = {"type": "json_schema", "json_schema": {"name": name, "schema": dict(schema)}}
        elif schema is not None and self.format == "json_object":
            body["response_format"] = {"type": "json_object"}
        if max_tokens is not None:
            body[self.limit] = max_tokens
        if temperature is not None and self.temperature:
            body["temperature"] = temperature
        if streamed and self.stream_usage:
            body["stream_options"] = {"include_usage": True}
        return body

    def after(self, error: Exception, *, with_schema: bool, streamed: bool = False) -> Dialect | None:
        """The dialect to try next, or None if `error` is not about the form of the request."""
        status = getattr(error, "status_code", None)
        # The clients of LangChain models by other providers raise TypeError for an unknown parameter.
        about_form = status in _STATUSES or isinstance(error, TypeError)
        message = str(getattr(error, "message", error)) if about_form else ""
        if streamed and self.stream_usage and _ABOUT_STREAM_USAGE.search(message):
            return replace(self, stream_usage=False)
        if streamed and self.streams and _ABOUT_STREAMING.search(message) and _NO_STREAMS.search(message):
            return replace(self, streams=False)
        if with_schema and self.format != "none" and _ABOUT_FORMAT.search(message):
            return replace(self, format="json_object" if self.format == "json_schema" else "none")
        if self.temperature and _ABOUT_TEMPERATURE.search(message):
            return replace(self, temperature=False)
        if self.limit == "max_tokens" and _ABOUT_LIMIT.search(message) and _UNSUPPORTED.search(message):
            return replace(self, limit="max_completion_tokens")
        return None


@dataclass(slots=True)
class DialectMemory:
    """The dialect learned for one model at one endpoint; shared by all its callers."""

    current: Dialect = Dialect()
