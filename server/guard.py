"""Checks the host, origin, token, rate and size of every request, and adds security headers to every response.

A page of another site can make a browser send requests to this server. It is refused by the `Host` it names (a name
that was pointed at this machine: DNS rebinding) or by its `Origin` (a form or script of another site: CSRF).
"""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from typing import Final
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from .problems import ServerError, problem_of, refusal
from .server_options import ServerOptions
from .tokens import Tokens

SIGN_IN: Final = "/sign-in"
_OPEN_PATHS: Final = frozenset({"/api/v1/health", SIGN_IN})
_SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
_CLIENTS: Final = 4096  # whose requests are counted
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
    """ASGI middleware around the whole server."""

    def __init__(self, app: ASGIApp, options: ServerOptions, tokens: Tokens) -> None:
        self._app = app
        self._options = options
        self._tokens = tokens
        self._names = options.host_names()
        self._seen: OrderedDict[str, deque[float]] = OrderedDict()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it with a problem."""
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        send = _with_headers(send, scope["path"])
        try:
            self._require_host(headers)
            if scope["method"] not in _SAFE:
                _require_same_origin(headers)
            self._require_rate(scope)
            if not self._signed_in(scope["path"], headers):
                await self._ask_for_token(scope, headers)(scope, receive, send)
                return
            receive = self._limited(scope["path"], headers, receive)
        except ServerError as error:
            after = {"Retry-After": str(error.retry_after)} if error.retry_after else None
            await refusal(scope["path"], problem_of(error), after)(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _require_host(self, headers: Headers) -> None:
        given = headers.getlist("host")
        name = urlsplit(f"//{given[0]}").hostname if len(given) == 1 and _plain(given[0]) else None
        shown = f"[{name}]" if name and ":" in name else name
        if shown is None or shown.lower() not in self._names:
            raise ServerError(
                421, "The server is not reached under this host name.", help="Add the name: serve --name NAME."
            )

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

    def _signed_in(self, path: str, headers: Headers) -> bool:
        if not self._tokens.needed or path in _OPEN_PATHS or path.startswith("/static/"):
            return True
        return self._tokens.valid_header(headers.get("authorization")) or self._tokens.valid_cookie(
            headers.get("cookie")
        )

    def _ask_for_token(self, scope: Scope, headers: Headers) -> ASGIApp:
        wants_page = "text/html" in headers.get("accept", "") and scope["method"] == "GET"
        if wants_page and not scope["path"].startswith(("/api/", "/v1/", "/mcp")):
            return RedirectResponse(f"{SIGN_IN}?next={quote(scope['path'])}", 303)
        error = ServerError(401, "A token is needed.", help="Send it as 'Authorization: Bearer TOKEN'.")
        return refusal(scope["path"], problem_of(error), {"WWW-Authenticate": "Bearer"})

    def _limited(self, path: str, headers: Headers, receive: Receive) -> Receive:
        """`receive` that refuses more bytes than a request may have, whatever length it states."""
        upload = headers.get("content-type", "").startswith("multipart/form-data")
        most = self._options.max_upload if upload else self._options.max_body
        stated = headers.get("content-length")
        if stated is not None and (not stated.isascii() or not stated.isdigit()):
            raise ServerError(400, "Content-Length is not a number.")
        too_large = ServerError(413, f"The request is larger than {most // 2**20} MiB.")
        if stated is not None and (len(stated) > 15 or int(stated) > most):
            raise too_large
        received = 0

        async def counted() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > most:
                raise too_large
            return message

        return counted


def _plain(host: str) -> bool:
    return host.isascii() and host.isprintable() and not set(host) & set("/\\@?# ")


def _require_same_origin(headers: Headers) -> None:
    """Raise `ServerError` for a request that a page of another site made."""
    origin = headers.get("origin")
    site = headers.get("sec-fetch-site")
    foreign = site is not None and site not in ("same-origin", "none")
    if origin is not None:
        foreign = foreign or urlsplit(origin).netloc.lower() != headers.get("host", "").lower()
    if foreign:
        raise ServerError(403, "The request comes from a page of another site.")


def _with_headers(send: Send, path: str) -> Send:
    async def guarded(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            if not path.startswith("/static/"):
                headers.setdefault("Cache-Control", "no-store")
        await send(message)

    return guarded
