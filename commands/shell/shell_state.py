"""The shell's output, its library (opened in the background), and its states; each command returns the next state.

    initial --list, find--> listed          (numbers)
    initial --sem-search--> sem-search      (numbers, a draft to save)
    initial --section-----> section         (numbers, a draft to save)
    initial --research----> research        (numbers, a draft to save and to improve)

These transitions apply in every state, except that `list` and `find` keep an existing draft and only assign new
numbers. A command that finds nothing, fails or is paused changes nothing, so that the last result can still be saved,
improved and opened. A new result ends a pause; commands that only show papers do not.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from ...api.homes import Home, chunk_counts, open_home
from ...errors import CiteloomError, InputError
from ...settings.config import LOCAL_EMBEDDING, Settings
from ..output import notice, result
from ..run_display import show_markdown

if TYPE_CHECKING:
    from ...api.homes import Session

StateName = Literal["initial", "listed", "sem-search", "research", "section"]
DraftKind = Literal["sem-search", "research", "section"]


class NotNowError(InputError):
    """The command is not possible in the current state, which stays unchanged."""


@dataclass(frozen=True, slots=True)
class ShellDraft:
    """Content for `save`: markdown, and the full record of an answer or section."""

    kind: DraftKind
    markdown: str
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShellState:
    """The shell's state: keys of the last list by number, a draft with its query, and the line that resumes work."""

    last_query_set: Mapping[int, str] = field(default_factory=dict)
    draft: ShellDraft | None = None
    original_query: str = ""
    paused: str = ""

    @property
    def name(self) -> StateName:
        if self.draft is not None:
            return self.draft.kind
        return "listed" if self.last_query_set else "initial"

    def listed(self, papers: Mapping[int, str], query: str = "") -> ShellState:
        query = query if self.draft is None else self.original_query
        return replace(self, last_query_set=papers, original_query=query)

    def without_result(self) -> ShellState:
        """Return the state after a command that found nothing: the last result stays current, a pause ends."""
        return replace(self, paused="")

    def paused_at(self, line: str) -> ShellState:
        return replace(self, paused=line)


INITIAL: Final = ShellState()


def require(state: ShellState, command: str) -> None:
    """Raise `NotNowError` if the command cannot run in this state."""
    if command == "improve" and state.name != "research":
        raise NotNowError("There is no answer to improve.", help="Ask with 'research QUESTION' first.")
    if command == "save" and state.draft is None:
        help = "The results of 'research', 'sem-search' and 'section' can be saved."
        raise NotNowError("There is nothing to save.", help=help)
    if command == "resume" and not state.paused:
        raise NotNowError("Nothing is paused.", help="'resume' continues an answer that Ctrl-C interrupted.")


def resolve_key(state: ShellState, argument: str, keys: Sequence[str]) -> str:
    """Resolve a number of the last list, or a key, to a key.

    `keys` are the library's keys. A numeric argument means the list number first. Raises `NotNowError`.
    """
    if argument.isascii() and argument.isdigit():
        number, numbers = int(argument), sorted(state.last_query_set)
        if number in state.last_query_set:
            return state.last_query_set[number]
        if argument not in keys:
            raise NotNowError(
                f"There is no list that {number} could refer to; 'list', 'find' and 'research' show one."
                if not numbers
                else f"The last list has no number {number}; it goes from {numbers[0]} to {numbers[-1]}."
                if numbers == list(range(numbers[0], numbers[-1] + 1))
                else f"The last list has no number {number}; it has {', '.join(map(str, numbers))}."
            )
    return argument


NO_PAPERS = "Index your papers first: {citeloom} ingest PAPERS --bib FILE."


class NoPapersError(InputError):
    default_help = NO_PAPERS


class Opening:
    """The session, opened once in the background; after a failure the next command tries again.

    Errors raised while nobody awaits the session are printed.
    """

    def __init__(self, settings: Settings, home: Home) -> None:
        self._settings, self._home, self._stack = settings, home, ExitStack()
        self._task: asyncio.Task[Session] | None = None
        self._waiting = 0

    def start(self) -> None:
        self._task = asyncio.ensure_future(asyncio.to_thread(self._open))
        self._task.add_done_callback(self._tell)

    async def session(self) -> Session:
        """The open session; raises `NoPapersError` and opening errors."""
        if not await asyncio.to_thread(chunk_counts, self._home):
            raise NoPapersError(f"{self._home.name}: no paper is indexed here.")
        if self._task is None or (self._task.done() and (self._task.cancelled() or self._task.exception())):
            self.start()
        assert self._task is not None
        self._waiting += 1
        try:
            # Ctrl-C on a waiting command must not cancel opening.
            return await asyncio.shield(self._task)
        finally:
            self._waiting -= 1

    async def wait(self) -> None:
        """Wait until opening ends; raises its errors."""
        if self._task is not None:
            await asyncio.shield(self._task)

    def opened(self) -> Session | None:
        task = self._task
        ready = task is not None and task.done() and not task.cancelled() and task.exception() is None
        return task.result() if task is not None and ready else None

    def keys(self) -> tuple[str, ...]:
        """Return the library's keys; none while opening."""
        session = self.opened()
        return tuple(session.library.records()) if session is not None else ()

    async def close(self) -> None:
        if self._task is not None:
            await asyncio.wait([self._task])
        await asyncio.to_thread(self._stack.close)

    def _open(self) -> Session:
        session = self._stack.enter_context(open_home(self._settings, self._home, notice, create=False))
        if self._settings.embedding_model == LOCAL_EMBEDDING:
            session.library.embedding.count_tokens("ready")  # loads the tokenizer, so the first search need not wait
        return session

    def _tell(self, task: asyncio.Task[Session]) -> None:
        if task.cancelled():
            return
        error = task.exception()
        if isinstance(error, CiteloomError) and not self._waiting:
            failure(str(error))


@dataclass
class Shell:
    """A shell session: its library, its state, and the experiment for sections.

    `thread_id` is the id of its conversation, `turns` counts its finished turns; `behind` is background work.
    """

    opening: Opening
    thread_id: str
    experiment: Path | None = None
    state: ShellState = INITIAL
    turns: int = 0
    told_of_mode: bool = False
    behind: asyncio.Task[None] | None = None

    async def session(self) -> Session:
        if self.opening.opened() is None:
            notice("Opening the library...")
        return await self.opening.session()


_SIGNS = {"🔍": "", "📚": "", "✍️ ": "", "❌": "Error:", "⚠️ ": "Note:", "💾": "", "✅": "", "💡": "", "⏸️ ": "", "📝": ""}


def sign(emoji: str) -> str:
    """Return the emoji if the output can show it, else its text form, followed by a space."""
    encoding = (sys.stdout.encoding or "").lower().replace("-", "")
    mark = emoji if encoding.startswith("utf") else _SIGNS[emoji]
    return f"{mark} " if mark else ""


def stage(emoji: str, text: str) -> None:
    notice(f"{sign(emoji)}{text}")


failure, warning = partial(stage, "❌"), partial(stage, "⚠️ ")


def panel(title: str, markdown: str) -> None:
    """Print a result: framed markdown on a terminal, plain elsewhere."""
    show_markdown(f"{markdown.strip()}\n", title=f"{sign('📝')}{title}")


def next_steps(steps: Sequence[str]) -> None:
    if sys.stdout.isatty():
        result("\n".join([f"{sign('💡')}Next steps:", *(f"• {step}" for step in steps)]))
