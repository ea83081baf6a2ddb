"""Our HTTP API and MCP inside the LangGraph server, and access to it (`http`, `auth` and `store` in langgraph.json).

The paths are the same as with `serve`. Its pages are missing, since the LangGraph server uses some of their paths.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, Final
from urllib.parse import urlsplit

from langgraph_sdk import Auth
from starlette.applications import Starlette
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from ..api import homes, people
from ..api.remembering import ROOT as MEMORY, HomeStore
from ..errors import CiteloomError
from ..settings.config import Settings, load_settings
from .access import MCP, Caller
from .app import create_app
from .problems import ServerError, error_response
from .server_options import ServerOptions, Tokens, token_from_environment

_STUDIO: Final = "smith.langchain.com"
_READING: Final = frozenset({"read", "search", "get", "list_namespaces"})
_LOCAL: Final = ServerOptions()
_log = logging.getLogger("citeloom.server")
auth = Auth()


@auth.authenticate
async def authenticate(headers: Mapping[bytes, bytes], authorization: str | None) -> Auth.types.MinimalUserDict:
    """Require a person's token if there are accounts, else the server's token if one is set; else admit only programs
    and pages of this machine, and LangGraph's Studio."""
    # agent-chat-ui and the SDK send the token as `x-api-key`, the header that LangSmith's servers ask for.
    given = authorization or f"Bearer {headers.get(b'x-api-key', b'').decode('latin-1')}"
    try:
        home = await asyncio.to_thread(lambda: homes.configured_home(load_settings()))
        if await asyncio.to_thread(people.has_accounts, home):
            token = given.partition(" ")[2].strip()
            if (found := await asyncio.to_thread(home.accounts().holder, "token", token)) is None:
                raise Auth.exceptions.HTTPException(401, "Your own token is needed; create one under Settings, People.")
            return {"identity": found[0].name, "permissions": [people.PERSON, *sorted(Caller(*found).rights)]}
    except CiteloomError as error:
        raise Auth.exceptions.HTTPException(403, f"The accounts cannot be read: {error.message}") from error
    tokens = Tokens(await asyncio.to_thread(token_from_environment))
    if tokens.needed:
        if not tokens.valid_header(given):
            raise Auth.exceptions.HTTPException(401, "A token is needed: send it as 'Authorization: Bearer TOKEN'.")
        return {"identity": "token"}
    if not _LOCAL.accepts_host(headers.get(b"host", b"").decode("latin-1")):
        raise Auth.exceptions.HTTPException(403, "Only this machine has access; set CITELOOM_SERVER_TOKEN for others.")
    page = urlsplit(headers.get(b"origin", b"").decode("latin-1"))
    studio = page.scheme == "https" and f".{page.hostname}".endswith(f".{_STUDIO}")
    if page.geturl() and not studio and not _LOCAL.accepts_host(page.netloc):
        raise Auth.exceptions.HTTPException(403, "The request comes from a page of another site.")
    return {"identity": "local"}


@auth.on
async def keep_apart(ctx: Auth.types.AuthContext, value: Any) -> Any:
    """Restrict threads, runs and assistants to the person who created them, if there are accounts."""
    owner = {"owner": ctx.user.identity}
    if people.PERSON not in ctx.permissions:
        return True
    if ctx.resource == "crons" or not {"read" if ctx.action in _READING else "write"} & set(ctx.permissions):
        return False
    if ctx.resource == "store":
        name = tuple(value.get("namespace") or ())
        return name[:2] == (MEMORY, "everyone") or (name[:1] == (MEMORY,) and name[2:3] == (ctx.user.identity,))
    if ctx.action in ("create", "create_run", "update") and (metadata := value.setdefault("metadata", {})) is not None:
        metadata |= owner
        metadata.pop("created_by", None)
    shared = ctx.resource == "assistants" and ctx.action in _READING
    return {"$or": [owner, {"created_by": "system"}]} if shared else owner


def store() -> HomeStore:
    """Return the configured home's store, which holds the author's memory; opened on first use."""
    return HomeStore(lambda: _existing_home(load_settings()))


def _existing_home(settings: Settings) -> homes.Home:
    home = homes.configured_home(settings)
    home.require_library()
    return home


class _Api:
    """The API as an ASGI application, created on startup; answers 503 if that fails."""

    def __init__(self) -> None:
        self._app: ASGIApp | None = None
        self._reason: CiteloomError = ServerError(503, "The server is starting.")

    @asynccontextmanager
    async def open(self, _: Starlette) -> AsyncIterator[None]:
        """Serve the configured library for the block; without a library, the graphs still name what is missing."""
        async with AsyncExitStack() as stack:
            try:
                settings = await asyncio.to_thread(load_settings)
                home = await asyncio.to_thread(_existing_home, settings)
                token = await asyncio.to_thread(token_from_environment)
                # With a token the server may be reached by any address of the machine.
                options = ServerOptions("127.0.0.1" if token is None else "0.0.0.0", token=token)
                app = await asyncio.to_thread(create_app, settings, home, options)
                await stack.enter_async_context(app.router.lifespan_context(app))
                self._app = app
            except CiteloomError as error:
                self._reason = ServerError(503, error.message, help=error.help)
                _log.warning("/api/v1 and /mcp are not served: %s", error)
            yield
            self._app = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._app or error_response(self._reason))(scope, receive, send)


_api: Final[Any] = _Api()
app = Starlette(routes=[Route("/api/v1/{path:path}", _api), Route(MCP, _api)], lifespan=_api.open)
