"""Errors as `application/problem+json` (RFC 9457), with the message and help line of the command line.

Chat programs get them in OpenAI's format.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any, Final, NotRequired

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send
from typing_extensions import TypedDict

from ..api import arguments, library_papers, results, running, stored_runs
from ..api.evidence_tables import CellChangedError, UnknownTableError
from ..api.messages import describe_invalid
from ..api.run_texts import SentenceChangedError
from ..api.running import AnsweredError
from ..api.serving import DatabaseError, EndpointUnreachableError, RunUnderWayError, UnknownPaperError
from ..api.stored_runs import UnknownRunError
from ..errors import CiteloomError, InputError, PausedError

_LONGEST = 300  # characters of a message about one field
_MOST_ERRORS = 20
MEDIA_TYPE = "application/problem+json"
CHAT_PATHS: Final = "/v1/"
_OPENAI_TYPES: Final[Mapping[int, str]] = {
    401: "authentication_error",
    403: "permission_error",
    429: "rate_limit_error",
}
_FIELD = re.compile(r"([a-z_]+(?:\.\w+)*): ")  # how a message about a field of the request begins
# A pointer to another command, which neither pages nor agents can run.
_COMMAND_HINT = re.compile(r"See '[^'\n]{1,200}' for [^.\n]{1,80}\.(?:json)?\.?")
_WORD_START = re.compile(r"(?<=[a-z])(?=[A-Z])")
# What each status means here: the title of its problem, and its description in the OpenAPI document.
STATUSES: Final[Mapping[int, tuple[str, str]]] = {
    400: ("Bad request", "The request cannot be read."),
    401: ("Sign in", "A token is needed."),
    403: ("Forbidden", "The request comes from a page of another site."),
    404: ("Not found", "There is nothing with this id."),
    405: ("Method not allowed", "The path does not have this method."),
    409: ("Conflict", "Something else is under way, or the library cannot be written."),
    411: ("Length required", "The request has a body of unknown length."),
    413: ("Too large", "The request is too large."),
    415: ("Unsupported media type", "The body has another media type."),
    421: ("Unknown host", "The server is not reached under this host name."),
    422: ("Invalid input", "The request is invalid."),
    429: ("Too many requests", "Too many requests, streams or jobs."),
    500: ("Unexpected error", "An unexpected error; the server's log has the details."),
    502: ("A model or service failed", "A model or service failed."),
    503: ("Not now", "The run is paused with everything saved, or the server is shutting down."),
    507: ("Disk full", "The file cannot be stored."),
}
_UNKNOWN = (UnknownRunError, stored_runs.UnknownConversationError, UnknownPaperError, UnknownTableError)
_STATUS: tuple[tuple[type[CiteloomError] | tuple[type[CiteloomError], ...], int], ...] = (
    ((*_UNKNOWN, library_papers.MissingFigureError, library_papers.MissingPdfError), 404),
    ((AnsweredError, CellChangedError, RunUnderWayError, arguments.ReadOnlyLibraryError, SentenceChangedError), 409),
    ((EndpointUnreachableError, DatabaseError), 503),
    (InputError, 422),
    (PausedError, 503),
    (CiteloomError, 502),
)


class Problem(TypedDict):
    """An error (RFC 9457), with the help line of the command line."""

    type: str
    title: str
    status: int
    detail: str
    help: NotRequired[str]
    errors: NotRequired[list[running.FieldProblem]]
    paused: NotRequired[Annotated[bool, results.Meaning("True when the same request resumes the run.")]]
    cell: NotRequired[Annotated[dict[str, Any], results.Meaning("The cell as it is stored, if an edit was refused.")]]


class ServerError(CiteloomError):
    """The server refuses a request with this HTTP status."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        help: str | None = None,
        retry_after: int | None = None,
        errors: list[running.FieldProblem] | None = None,
    ) -> None:
        super().__init__(message, help=help)
        self.status = status
        self.retry_after = retry_after
        self.errors = errors


def http_status(error: BaseException) -> int:
    if isinstance(error, ServerError):
        return error.status
    return next((status for kinds, status in _STATUS if isinstance(error, kinds)), 500)


def client_help(error: CiteloomError) -> str:
    return _COMMAND_HINT.sub("", error.help).strip()


def to_problem(error: BaseException) -> Problem:
    """Return the response body for an error; reveals no details of unexpected errors."""
    if isinstance(error, sqlite3.OperationalError):  # other SQLite errors mean damaged data
        return problem(503, f"A file of the home is busy or cannot be written ({error}).", help="Try again later.")
    if not isinstance(error, CiteloomError):
        return problem(500, "Unexpected error in the server; its log has the details.")
    errors = error.errors if isinstance(error, ServerError) else None
    record = problem(http_status(error), error.message, help=client_help(error), errors=errors)
    record["type"] = f"urn:citeloom:{type(error).__name__}"
    if isinstance(error, PausedError):
        record["paused"] = True
    return record


def problem(status: int, detail: str, *, help: str = "", errors: list[running.FieldProblem] | None = None) -> Problem:
    title = STATUSES.get(status, ("Error",))[0]
    record: Problem = {"type": "about:blank", "title": title, "status": status, "detail": detail}
    if help:
        record["help"] = help
    if errors:
        record["errors"] = errors
    return record


def openai_error(problem: Problem) -> dict[str, Any]:
    """A problem in OpenAI's format; the message includes the help line, since chat programs show no more."""
    status = problem["status"]
    detail = problem["detail"].removeprefix("body.")
    field, name = _FIELD.match(detail), problem["type"].removeprefix("urn:citeloom:").removesuffix("Error")
    generic = ":" in name or name in ("Server", "Input")
    code = None if generic else _WORD_START.sub("_", name).lower()  # such as `model_not_found`
    kind = _OPENAI_TYPES.get(status, "invalid_request_error" if status < 500 else "api_error")
    return {
        "error": {
            "message": f"{detail} {problem.get('help', '')}".strip(),
            "type": kind,
            "param": field[1] if field and status < 500 else None,
            "code": "invalid_api_key" if status == 401 else code,
        }
    }


class ProblemResponse(JSONResponse):
    """A problem, for chat programs in OpenAI's format, where invalid input is 400 and no pause is retried."""

    media_type = MEDIA_TYPE

    def __init__(self, record: Problem, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(record, record["status"], headers)
        self._given = record, headers

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: Callable[[Scope, Receive, Send], Awaitable[None]] = super().__call__
        if scope["path"].startswith(CHAT_PATHS):
            problem, headers = self._given
            status = 400 if problem["status"] == 422 else problem["status"]
            once = {"x-should-retry": "false"} if problem.get("paused") else {}
            body = self.render(openai_error(problem))
            answer = Response(body, status, {**(headers or {}), **once}, media_type="application/json")
        await answer(scope, receive, send)

    def render(self, content: Any) -> bytes:
        """JSON in ASCII, since it may quote invalid text from the request."""
        return json.dumps(content, separators=(",", ":")).encode()


def error_response(error: BaseException) -> Response:
    if isinstance(error, HTTPException):
        return ProblemResponse(problem(error.status_code, str(error.detail)), error.headers)
    after = error.retry_after if isinstance(error, ServerError) else None
    return ProblemResponse(to_problem(error), {"Retry-After": str(after)} if after else None)


def handle_problems(app: FastAPI) -> None:
    """Answer every error of the app with a problem."""
    app.add_exception_handler(CiteloomError, _answer)
    app.add_exception_handler(RequestValidationError, _answer_invalid)
    app.add_exception_handler(HTTPException, _answer)


async def _answer(_: Request, error: Exception) -> Response:
    return error_response(error)


async def _answer_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    errors: list[running.FieldProblem] = [
        {"field": ".".join(str(part) for part in item["loc"])[:_LONGEST], "message": describe_invalid(item)[:_LONGEST]}
        for item in error.errors()[:_MOST_ERRORS]
    ]
    first = f"{errors[0]['field']}: {errors[0]['message']}." if errors else "The request is invalid."
    return ProblemResponse(problem(422, first, errors=errors))
