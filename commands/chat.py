"""chat: a shell over the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from citeloom.commands.console import notice
from citeloom.commands.options import (
    HomeOption,
    MaxCallsOption,
    MaxCostOption,
    MaxTokensOption,
    resolve,
)
from citeloom.commands.sections import ModelOption, UrlOption
from citeloom.models.concurrency import run_to_end

if TYPE_CHECKING:
    from citeloom.config import Settings
    from citeloom.stores.home import Home

HISTORY = "chat_history"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("chat", rich_help_panel="Ask")(chat)


def chat(
    exp: Annotated[
        Path | None,
        typer.Option("--exp", help="The experiment that 'section' writes of, as JSON.", show_default=False),
    ] = None,
    model: ModelOption = None,
    base_url: UrlOption = None,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    home: HomeOption = None,
) -> None:
    """Look around in the library in a shell: find papers, read summaries, open files, write sections.

    'help' in the shell lists its commands. The numbers of a list stand for its papers in the commands after it. Ctrl-C
    pauses what is under way, 'resume' goes on with it, Ctrl-D leaves. Lines are read from a pipe too, one command each.
    """
    overrides = {"chat_model": model, "chat_base_url": base_url}
    settings, found = resolve(home, **overrides, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)
    code = run_to_end(_chat(settings, found, exp))
    if code:
        raise typer.Exit(code)


async def _chat(settings: Settings, home: Home, exp: Path | None) -> int:
    from citeloom.commands.shell import lines, screen
    from citeloom.commands.shell.context import Shell
    from citeloom.commands.shell.opening import NO_PAPERS, Opening, at_a_glance
    from citeloom.commands.shell.session import converse

    opening = Opening(settings, home, on_notice=notice, on_error=lambda error: screen.failure(str(error)))
    shelf = at_a_glance(home)
    if shelf.keys:
        opening.start()
        notice(f"{len(shelf.keys)} papers, {shelf.chunks:,} chunks. 'help' lists the commands, Ctrl-D leaves.")
    else:
        screen.failure(f"The library is empty. {NO_PAPERS}")
    shell = Shell(opening, exp)
    interactive = lines.on_terminal()
    if interactive:
        history = home.root / HISTORY if home.exists() else None
        source: lines.Lines = lines.TerminalLines(history, lambda: shell.state.last_query_set, lambda: shelf.keys)
    else:
        source = lines.PipedLines()
    try:
        code = await converse(shell, source)
    finally:
        await opening.close()
    return 0 if interactive else code
