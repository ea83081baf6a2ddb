"""Checks host, origin, token, rate and size of every request; counts answers, and adds security headers to them.

Another site's page can make a browser send requests to this server. They are refused by their `Host` (a foreign name
pointed at this machine: DNS rebinding) or their `Origin` (a form or script of another site: CSRF).
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict, deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from fastapi import HTTPException
from prometheus_client import CollectorRegistry, Counter
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..api.people import acting
from ..errors import CiteloomError
from .access import MCP, METADATA, OPEN_PATHS, Caller, People, address_of_path, caller
from .problems import ProblemResponse, ServerError, error_response, to_problem
from .run_jobs import connection
from .server_options import ServerOptions, Tokens, session_cookie
from .server_state import get_state

SIGN_IN: Final = "/sign-in"
_UPLOADS: Final = frozenset({"/api/v1/papers", "/api/v1/plots"})
_API: Final = ("/api/", "/v1/", "/mcp")
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_METHODS: Final = frozenset({*_SAFE, "POST", "PUT", "PATCH", "DELETE"})  # counted by name
_CLIENTS: Final = 4096  # tracked for rate limits
_log = logging.getLogger("citeloom.server")
_HEADERS: Final[Mapping[str, str]] = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; "
        "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}


class Guard:
    def __init__(
        self, app: ASGIApp, options: ServerOptions, tokens: Tokens, people: People, registry: CollectorRegistry
    ) -> None:
        self._app, self._people, self._options, self._tokens = app, people, options, tokens
        self._answered = Counter("citeloom_requests", "Answered requests.", ("method", "status"), registry=registry)
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        connection.set(str(scope.get("client")))
        method = scope["method"] if scope["method"] in _METHODS else "other"
        answer = _SecureSend(send, scope["path"], lambda status: self._answered.labels(method, str(status)).inc())
        try:
            headers = Headers(scope=scope)
            hosts = headers.getlist("host")
            if len(hosts) != 1 or not self._options.accepts_host(hosts[0]):
                unknown = "The server is not reached under this host name."
                raise ServerError(421, unknown, help="Add the name: serve --name NAME.")
            by_token = self._tokens.valid_header(headers.get("authorization"))
            _require_own_page(scope, headers, by_token=by_token or ("authorization" in headers and self._people.in_use))
            self._require_rate(scope)
            is_open = scope["path"] in OPEN_PATHS or scope["path"].startswith("/static/")
            people = self._people.in_use or (not is_open and await asyncio.to_thread(self._people.update_in_use))
            who = await self._identify(scope, headers, answer) if people else None
            admitted = is_open or who is not None or (not people and (by_token or not self._tokens.needed))
            if not admitted and not people and (session := session_cookie(headers.get("cookie"))):
                state = get_state(Request(scope))  # raises while the register is closed
                admitted = await asyncio.to_thread(state.accounts.is_session, session, state.tokens.fingerprint)
            if admitted:
                await self._app(scope, self._limit_body(scope, headers, receive), answer)
            else:
                await self._ask_for_token(scope, headers)(scope, receive, answer)
        except Exception as error:
            if answer.begun:
                raise
            if not isinstance(error, CiteloomError | HTTPException):
                _log.exception("Unexpected error in %s %s", scope["method"], scope["path"])
            await error_response(error)(scope, receive, answer)

    async def _identify(self, scope: Scope, headers: Headers, answer: _SecureSend) -> Caller | None:
        """Identify who sends a request, act for them from then on, and log requests that may change something."""
        accounts, who = self._people.accounts, await self._people.identify(scope, headers)
        caller.set(who)
        name = who.person.name if who is not None else ""
        acting.set(name)

        async def log(status: int) -> None:
            signed_in = who is None and status == 303  # which is logged with the name
            if status != 429 and not signed_in:  # else strangers could fill the log; their other attempts are few
                await asyncio.to_thread(accounts.log, name, f"{scope['method']} {scope['path']}", str(status))

        if scope["method"] not in _SAFE and (who is not None or scope["path"] == SIGN_IN):
            answer.on_status = log
        return who

    def _require_rate(self, scope: Scope) -> None:
        client = (scope.get("client") or ("unknown",))[0]
        now = time.monotonic()
        moments = self._seen.setdefault(client, deque())
        self._seen.move_to_end(client)
        while len(self._seen) > _CLIENTS:
            self._seen.popitem(last=False)
        while moments and moments[0] < now - 60:
            moments.popleft()
        if len(moments) >= self._options.per_minute:
            raise ServerError(429, "Too many requests.", help="Try again in a minute.", retry_after=60)
        moments.append(now)

    def _ask_for_token(self, scope: Scope, headers: Headers) -> ASGIApp:
        wants_page = "text/html" in headers.get("accept", "") and scope["method"] == "GET"
        if wants_page and not scope["path"].startswith(_API):
            return RedirectResponse(f"{SIGN_IN}?next={quote(scope['path'])}", 303)
        wrong = "This token is unknown, was revoked or has expired." if "authorization" in headers else ""
        error = ServerError(401, wrong or "A token is needed.", help="Send one as 'Authorization: Bearer TOKEN'.")
        place = address_of_path(Request(scope), METADATA + MCP)
        how = f'Bearer resource_metadata="{place}"' if self._people.in_use else "Bearer"
        return ProblemResponse(to_problem(error), {"WWW-Authenticate": how})

    def _limit_body(self, scope: Scope, headers: Headers, receive: Receive) -> Receive:
        upload = scope["method"] == "POST" and (scope["path"] in _UPLOADS or scope["path"].endswith("/import"))
        most = self._options.max_upload if upload else self._options.max_body
        stated = headers.getlist("content-length")
        if len(stated) > 1 or not all(length.isascii() and length.isdigit() for length in stated):
            raise ServerError(400, "Content-Length is not one number.")
        # FastAPI turns any other error while reading a body into 400.
        too_large = HTTPException(413, f"The request is larger than {most // 2**20} MiB.")
        if stated and (len(stated[0]) > 15 or int(stated[0]) > most):
            raise too_large
        received = 0

        async def receive_limited() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise too_large
            return message

        return receive_limited


class _SecureSend:
    def __init__(self, send: Send, path: str, count: Callable[[int], None]) -> None:
        self._send, self._count = send, count
        self._fixed = path.startswith("/static/")
        self.begun = False
        self.on_status: Callable[[int], Awaitable[None]] | None = None

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            self._count(message["status"])
            if self.on_status is not None:
                await self.on_status(message["status"])
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if not self._fixed:
                headers.setdefault("Cache-Control", "no-store")
        await self._send(message)


def _require_own_page(scope: Scope, headers: Headers, *, by_token: bool) -> None:
    """Raise `ServerError` for requests from another site's page, unless it merely links to a page of ours.

    An unsafe request without `Origin` and `Referer` comes from a program: browsers that honour `SameSite=Strict` always
    send `Origin`, which pages cannot suppress ("null" is refused), and withhold the cookie from other sites. A lone
    `Referer` comes from a browser or proxy that strips the rest. No page can add the token as a header.
    """
    navigates = scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate"
    site = headers.getlist("sec-fetch-site")
    foreign = any(value not in ("same-origin", "none") for value in site) and not navigates
    if scope["method"] not in _SAFE:
        host = headers.get("host", "").lower()
        pages = headers.getlist("origin") + ([] if by_token else headers.getlist("referer"))
        foreign = foreign or any(_netloc(page) != host for page in pages)
    if foreign:
        raise ServerError(403, "The request comes from a page of another site.")


def _netloc(address: str) -> str:
    """Host and port of an origin or page; "" for `null` and anything else without them."""
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""
