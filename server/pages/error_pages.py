"""Errors as a page for a browser, and as a problem for everybody else."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any, cast

from fastapi import FastAPI, Request, Response

from ..problems import MEDIA_TYPE
from .html import page

Handler = Callable[[Request, Exception], Awaitable[Response]]


def handle_page_errors(app: FastAPI) -> None:
    """Show the problems that the app answers with as pages where a browser asks for one."""
    for kind, handler in list(app.exception_handlers.items()):
        app.add_exception_handler(kind, _shown(cast(Handler, handler)))


def _shown(handler: Handler) -> Handler:
    async def shown(request: Request, error: Exception) -> Response:
        response = await handler(request, error)
        if not wants_page(request) or response.headers.get("content-type") != MEDIA_TYPE:
            return response
        problem: dict[str, Any] = json.loads(bytes(response.body))
        return page(request, "error.html", {"problem": problem}, response.status_code)

    return shown


def wants_page(request: Request) -> bool:
    """True for the address of a page that a browser opens."""
    return "text/html" in request.headers.get("accept", "") and not request.url.path.startswith(
        ("/api/", "/v1/", "/mcp")
    )
