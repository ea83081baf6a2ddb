"""mcp: the library as tools for other agents, over standard input and output."""

from __future__ import annotations

import sys

import typer

from ..api.blocking import run_async
from ..errors import ConfigurationError
from .options import HomeOption, command_session, resolve
from .output import notice
from .serve import SERVER_EXTRA


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("mcp", rich_help_panel="Server")(mcp)


def mcp(home: HomeOption = None) -> None:
    """Serve the library to an agent over MCP, on standard input and output.

    Agents start this command themselves; docs/server.md shows the configuration of the usual ones. 'citeloom serve'
    serves the same tools over HTTP at /mcp.
    """
    try:
        from ..server.mcp_transports import serve_stdio
    except ImportError as error:
        raise ConfigurationError(
            f"The server is not installed ({error.name} is missing).", help=SERVER_EXTRA
        ) from error
    settings, found = resolve(home)
    with command_session(settings, found, create=False) as session:
        if sys.stdin.isatty():
            notice("Waiting for an agent on standard input; agents start this command themselves (Ctrl-C ends it).")
        run_async(serve_stdio(session))
