"""The loop of the shell: read a line, run it, move to the resulting state.

Whatever a command does, the loop continues in a valid state. Ctrl-C ends the command, not the shell.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Final, TypeVar

from ... import api
from ...errors import DONE, PAUSED, UNEXPECTED, WRONG_INPUT, CiteloomError, ExitCode, PausedError
from ..output import notice, result
from . import shell_commands
from .parser import WORDS, Lines, NotUnderstood, ShellRequest, parse
from .shell_state import NotNowError, Shell, ShellState, failure, require, stage

Action = Callable[[Shell, str], Awaitable[ShellState]]
T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818  # Ctrl-C is not an error
    """Ctrl-C was pressed while a command was running."""


async def converse(shell: Shell, lines: Lines) -> ExitCode:
    """Run lines until there are no more; returns the exit code of the last failed command."""
    code: ExitCode = DONE
    while True:
        try:
            line = await lines.next()
        except KeyboardInterrupt:
            notice("Ctrl-D or 'quit' leaves.")
            continue
        except EOFError:
            return code
        request = parse(line)
        if request is None:
            continue
        if isinstance(request, NotUnderstood):
            request = ShellRequest("ask", line.strip()) if api.conversation.is_remark(line) else request
        if isinstance(request, NotUnderstood):
            failure(request.message)
            code = WRONG_INPUT
            continue
        if request.command == "quit":
            return code
        code = await carry_out(shell, request) or code


async def carry_out(shell: Shell, request: ShellRequest) -> ExitCode:
    """Run one line and return the next state; report any error in one line."""
    given = request
    if request.command == "resume" and not shell.state.paused and shell.behind is not None:
        await asyncio.wait([shell.behind])  # the background work may find an interrupted question
    try:
        require(shell.state, request.command)
    except CiteloomError as error:
        failure(str(error))
        return error.exit_code
    if request.command == "resume":
        resumed = parse(shell.state.paused)
        assert isinstance(resumed, ShellRequest)  # it ran before
        given = resumed

    async def act() -> ShellState:
        if given.plain:
            await require_question(shell, given.argument)
        return await ACTIONS[given.command](shell, given.argument)

    try:
        shell.state = await interruptible(act())
    except Interrupted:
        return _pause(shell, given, "Interrupted")
    except PausedError as error:
        return _pause(shell, given, _with_stage(error, error.message))
    except CiteloomError as error:
        failure(_with_stage(error, str(error)))
        return error.exit_code
    except Exception as error:  # the shell survives our own bugs and reports them as `cli.py` does
        if os.environ.get("CITELOOM_DEBUG"):
            raise
        message = " ".join(str(error).split())
        hint = "set CITELOOM_DEBUG=1 for the traceback; please report it"
        failure(f"Unexpected {type(error).__name__}: {message} ({hint}).")
        return UNEXPECTED
    return DONE


def _with_stage(error: CiteloomError, message: str) -> str:
    """Prefix the message with the failed stage, if known."""
    return ": ".join([*getattr(error, "__notes__", ()), message])


def _pause(shell: Shell, request: ShellRequest, why: str) -> ExitCode:
    if request.command not in RESUMABLE:
        notice(f"{why}.")
        return PAUSED
    shell.state = shell.state.paused_at(request.line)
    stage("⏸️ ", f"{why.rstrip('.')}. Completed calls are saved; `resume` continues.")
    return PAUSED


async def interruptible(work: Awaitable[T]) -> T:
    """Wait for `work`; Ctrl-C cancels it and raises `Interrupted` once it has cleaned up."""
    loop = asyncio.get_running_loop()
    task = asyncio.ensure_future(work)
    pressed = False

    def press(*_: object) -> None:
        nonlocal pressed
        pressed = True
        loop.call_soon_threadsafe(task.cancel)

    before = signal.signal(signal.SIGINT, press)
    try:
        return await task
    except asyncio.CancelledError:
        if pressed:
            raise Interrupted from None
        raise
    finally:
        signal.signal(signal.SIGINT, before)


async def show_help(shell: Shell, _: str) -> ShellState:
    width = max(len(f"{word.name} {word.argument}".rstrip()) for word in WORDS)
    lines = [f"  {f'{word.name} {word.argument}'.rstrip():{width}}  {word.purpose}" for word in WORDS]
    result("\n".join(lines))
    return shell.state


ACTIONS: Final[dict[str, Action]] = {
    "research": partial(shell_commands.answer, kind="question"),
    "ask": partial(shell_commands.answer, kind="follow-up"),
    "improve": partial(shell_commands.answer, kind="improve"),
    "find": shell_commands.find,
    "sem-search": shell_commands.sem_search,
    "list": shell_commands.list_papers,
    "summary": shell_commands.summary,
    "open": shell_commands.open_paper,
    "save": shell_commands.save,
    "section": shell_commands.section,
    "rebuild-index": shell_commands.rebuild_index,
    "help": show_help,
}
RESUMABLE: Final[frozenset[str]] = frozenset({"research", "ask", "improve", "section", "rebuild-index"})


_MOST_WORDS: Final = 2  # longer lines are questions, in any language
_ASKING: Final = frozenset("what which who whom whose when where why how is are was were does do did can could".split())


async def require_question(shell: Shell, text: str) -> None:
    """Raise `NotNowError` for a line of one or two words if one of them is not in the library.

    Remarks, and lines with a question mark or an initial question word, always pass.
    """
    words = text.split()
    if len(words) > _MOST_WORDS or not text.isascii() or "?" in text or words[0].casefold() in _ASKING:
        return
    if api.conversation.is_remark(text):
        return
    session = await shell.session()
    unknown = await api.library_search.aunknown_words(session, words)
    if unknown:
        named = " and ".join(f"'{word}'" for word in unknown)
        verb = "occurs" if len(unknown) == 1 else "occur"
        raise NotNowError(
            f"'{text}' is neither a command nor a question: {named} {verb} nowhere in the library.",
            help=f"'ask {text}' asks it anyway; 'help' lists the commands.",
        )
