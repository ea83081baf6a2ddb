"""Identifies callers on a server with accounts and checks their rights; `access.toml` classifies routes and tools."""

from __future__ import annotations

import asyncio
import os
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts
from starlette.datastructures import Headers
from starlette.types import Scope

from ..api.people import ISSUER, RIGHTS, Accounts, Person, Secret, SecretKind
from .problems import ServerError
from .server_options import session_cookie

if TYPE_CHECKING:
    from .identity_provider import IdentityProvider

MCP: Final = "/mcp"
METADATA: Final = "/.well-known/oauth-protected-resource"  # of MCP, RFC 9728
BROWSER: Final = "citeloom_browser"  # cookie
_TRIES: Final = 10  # failed or pending attempts to sign in by one client with one name
_TRIES_OF_CLIENT: Final = 100  # ... with any name
_WAIT: Final = 900  # seconds
_CLIENTS: Final = 4096  # clients whose attempts are counted
_TABLE: Final = tomllib.loads(files("citeloom.server").joinpath("access.toml").read_text("utf-8"))
ROUTES: Final[dict[str, str]] = {name: need for need, names in _TABLE["routes"].items() for name in names}
OPEN_PATHS: Final = frozenset(name.partition(" ")[2] for name, need in ROUTES.items() if need == "open")
TOOLS: Final[dict[str, str]] = {name: need for need, names in _TABLE["tools"].items() for name in names}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, and the browser session or token that proves it."""

    person: Person
    secret: Secret

    @property
    def rights(self) -> set[str]:
        """The rights of the role, limited to the scopes of a token."""
        rights: set[str] = set(RIGHTS[self.person.role])
        return rights | {"self"} if self.secret.kind == "session" else rights & set(self.secret.scopes.split())

    def require(self, need: str | None, what: str) -> None:
        """Raise `ServerError` unless the caller has the right that is needed; nobody may do what is not classified."""
        if need != "open" and {"costs": "write", None: ""}.get(need, need) not in self.rights:
            way = "this token" if self.secret.kind == "token" else f"a {self.person.role}"
            raise ServerError(403, f"{what} is not allowed to {way}.", help="Ask an owner of this server.")


caller: Final[ContextVar[Caller | None]] = ContextVar("who sent the current request", default=None)


class People:
    """Identifies callers by accounts or the identity provider; without accounts, anybody or the token has access."""

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        self.in_use = False  # true once there are accounts
        self.provider: IdentityProvider | None = None
        self._asking = asyncio.Semaphore(2)  # strangers' tokens must not take all threads while the provider is down
        if os.environ.get(ISSUER):
            from .identity_provider import IdentityProvider

            self.provider = IdentityProvider()
        self._tries: dict[str, list[float]] = {}  # by client, the latest last

    def update_in_use(self) -> bool:
        """Check whether there are accounts: the first may come from here, a command or another server. Blocks."""
        self.in_use = self.in_use or self.provider is not None or bool(self.accounts.people())
        return self.in_use

    async def identify(self, scope: Scope, headers: Headers) -> Caller | None:
        """Identify who sent a request; MCP also accepts access tokens issued for it by the group's provider."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        session = "" if kind else session_cookie(headers.get("cookie"))
        if not session and kind.lower() != "bearer":
            return None
        proof: SecretKind = "session" if session else "token"
        found = await asyncio.to_thread(self.accounts.holder, proof, session or token.strip())
        if found is not None or session or self.provider is None or scope["path"] != MCP:
            return None if found is None else Caller(*found)
        resource = address_of_path(Request(scope), MCP)
        async with self._asking:
            subject, scopes = await asyncio.to_thread(self.provider.holder, token.strip(), resource)
        known = await asyncio.to_thread(self.accounts.holder, "identity", subject)
        return None if known is None else Caller(known[0], replace(known[1], kind="token", scopes=scopes))

    @contextmanager
    def attempt(self, request: Request, name: str) -> Iterator[None]:
        """Count an attempt to sign in unless it succeeds; raises `ServerError` after too many.

        Attempts count by name and client together, so that strangers lock nobody out. Since all clients behind a proxy
        share its address, a browser where this person has signed in before counts separately.
        """
        client, name = request.client.host if request.client else "", name.strip().lower()
        known = self.accounts.holder("browser", given := request.cookies.get(BROWSER, ""))
        own = known is not None and known[0].name == name
        sources = {given: _TRIES} if own else {f"{client} {name}": _TRIES, client: _TRIES_OF_CLIENT}
        now = time.monotonic()
        for source, most in sources.items():
            self._tries[source] = [at for at in self._tries.pop(source, []) if at > now - _WAIT]
            if len(self._tries[source]) >= most:
                raise ServerError(429, "Too many attempts to sign in.", help="Try again later.", retry_after=_WAIT)
        for source in sources:
            self._tries[source].append(now)
        while len(self._tries) > _CLIENTS:
            self._tries.pop(next(iter(self._tries)))
        yield
        for source in sources:
            self._tries[source].remove(now)


def address_of_path(request: Request, path: str) -> str:
    """Return the address of a path on this server as the client sees it, also behind a TLS proxy."""
    secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    return str(request.url.replace(scheme="https" if secure else "http", path=path, query=""))


async def require_access(request: Request) -> None:
    """Refuse what the caller may not do; a dependency of every route. Without accounts, everything is allowed."""
    if not request.app.state.people.in_use:
        return
    need = request.app.state.needs.get((request.method.replace("HEAD", "GET"), request.scope["endpoint"]))
    if (who := caller.get()) is not None:
        who.require(need, "This")
    elif need != "open":
        raise ServerError(401, "Sign in first.")


def required_rights(app: FastAPI) -> dict[tuple[str, Any], str | None]:
    """Return the right that each endpoint needs, by method and endpoint."""
    routes = [(method, route) for route in iter_route_contexts(app.routes) for method in route.methods or ()]
    return {(method, route.endpoint): ROUTES.get(f"{method} {route.path}") for method, route in routes}
