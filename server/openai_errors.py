"""Errors as clients of OpenAI's API read them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any, Final

from fastapi import Response

CHAT_PATHS: Final = "/v1/"

_TYPES: Final[Mapping[int, str]] = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
_FIELD = re.compile(r"([a-z_]+(?:\.\w+)*): ")  # how a message about a field of the request begins
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")


def openai_error(problem: Mapping[str, Any]) -> dict[str, Any]:
    """The body for a problem; its help line is part of the message, since chat programs show nothing else."""
    status = int(problem["status"])
    detail = str(problem["detail"]).removeprefix("body.")
    field = _FIELD.match(detail)
    kind = _TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {
        "error": {
            "message": f"{detail} {problem.get('help', '')}".strip(),
            "type": kind,
            "param": field[1] if field and status < 500 else None,
            "code": "invalid_api_key" if status == 401 else _code(str(problem["type"])),
        }
    }


def openai_error_response(problem: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> Response:
    """The response; invalid input has status 400 there, and clients do not retry what is paused."""
    status = 400 if problem["status"] == 422 else int(problem["status"])
    once = {"x-should-retry": "false"} if problem.get("paused") else {}
    body = json.dumps(openai_error(problem))  # in ASCII, since a request's words in it need not be valid text
    return Response(body, status, {**(headers or {}), **once}, media_type="application/json")


def _code(kind: str) -> str | None:
    """`model_not_found` for `urn:citeloom:ModelNotFoundError`; None for a problem of no special kind."""
    name = kind.removeprefix("urn:citeloom:").removesuffix("Error")
    return None if ":" in name or name in ("Server", "Input") else _WORD_START.sub("_", name).lower()
