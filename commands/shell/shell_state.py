"""The shell's state machine: what it remembers between lines, and how outcomes change it.

    initial --list, find--> listed          (numbers)
    initial --sem-search--> sem-search      (numbers, a draft to save)
    initial --section-----> section         (numbers, a draft to save)
    initial --research----> research        (numbers, a draft to save and to improve)

These transitions apply in every state, except that `list` and `find` keep an existing draft and only assign new
numbers. A command that finds nothing, fails or is paused changes nothing, so that the last real result can still be
saved, improved and opened. `summary` and `open` select a paper and change nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from ...errors import InputError
from .parser import CommandName

StateName = Literal["initial", "listed", "sem-search", "research", "section"]
DraftKind = Literal["sem-search", "research", "section"]


class NotNowError(InputError):
    """The command is not possible in the current state, which stays unchanged."""


@dataclass(frozen=True, slots=True)
class Listed:
    """A paper of the last list and its number there."""

    number: int
    key: str


@dataclass(frozen=True, slots=True)
class ShellDraft:
    """Content for `save`: markdown, and the full record of an answer or section."""

    kind: DraftKind
    markdown: str
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShellState:
    """The state variables; `paused` is the line that resumes interrupted work."""

    last_query_set: tuple[Listed, ...] = ()
    selected_paper: str | None = None
    draft: ShellDraft | None = None
    original_query: str = ""
    paused: str = ""

    @property
    def name(self) -> StateName:
        """The state's name, from its variables."""
        if self.draft is not None:
            return self.draft.kind
        return "listed" if self.last_query_set else "initial"


@dataclass(frozen=True, slots=True)
class PapersListed:
    """`list` or `find` showed papers."""

    papers: tuple[Listed, ...]
    query: str = ""


@dataclass(frozen=True, slots=True)
class Drafted:
    """`sem-search`, `research`, `section`, `improve` or a follow-up question gave a result to save."""

    papers: tuple[Listed, ...]
    draft: ShellDraft
    query: str


@dataclass(frozen=True, slots=True)
class Selected:
    """`summary` or `open` showed a paper."""

    key: str


@dataclass(frozen=True, slots=True)
class PausedCommand:
    """The work was interrupted and saved; `line` resumes it."""

    line: str


@dataclass(frozen=True, slots=True)
class FoundNothing:
    """The command ran without a result; the last result stays current."""


@dataclass(frozen=True, slots=True)
class Unchanged:
    """The command only prints a message."""


Outcome = PapersListed | Drafted | Selected | PausedCommand | FoundNothing | Unchanged

INITIAL: Final = ShellState()


def after(state: ShellState, outcome: Outcome) -> ShellState:
    """Return the next state. A new result ends a pause; commands that only show papers do not."""
    match outcome:
        case PapersListed(papers, query):
            return replace(
                state,
                last_query_set=papers,
                selected_paper=None,
                original_query=query if state.draft is None else state.original_query,
            )
        case Drafted(papers, draft, query):
            return ShellState(papers, draft=draft, original_query=query)
        case Selected(key):
            return replace(state, selected_paper=key)
        case PausedCommand(line):
            return replace(state, paused=line)
        case FoundNothing():
            return replace(state, paused="")
        case Unchanged():
            return state


def require(state: ShellState, command: CommandName) -> None:
    """Raise `NotNowError` if the command cannot run in this state."""
    if command == "improve" and state.name != "research":
        raise NotNowError("There is no answer to improve.", help="Ask with 'research QUESTION' first.")
    if command == "save" and state.draft is None:
        raise NotNowError(
            "There is nothing to save.", help="'research', 'sem-search' and 'section' give something that can be saved."
        )
    if command == "resume" and not state.paused:
        raise NotNowError("Nothing is paused.", help="'resume' continues an answer that Ctrl-C interrupted.")


def chosen(state: ShellState, argument: str, keys: Sequence[str]) -> str:
    """Resolve a number of the last list, or a key, to a key.

    `keys` are the library's. If a list was shown, a numeric key means the list number. Raises `NotNowError`.
    """
    if argument.isascii() and argument.isdigit():
        by_number = {paper.number: paper.key for paper in state.last_query_set}
        if int(argument) in by_number:
            return by_number[int(argument)]
        if argument not in keys:
            raise NotNowError(*_no_such_number(int(argument), sorted(by_number)))
    return argument


def _no_such_number(number: int, numbers: Sequence[int]) -> tuple[str]:
    if not numbers:
        return (f"There is no list that {number} could refer to; 'list', 'find' and 'research' show one.",)
    if list(numbers) == list(range(numbers[0], numbers[-1] + 1)):
        return (f"The last list has no number {number}; it goes from {numbers[0]} to {numbers[-1]}.",)
    return (f"The last list has no number {number}; it has {', '.join(map(str, numbers))}.",)
