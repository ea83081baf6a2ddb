"""Reads the shell's lines from a terminal with history and completion, or from a pipe."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..output import notice
from .parser import WORDS

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

PROMPT = "You: "


def on_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


class PipedLines:
    """Lines of a pipe or file, echoed on stderr so that a transcript reads well.

    A daemon thread reads ahead: a thread of the event loop would block exit while the pipe is open.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    async def next(self) -> str:
        """The next line; raises EOFError after the last."""
        line = await self._queue.get()
        if line is None:
            raise EOFError
        if line.strip():
            notice(f"{PROMPT}{line.strip()}")
        return line

    def _read(self) -> None:
        for line in sys.stdin:
            self._loop.call_soon_threadsafe(self._queue.put_nowait, line)
        self._loop.call_soon_threadsafe(self._queue.put_nowait, None)


class TerminalLines:
    """Lines typed at a prompt, with the history of a file or in memory; `listed` and `keys` complete papers."""

    def __init__(
        self, history: Path | None, listed: Callable[[], Mapping[int, str]], keys: Callable[[], Sequence[str]]
    ) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory, InMemoryHistory

        kept = InMemoryHistory() if history is None else FileHistory(str(history))
        self._session: PromptSession[str] = PromptSession(
            history=kept, completer=_completer(listed, keys), complete_while_typing=False, enable_history_search=True
        )

    async def next(self) -> str:
        """The next line; raises EOFError after Ctrl-D, KeyboardInterrupt after Ctrl-C; output goes above the prompt."""
        from prompt_toolkit.patch_stdout import patch_stdout

        with patch_stdout(raw=True):
            return await self._session.prompt_async(PROMPT)


def _completer(listed: Callable[[], Mapping[int, str]], keys: Callable[[], Sequence[str]]) -> Completer:
    from prompt_toolkit.completion import Completer, Completion

    class ShellCompleter(Completer):
        def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
            typed = document.text_before_cursor.lstrip()
            last = typed.rpartition(" ")[2]
            for text, meta in suggestions(typed, listed(), keys()):
                yield Completion(text, start_position=-len(last), display_meta=meta)

    return ShellCompleter()


Lines = PipedLines | TerminalLines


def suggestions(typed: str, listed: Mapping[int, str], keys: Sequence[str]) -> list[tuple[str, str]]:
    """Completions at the cursor, each with a description: commands, then papers, section types or files."""
    first, blank, rest = typed.partition(" ")
    if not blank:
        begun = [word for word in WORDS if word.name.startswith(first.casefold())]
        return [(f"{word.name} " if word.argument else word.name, word.purpose) for word in begun]
    takes = next((word.takes for word in WORDS if word.name == first.casefold()), "nothing")
    if takes == "paper":
        by_key = {key: number for number, key in listed.items()}
        ordered = [*by_key, *(key for key in keys if key not in by_key)]
        return [
            (key, f"number {by_key[key]}" if key in by_key else "")
            for key in ordered
            if rest.casefold() in key.casefold()
        ]
    if takes == "section":
        from ...api.run_options import SECTIONS

        return [(kind, spec.purpose) for kind, spec in SECTIONS.items() if kind.startswith(rest.casefold())]
    return _files(rest) if takes == "file" else []


def _files(begun: str) -> list[tuple[str, str]]:
    given = Path(begun)
    folder = given if begun.endswith("/") else given.parent
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    shown = [f"{entry}/" if entry.is_dir() else str(entry) for entry in entries]
    return [(path, "") for path in shown if path.startswith(begun)]
