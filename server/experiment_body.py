"""Requests with an experiment: a large one is shortened in a process of its own, before the server parses it."""

from __future__ import annotations

import json
from collections.abc import Callable, Coroutine
from typing import Any, Final

from fastapi import Request, Response
from fastapi.routing import APIRoute

from ..documents.sandbox import Limits, SandboxError, sandboxed
from ..documents.subprocesses import in_thread
from ..experiment import ExperimentError, parse_experiment

LARGE: Final = 100_000  # bytes; what is smaller is parsed within milliseconds
_LIMITS: Final = Limits(seconds=20.0, memory=1 << 30)
_HELP: Final = "Leave out what the paper does not need, such as a complete log."


class ExperimentRoute(APIRoute):
    """A route whose body has an `experiment`, of which FastAPI parses what a text can use.

    A large one that is invalid arrives empty: the route calls `require_readable`.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """FastAPI's handler, with the shortened body."""
        answer = super().get_route_handler()

        async def answer_shortened(request: Request) -> Response:
            body = await request.body()
            if len(body) > LARGE:
                try:
                    request._body = await in_thread(_shortened, body)  # which FastAPI parses in place of the original
                except ExperimentError as error:
                    request.state.refused_experiment = error
                    request._body = b'{"experiment": {}}'
            return await answer(request)

        return answer_shortened


def require_readable(request: Request) -> None:
    """Raise `ExperimentError` if the experiment of this request was refused before it was parsed."""
    error: ExperimentError | None = getattr(request.state, "refused_experiment", None)
    if error is not None:
        raise error


def _shortened(body: bytes) -> bytes:
    try:
        result = sandboxed(shorten_body, _LIMITS, body.decode("utf-8", "surrogateescape"))
    except SandboxError as error:
        raise ExperimentError(f"experiment: cannot be read: reading it {error}.", help=_HELP) from None
    if "refused" in result:
        raise ExperimentError(**result["refused"])
    return str(result["body"]).encode("utf-8", "surrogateescape")


def shorten_body(body: str) -> dict[str, Any]:
    """The JSON of a request with its experiment within limits, or why that is refused; what is not JSON is returned."""
    try:
        content = json.loads(body)
        content["experiment"] = parse_experiment(content["experiment"]).model_dump(mode="json", exclude_unset=True)
    except ExperimentError as error:
        return {"refused": {"message": error.message, "help": error.help, "issues": error.issues}}
    except (ValueError, TypeError, KeyError, RecursionError):
        return {"body": body}  # FastAPI names what is wrong
    return {"body": json.dumps(content)}
