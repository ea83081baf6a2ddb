"""Errors as `application/problem+json` (RFC 9457): the same message and help line as on the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from ..api.arguments import ReadOnlyLibraryError
from ..errors import CiteloomError, InputError, PausedError
from ..runs.execution import RunUnderWayError
from ..stores.conversation_registry import UnknownConversationError
from ..stores.library import UnknownPaperError
from ..stores.run_registry import UnknownRunError
from .openai_errors import CHAT_PATHS, openai_error_response

MEDIA_TYPE = "application/problem+json"
_STATUS: tuple[tuple[type[CiteloomError], int], ...] = (
    (UnknownRunError, 404),
    (UnknownConversationError, 404),
    (UnknownPaperError, 404),
    (RunUnderWayError, 409),
    (ReadOnlyLibraryError, 409),
)


class ServerError(CiteloomError):
    """A request that the server refuses, with its HTTP status."""

    def __init__(self, status: int, message: str, *, help: str | None = None, retry_after: int | None = None) -> None:
        super().__init__(message, help=help)
        self.status = status
        self.retry_after = retry_after


def status_of(error: BaseException) -> int:
    """The HTTP status of an error."""
    if isinstance(error, ServerError):
        return error.status
    for kind, status in _STATUS:
        if isinstance(error, kind):
            return status
    if isinstance(error, InputError):
        return 422
    if isinstance(error, PausedError):
        return 503
    return 502 if isinstance(error, CiteloomError) else 500


def problem_of(error: BaseException) -> dict[str, Any]:
    """The body of an error; an unforeseen one shows nothing of its inside."""
    if not isinstance(error, CiteloomError):
        return problem(500, "Unexpected error in the server; its log has the details.")
    record = problem(status_of(error), error.message, help=error.help)
    record["type"] = f"urn:citeloom:{type(error).__name__}"
    if isinstance(error, PausedError):
        record["paused"] = True
    return record


def problem(status: int, detail: str, *, help: str = "", errors: list[dict[str, str]] | None = None) -> dict[str, Any]:
    """A problem's fields."""
    record: dict[str, Any] = {"type": "about:blank", "title": _TITLES.get(status, "Error"), "status": status}
    record["detail"] = detail
    if help:
        record["help"] = help
    if errors:
        record["errors"] = errors
    return record


def problem_response(record: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A response with a problem."""
    return JSONResponse(dict(record), record["status"], headers, media_type=MEDIA_TYPE)


def refusal(path: str, record: Mapping[str, Any], headers: Mapping[str, str] | None = None) -> JSONResponse:
    """A response with a problem, in the form that the clients of a path read."""
    answer = openai_error_response if path.startswith(CHAT_PATHS) else problem_response
    return answer(record, headers)


def handle_problems(app: FastAPI) -> None:
    """Answer every error of the app with a problem."""
    app.add_exception_handler(CiteloomError, _citeloom_error)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(Exception, _unforeseen)


async def _citeloom_error(request: Request, error: Exception) -> JSONResponse:
    after = getattr(error, "retry_after", None)
    return refusal(request.url.path, problem_of(error), {"Retry-After": str(after)} if after else None)


async def _unforeseen(request: Request, error: Exception) -> JSONResponse:
    return refusal(request.url.path, problem_of(error))


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [
        {"field": ".".join(str(part) for part in item["loc"]), "message": str(item["msg"])} for item in error.errors()
    ]
    first = f"{errors[0]['field']}: {errors[0]['message']}." if errors else "The request is invalid."
    return refusal(request.url.path, problem(422, first, errors=errors))


async def _http_error(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return refusal(request.url.path, problem(error.status_code, str(error.detail)), error.headers)


_TITLES = {
    400: "Bad request",
    401: "Sign in",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Unsupported media type",
    421: "Unknown host",
    422: "Invalid input",
    429: "Too many requests",
    500: "Unexpected error",
    502: "A model or service failed",
    503: "Paused",
}
