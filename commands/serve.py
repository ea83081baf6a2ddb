"""serve, mcp and lsp: serve the library to browsers, programs, agents and editors; people: who may sign in."""

from __future__ import annotations

import ctypes
import socket
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from errno import EADDRINUSE
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer

from .. import api
from ..api.messages import install_hint
from ..errors import ConfigurationError
from .options import command_group, home_session, homes_from_flags, resolve
from .output import Printed, notice, result

if TYPE_CHECKING:
    from ..server.server_options import ServerOptions

SERVER_EXTRA: Final = f"{install_hint('server')}."
# Seconds that a computing thread may hold the GIL while requests wait.
_SWITCH_INTERVAL: Final = 0.001
_M_ARENA_MAX: Final = -8  # glibc's malloc.h


def serve(
    host: Annotated[str, "Address to listen on; any other than loopback needs a token."] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8765,
    name: Annotated[list[str] | None, "Another host name by which the server is reached; may be repeated."] = None,
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
            found.prepare().join_servers("").leave()  # if a server of this home is running, the error names it
        raise
    with listening:
        options = replace(options, port=listening.getsockname()[1])
        # If a server of this home is running, fail before anything is opened.
        found.prepare().join_servers(options.address).leave()
        notice(f"Citeloom: {options.address}  (Ctrl-C stops it)")
        config = uvicorn_config(create_app(settings, found, options))
        with suppress(KeyboardInterrupt):  # uvicorn re-raises it after closing everything
            uvicorn.Server(config).run(sockets=[listening])


def mcp() -> None:
    """Serve the library to an agent over MCP, on standard input and output.

    Agents start this command themselves; docs/server.md shows how to configure common ones. 'citeloom serve' serves the
    same tools over HTTP at /mcp.
    """
    with _require_server():
        from ..server.mcp_server import serve_stdio
    with home_session() as session:
        if sys.stdin.isatty():
            notice("Waiting for an agent on standard input; agents start this command themselves (Ctrl-C stops it).")
        api.blocking.run_async(serve_stdio(session))


def lsp() -> None:
    """Serve an editor over the language server protocol, on standard input and output.

    Editors start this command themselves; docs/editors.md shows how to set up common ones. The library is found from
    the editor's folder, as on the command line.
    """
    try:
        from ..language_server.editor_server import CitationServer
    except ImportError as error:
        missing = f"The language server is not installed ({error.name} is missing)."
        raise ConfigurationError(missing, help=f"{install_hint('editor')}.") from error
    if sys.stdin.isatty():
        notice("Waiting for an editor on standard input; editors start this command themselves (Ctrl-C stops it).")
    CitationServer(partial(home_session, reading=True), in_folder=not homes_from_flags).start_io()


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
        used = f" Citeloom may be using it for another home: {options.address}" if error.errno == EADDRINUSE else ""
        raise ConfigurationError(
            f"--host {options.host} --port {options.port}: cannot be bound ({error.strerror}).{used}",
            help="Choose another --port, or 0 for a free one.",
        ) from error
    return listening


people_app = command_group("Accounts of a group's server; a server without accounts is for one person.")
NameArgument = Annotated[str, "Name of the account, such as ada."]
RoleName = Literal["reader", "writer", "owner"]
_HERE: Final = "(command line)"  # who did it, in the log


@people_app.command("invite")
def invite_person(
    name: NameArgument,
    role: Annotated[
        RoleName, "reader searches and reads, writer also asks and adds papers, owner may do all."
    ] = "writer",
    address: Annotated[str, "Address at which people reach the server."] = "http://127.0.0.1:8765",
) -> None:
    """Print a link with which somebody joins or sets a new password; it can be used once, within a week."""
    home = resolve()[1]
    result(f"{address.rstrip('/')}/join?invitation={api.people.invite(home, name, role)}")
    home.accounts().log(_HERE, f"invited {name}")
    notice("Everybody signs in from now on. Earlier conversations and runs belong to the first owner.")


@people_app.command("list")
def list_people() -> Printed:
    """List the accounts."""
    return _show_items(_accounts().people(), "account", "name role joined budget")


@people_app.command("role")
def change_role(
    name: NameArgument,
    role: Annotated[RoleName, "The new role."],
    budget: Annotated[float | None, "What the person may spend in total; below 0: no limit."] = None,
) -> None:
    """Change somebody's role, and their budget."""
    accounts = _accounts()
    accounts.change(name, role=role, budget=budget)
    accounts.log(_HERE, f"gave {name} the role {role}")


@people_app.command("remove")
def remove_person(name: NameArgument) -> None:
    """Remove an account with its sessions and tokens; its conversations are kept but no longer shown on the page."""
    accounts = _accounts()
    accounts.remove(name)
    accounts.log(_HERE, f"removed {name}")


@people_app.command("tokens")
def list_tokens(name: NameArgument, revoke: Annotated[str | None, "Id of a token to revoke."] = None) -> Printed:
    """List somebody's tokens for the API and MCP, which people create on the page."""
    accounts = _accounts()
    person = accounts.get(name).name
    if revoke is not None:
        accounts.revoke(person, revoke)
        accounts.log(_HERE, f"revoked a token of {person}")
    return _show_items(accounts.secrets_of(person), "token", "id label scopes expires_at")


@people_app.command("audit")
def show_audit(
    name: Annotated[str, "Only what this person did."] = "",
    most: Annotated[int, typer.Option(min=1, help="Number of lines.")] = 200,
) -> Printed:
    """Show who did what, the latest first."""
    return _show_items(_accounts().audit_lines(name, most), "line", "number at person action outcome")


def _accounts() -> api.people.Accounts:
    home = resolve()[1]
    home.require_library()
    return home.accounts()


def _show_items(items: Iterable[Any], noun: str, fields: str) -> Printed:
    """Show these fields of the items as a table; times are formatted as dates."""
    names = fields.split()
    records = [
        {name: item[name] if isinstance(item, dict) else getattr(item, name) for name in names} for item in items
    ]

    def shown(name: str) -> Any:
        if name in ("at", "expires_at"):
            return lambda record: datetime.fromtimestamp(record[name]).isoformat(" ", "seconds")
        return lambda record: "yes" if record[name] is True else record[name] or ""

    return Printed.listed(records, noun, {name: shown(name) for name in names}, names[:1])
