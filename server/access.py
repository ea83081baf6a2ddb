"""Who may reach a server: address, token, accounts and limits; `access.toml` has what each route and tool needs."""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import ipaddress
import os
import re
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from fastapi import FastAPI, Request
from fastapi.routing import iter_route_contexts
from pydantic import SecretStr
from starlette.datastructures import Headers
from starlette.requests import cookie_parser
from starlette.types import Scope

from ..api.people import ISSUER, RIGHTS, Accounts, Person, Secret, SecretKind
from ..errors import ConfigurationError
from .problems import ServerError

if TYPE_CHECKING:
    from .identity_provider import IdentityProvider

MCP: Final = "/mcp"
METADATA: Final = "/.well-known/oauth-protected-resource"  # of MCP, RFC 9728
BROWSER: Final = "citeloom_browser"  # cookie
_TRIES: Final = 10  # attempts of a client to sign in with a name that failed or still last
_TRIES_OF_CLIENT: Final = 100  # with any name
_WAIT: Final = 900  # seconds
_CLIENTS: Final = 4096  # whose failures are counted
_TABLE: Final = tomllib.loads(files("citeloom.server").joinpath("access.toml").read_text("utf-8"))
ROUTES: Final[dict[str, str]] = {name: need for need, names in _TABLE["routes"].items() for name in names}
OPEN_PATHS: Final = frozenset(name.partition(" ")[2] for name, need in ROUTES.items() if need == "open")
TOOLS: Final[dict[str, str]] = {name: need for need, names in _TABLE["tools"].items() for name in names}


@dataclass(frozen=True, slots=True)
class Caller:
    """Who sent a request, with a session of a browser or with a token."""

    person: Person
    secret: Secret

    @property
    def rights(self) -> set[str]:
        """Those of the role, within the scopes of a token."""
        rights: set[str] = set(RIGHTS[self.person.role])
        return rights | {"self"} if self.secret.kind == "session" else rights & set(self.secret.scopes.split())

    def require(self, need: str | None, what: str) -> None:
        """Raise `ServerError` unless the caller has the right that is needed; what is not classified, nobody may."""
        if need != "open" and {"costs": "write", None: ""}.get(need, need) not in self.rights:
            way = "this token" if self.secret.kind == "token" else f"a {self.person.role}"
            raise ServerError(403, f"{what} is not allowed to {way}.", help="Ask an owner of this server.")


caller: Final[ContextVar[Caller | None]] = ContextVar("who sent the current request", default=None)


class People:
    """The accounts as a server uses them."""

    def __init__(self, accounts: Accounts) -> None:
        self.accounts = accounts
        self.provider: IdentityProvider | None = None
        self._asking = asyncio.Semaphore(2)  # strangers' tokens must not take all threads while the provider is down
        if os.environ.get(ISSUER):
            from .identity_provider import IdentityProvider

            self.provider = IdentityProvider()
        self._tries: dict[str, list[float]] = {}  # by client, the latest last

    async def caller(self, scope: Scope, headers: Headers) -> Caller | None:
        """Who sent a request; to MCP also with an access token that the group's provider issued for it."""
        kind, _, token = headers.get("authorization", "").partition(" ")
        session = "" if kind else session_cookie(headers.get("cookie"))
        if not session and kind.lower() != "bearer":
            return None
        proof: SecretKind = "session" if session else "token"
        found = await asyncio.to_thread(self.accounts.holder, proof, session or token.strip())
        if found is not None or session or self.provider is None or scope["path"] != MCP:
            return None if found is None else Caller(*found)
        resource = own_address(Request(scope), MCP)
        async with self._asking:
            subject, scopes = await asyncio.to_thread(self.provider.holder, token.strip(), resource)
        known = await asyncio.to_thread(self.accounts.holder, "identity", subject)
        return None if known is None else Caller(known[0], replace(known[1], kind="token", scopes=scopes))

    @contextmanager
    def attempt(self, request: Request, name: str) -> Iterator[None]:
        """An attempt to sign in, which counts until it succeeds; raises `ServerError` after too many.

        It counts for name and client together, so that strangers lock nobody out; and since behind a proxy all have its
        address, a browser where this person has signed in before is another client.
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


def own_address(request: Request, path: str) -> str:
    """The address of a path here as the client knows it, also behind a proxy with TLS."""
    secure = "https" in (request.url.scheme, request.headers.get("x-forwarded-proto"))
    return str(request.url.replace(scheme="https" if secure else "http", path=path, query=""))


async def require_access(request: Request) -> None:
    """The dependency of every route: refuse what the caller may not do. Without accounts there are no callers."""
    if request.app.state.people is None:
        return
    need = request.app.state.needs.get((request.method.replace("HEAD", "GET"), request.scope["endpoint"]))
    if (who := caller.get()) is not None:
        who.require(need, "This")
    elif need != "open":
        raise ServerError(401, "Sign in first.")


def needs_of(app: FastAPI) -> dict[tuple[str, Any], str | None]:
    """What each endpoint needs, by method."""
    routes = [(method, route) for route in iter_route_contexts(app.routes) for method in route.methods or ()]
    return {(method, route.endpoint): ROUTES.get(f"{method} {route.path}") for method, route in routes}


DEFAULT_PORT = 8765
_MEBIBYTE = 2**20
_HOST = re.compile(r"(?:\[(?P<address>[0-9A-Fa-f:.]+)\]|(?P<name>[A-Za-z0-9._-]+))(?::\d{1,5})?")
_MIN_TOKEN = 16  # characters


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Address, token and limits of a server."""

    host: str = "127.0.0.1"  # to bind; anything but loopback needs a token
    port: int = DEFAULT_PORT  # 0 takes a free one
    token: SecretStr | None = None  # sent as `Authorization: Bearer`, and by a browser once on its sign-in page
    names: tuple[str, ...] = ()  # further host names of the server, for example behind a proxy
    max_body: int = 4 * _MEBIBYTE  # per request, except uploads
    max_upload: int = 200 * _MEBIBYTE
    max_active: int = 64  # runs, turns and ingests working at once; others wait
    max_waiting: int = 200  # others are refused
    max_streams: int = 200  # open at once
    per_minute: int = 1200  # requests of a client
    people: bool = False  # whether the home has accounts, by which people sign in instead

    def __post_init__(self) -> None:
        given = self.token.get_secret_value() if self.token is not None else None
        if given is None and not self.loopback and not self.people:
            raise ConfigurationError(
                f"--host {self.host}: anybody who reaches this address could read the library and spend money.",
                help="Set CITELOOM_SERVER_TOKEN to a secret of at least 16 characters, invite people (people invite), "
                "or serve on 127.0.0.1.",
            )
        if given is not None and (len(given) < _MIN_TOKEN or not given.isascii() or not given.isprintable()):
            raise ConfigurationError(
                "CITELOOM_SERVER_TOKEN: a token has at least 16 printable ASCII characters.",
                help='Make one: python -c "import secrets; print(secrets.token_urlsafe(32))"',
            )

    def accepts_host(self, given: str) -> bool:
        """Whether a `Host` header names this server.

        Anybody may point an unknown name at this machine; that is not possible with addresses.
        """
        if (found := _HOST.fullmatch(given)) is None:
            return False
        name = (found["address"] or found["name"]).lower()
        own = {"127.0.0.1", "localhost", "::1"} if self.loopback or self._wildcard else {self.host.strip("[]").lower()}
        return (
            name in own
            or name in {known.lower().strip("[]") for known in self.names}
            or (self._wildcard and _address(name) is not None)
        )

    @property
    def loopback(self) -> bool:
        """True if only this machine reaches it."""
        address = _address(self.host)
        return self.host.lower() == "localhost" if address is None else address.is_loopback

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the server."""
        host = "127.0.0.1" if self._wildcard else self.host.strip("[]")
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}"

    @property
    def _wildcard(self) -> bool:
        address = _address(self.host)
        return address is not None and address.is_unspecified


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return None


def token_from_environment(name: str = "CITELOOM_SERVER_TOKEN") -> SecretStr | None:
    """The server's token or another secret, from the variable or from the file that `NAME_FILE` names, such as a
    container secret; raises `ConfigurationError` if that is unreadable."""
    token, file = os.environ.get(name), os.environ.get(f"{name}_FILE")
    if file and not token:
        try:
            token = Path(file).read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "is not ASCII"
            message = f"{name}_FILE: {file}: cannot be read ({reason})."
            raise ConfigurationError(message, help="Name a file that holds it.") from error
    return SecretStr(token) if token else None


COOKIE: Final = "citeloom_session"


class Tokens:
    def __init__(self, token: SecretStr | None) -> None:
        self._token = token.get_secret_value().encode() if token is not None else None

    @property
    def needed(self) -> bool:
        return self._token is not None

    def valid(self, given: str) -> bool:
        return self._token is not None and hmac.compare_digest(given.encode(errors="replace"), self._token)

    def valid_header(self, authorization: str | None) -> bool:
        kind, _, given = (authorization or "").partition(" ")
        return kind.lower() == "bearer" and self.valid(given.strip())

    @cached_property
    def fingerprint(self) -> str:
        """A hash to store instead of the token; slow, so that short tokens cannot be guessed."""
        return hashlib.scrypt(self._token or b"", salt=b"citeloom sessions", n=2**14, r=8, p=1).hex()


def session_cookie(cookies: str | None) -> str:
    """The session that a `Cookie` header names; "" if it names none."""
    return cookie_parser(cookies or "").get(COOKIE, "")
