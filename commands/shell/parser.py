"""Reads the shell's lines, with history and completion, and parses each as a command or a question."""

from __future__ import annotations

import asyncio
import difflib
import re
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from glob import escape, glob
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from ... import api
from ..output import notice

if TYPE_CHECKING:
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document

Takes = Literal["nothing", "text", "paper", "file", "section"]


@dataclass(frozen=True, slots=True)
class CommandWord:
    """A command as `help` shows it; `takes` is the kind of its argument."""

    name: str
    argument: str
    purpose: str
    takes: Takes


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """A command to run; `plain` means that the line named none and is asked as a question."""

    command: str
    argument: str = ""
    plain: bool = field(default=False, compare=False)

    @property
    def line(self) -> str:
        return f"{self.command} {self.argument}".strip()


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A line that is neither a command nor a question, with the error message."""

    message: str


WORDS: Final = (
    CommandWord("research", "QUESTION", "answer a question from the papers, with citations", "text"),
    CommandWord("ask", "QUESTION", "a follow-up question; plain text does the same", "text"),
    CommandWord("improve", "FEEDBACK", "rewrite the last answer following feedback", "text"),
    CommandWord("resume", "", "continue what Ctrl-C interrupted", "nothing"),
    CommandWord("find", "[--fulltext] WORDS", "papers by summary and note, or by the words of their full text", "text"),
    CommandWord("sem-search", "QUERY", "passages near to a query in meaning", "text"),
    CommandWord("list", "", "all papers of the library", "nothing"),
    CommandWord("summary", "N|KEY", "what a paper is about; N is its number in the last list", "paper"),
    CommandWord("open", "N|KEY", "open the file of a paper", "paper"),
    CommandWord("save", "[FILE]", "save the last result, by default as results/<question>_<time>.md", "file"),
    CommandWord("section", "TYPE [EXP]", "write a section of the paper on the experiment of --exp or EXP", "section"),
    CommandWord("rebuild-index", "", "rebuild the index from the files of the papers", "nothing"),
    CommandWord("help", "", "show this list", "nothing"),
    CommandWord("quit", "", "leave; Ctrl-D does the same", "nothing"),
)
_BY_NAME: Final[Mapping[str, CommandWord]] = {word.name: word for word in WORDS}
_ALIASES: Final = {"exit": "quit", "?": "help", "h": "help", "q": "quit"}
_NEAR: Final = 0.75  # of difflib: one wrong letter in four, two in eight
_LATIN = re.compile(r"[\x00-\x7f]+")


def parse(line: str) -> ShellRequest | NotUnderstood | None:
    """Parse a line; None for an empty one.

    A first word that names a command is one, unless the rest cannot be its argument: "list the assumptions of LASSO"
    and "open questions in drug repurposing?" are questions.
    """
    text = " ".join(line.split())
    if not text:
        return None
    slash = text.startswith("/") and len(text) > 1
    first, _, argument = text.removeprefix("/").partition(" ") if slash else text.partition(" ")
    word = _BY_NAME.get(_ALIASES.get(first.casefold(), first.casefold()))
    if word is None:
        lowered = first.casefold()
        close = difflib.get_close_matches(lowered, [word.name for word in WORDS], n=1, cutoff=_NEAR)
        begun = [word.name for word in WORDS if len(lowered) > 2 and word.name.startswith(lowered)]
        near = next((word.name for word in WORDS if word.name in (close or begun)), None)
        if not (slash or _looks_mistyped(first, argument, near)):
            return ShellRequest("ask", text, plain=True)
        hint = f"Did you mean '{f'{near} {argument}'.strip()}'?" if near else "'help' lists the commands."
        question = " To ask it as a question, begin with 'ask'." if argument or near is None else ""
        return NotUnderstood(f"Unknown command '{first}'. {hint}{question}")
    if not slash and not _fits(word.name, argument):
        return ShellRequest("ask", text, plain=True)
    if word.takes == "nothing" and argument:
        return NotUnderstood(f"'{word.name}' takes no argument.")
    if word.takes in ("text", "paper", "section") and not argument:
        return NotUnderstood(f"'{word.name}' needs an argument: {word.name} {word.argument}.")
    return ShellRequest(word.name, argument)


def _fits(name: str, argument: str) -> bool:
    """Whether the command can take `argument`, by its number of words."""
    words = argument.split()
    match _BY_NAME[name].takes:
        case "nothing":
            return not words or (len(words) == 1 and not argument.endswith("?"))
        case "paper":
            return len(words) <= 1
        case "section":
            return len(words) <= 2 and not argument.endswith("?")
        case "text" | "file":
            return True


def _looks_mistyped(first: str, argument: str, near: str | None) -> bool:
    """Whether a line was probably meant as a command: a single word, or a misspelled command.

    A near miss counts as a question if it ends in a question mark, if the command cannot take its other words, or if it
    begins with an inflected command: "researchers", "finding", "lists".
    """
    if not argument:
        return not first.endswith("?") and _LATIN.fullmatch(first) is not None
    if near is None or argument.endswith("?") or first.casefold().startswith(near):
        return False
    return _fits(near, argument)


PROMPT = "You: "


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


class PipedLines:
    """Reads lines of a pipe or file, and echoes them on stderr so that a transcript reads well.

    A daemon thread reads them: a thread of the event loop would block exit while the pipe is open.
    """

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        threading.Thread(target=self._read, name="lines", daemon=True).start()

    async def next(self) -> str:
        """Return the next line; raises EOFError after the last."""
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
    """Reads lines typed at a prompt, with history from a file or in memory; `listed` and `keys` complete papers."""

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
        """Read a line, printing output above the prompt; raises EOFError for Ctrl-D, KeyboardInterrupt for Ctrl-C."""
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
    """Return completions at the cursor with descriptions: commands, then papers, section types or files."""
    first, blank, rest = typed.partition(" ")
    if not blank:
        begun = [word for word in WORDS if word.name.startswith(first.casefold())]
        return [(f"{word.name} " if word.argument else word.name, word.purpose) for word in begun]
    takes = next((word.takes for word in WORDS if word.name == first.casefold()), "nothing")
    if takes == "paper":
        by_key = {key: number for number, key in listed.items()}
        ordered = [*by_key, *(key for key in keys if key not in by_key)]
        near = (key for key in ordered if rest.casefold() in key.casefold())
        return [(key, f"number {by_key[key]}" if key in by_key else "") for key in near]
    if takes == "section":
        kinds = api.run_options.SECTIONS.items()
        return [(kind, spec.purpose) for kind, spec in kinds if kind.startswith(rest.casefold())]
    files = sorted(glob(f"{escape(rest)}*")) if takes == "file" else []  # noqa: PTH207  # of any folder, as typed
    return [(f"{file}/" if Path(file).is_dir() else file, "") for file in files]
