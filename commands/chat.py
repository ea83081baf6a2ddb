"""chat: a shell over the library."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..api.blocking import run_async
from ..api.messages import counted, filled
from .completion import complete_conversations
from .options import HomeOption, MaxCallsOption, MaxCostOption, MaxTokensOption, command_here, resolve
from .output import notice, notice_command
from .research import StyleOption
from .sections import ModelOption, UrlOption

if TYPE_CHECKING:
    from ..settings.config import Settings
    from ..stores.home import Home

HISTORY = "chat_history"


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("chat", rich_help_panel="Ask")(chat)


def chat(
    exp: Annotated[
        Path | None,
        typer.Option("--exp", help="The experiment for 'section', as JSON.", show_default=False),
    ] = None,
    thread: Annotated[
        str | None,
        typer.Option(
            "--thread",
            help="Id of a conversation to continue, or a prefix of it.",
            show_default=False,
            autocompletion=complete_conversations,
        ),
    ] = None,
    cite_style: StyleOption = None,
    model: ModelOption = None,
    base_url: UrlOption = None,
    max_calls: MaxCallsOption = None,
    max_tokens: MaxTokensOption = None,
    max_cost: MaxCostOption = None,
    home: HomeOption = None,
) -> None:
    """Ask questions in a shell, with follow-ups.

    'help' in the shell lists its commands: find papers, read summaries, open files; plain text is a question. Commands
    accept the numbers of the last list or of citations; a citation keeps its number for the whole conversation. Ctrl-C
    pauses a running answer, 'resume' continues it, Ctrl-D leaves. Lines can also be piped in, one command each.
    """
    overrides: dict[str, Any] = {"chat_model": model, "chat_base_url": base_url, "cite_style": cite_style}
    settings, found = resolve(home, **overrides, max_calls=max_calls, max_tokens=max_tokens, max_cost=max_cost)
    code = run_async(_chat(settings, found, exp, thread))
    if code:
        raise typer.Exit(code)


async def _chat(settings: Settings, home: Home, exp: Path | None, thread: str | None) -> int:
    from ..stores.run_records import new_thread_id
    from .shell import display, input
    from .shell.background_open import NO_PAPERS, Opening, at_a_glance
    from .shell.repl import converse
    from .shell.resume import behind_the_prompt, take_up
    from .shell.shell import Shell

    opening = Opening(settings, home, on_notice=notice, on_error=lambda error: display.failure(str(error)))
    shelf = at_a_glance(home)
    if shelf.keys:
        opening.start()
        held = f"{counted(len(shelf.keys), 'paper')}, {counted(shelf.chunks, 'chunk')}"
        notice(f"{held}. 'help' lists the commands, Ctrl-D leaves.")
    else:
        display.failure(f"The library is empty. {filled(NO_PAPERS)}")
    shell = Shell(opening, new_thread_id(), exp)
    if thread is not None:
        take_up(shell, home, thread)
    if shelf.keys:
        shell.behind = asyncio.ensure_future(behind_the_prompt(shell, settings, home))
    interactive = input.on_terminal()
    if interactive:
        history = home.root / HISTORY if home.exists() else None
        source: input.Lines = input.TerminalLines(
            history, lambda: shell.state.last_query_set, lambda: opening.keys() or shelf.keys
        )
    else:
        source = input.PipedLines()
    try:
        code = await converse(shell, source)
    finally:
        if shell.behind is not None:
            shell.behind.cancel()
        await opening.close()
    if shell.turns:
        notice_command("To continue this conversation:", command_here(f"chat --thread {shell.thread_id}"))
    return 0 if interactive else code
