"""serve, mcp and lsp: serve the library to browsers, programs, agents and editors."""

from __future__ import annotations

import ctypes
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from errno import EADDRINUSE
from functools import partial
from typing import TYPE_CHECKING, Annotated, Final

import typer

from .. import api
from ..api.messages import install_hint
from ..errors import ConfigurationError
from .options import home_session, named_homes, resolve
from .output import notice

if TYPE_CHECKING:
    from ..server.server_options import ServerOptions

SERVER_EXTRA: Final = f"{install_hint('server')}."
# Seconds that a computing thread may hold the GIL while requests wait.
_SWITCH_INTERVAL: Final = 0.001
_M_ARENA_MAX: Final = -8  # glibc's malloc.h


def serve(
    host: Annotated[str, "Address to listen on; any other than loopback needs a token."] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    name: Annotated[list[str] | None, "Another host name under which the server is reached; can be repeated."] = None,
) -> None:
    """Serve the library as a web page and an API, until Ctrl-C.

    The token for addresses other than loopback is read from CITELOOM_SERVER_TOKEN, or from the file that
    CITELOOM_SERVER_TOKEN_FILE names.
    """
    with _require_server():
        import uvicorn

        from ..server.app import create_app, uvicorn_config
        from ..server.server_options import ServerOptions, token_from_environment
    sys.setswitchinterval(_SWITCH_INTERVAL)
    with suppress(AttributeError, OSError, TypeError):  # not glibc; on Windows, `CDLL` needs a name
        ctypes.CDLL(None).mallopt(_M_ARENA_MAX, 2)  # dozens of arenas would each keep freed memory
    settings, found = resolve()
    people = api.people.has_accounts(found)
    options = ServerOptions(host, port, token_from_environment(), tuple(name or ()), people=people)
    if people and options.token is not None:
        notice("This home has accounts: CITELOOM_SERVER_TOKEN is not used.")
    try:
        listening = _bind(options)
    except ConfigurationError:
        if found.exists():
            found.prepare().join_servers("").leave()  # of this home there may be a server already: says where
        raise
    with listening:
        options = replace(options, port=listening.getsockname()[1])
        # Fails with a one-line error before anything is opened.
        found.prepare().join_servers(options.address).leave()
        notice(f"Citeloom: {options.address}  (Ctrl-C stops it)")
        config = uvicorn_config(create_app(settings, found, options))
        with suppress(KeyboardInterrupt):  # uvicorn re-raises it after closing everything
            uvicorn.Server(config).run(sockets=[listening])


def mcp() -> None:
    """Serve the library to an agent over MCP, on standard input and output.

    Agents start this command themselves; docs/server.md shows the configuration of the usual ones. 'citeloom serve'
    serves the same tools over HTTP at /mcp.
    """
    with _require_server():
        from ..server.mcp_transports import serve_stdio
    with home_session() as session:
        if sys.stdin.isatty():
            notice("Waiting for an agent on standard input; agents start this command themselves (Ctrl-C stops it).")
        api.blocking.run_async(serve_stdio(session))


def lsp() -> None:
    """Serve an editor over the language server protocol, on standard input and output.

    Editors start this command themselves; docs/editors.md shows how to set up the usual ones. The library is the one
    of the editor's folder, as on the command line.
    """
    try:
        from ..language_server.editor_server import serve_editor
    except ImportError as error:
        missing = f"The language server is not installed ({error.name} is missing)."
        raise ConfigurationError(missing, help=f"{install_hint('editor')}.") from error
    if sys.stdin.isatty():
        notice("Waiting for an editor on standard input; editors start this command themselves (Ctrl-C stops it).")
    serve_editor(partial(home_session, reading=True), in_folder=not named_homes)


@contextmanager
def _require_server() -> Iterator[None]:
    try:
        yield
    except ImportError as error:
        missing = f"The server is not installed ({error.name} is missing)."
        raise ConfigurationError(missing, help=SERVER_EXTRA) from error


def _bind(options: ServerOptions) -> socket.socket:
    """Open a listening socket; raises `ConfigurationError` if the address is unusable."""
    family = socket.AF_INET6 if ":" in options.host else socket.AF_INET
    listening = socket.socket(family)
    try:
        if sys.platform != "win32":
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((options.host.strip("[]"), options.port))
        listening.listen(512)
    except OSError as error:
        listening.close()
        used = f" What uses it may be Citeloom on another home: {options.address}" if error.errno == EADDRINUSE else ""
        raise ConfigurationError(
            f"--host {options.host} --port {options.port}: cannot be bound ({error.strerror}).{used}",
            help="Choose another --port, or 0 for a free one.",
        ) from error
    return listening
