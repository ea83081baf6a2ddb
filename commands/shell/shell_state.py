"""The shell's state machine: what it remembers between lines; each command returns the next state.

    initial --list, find--> listed          (numbers)
    initial --sem-search--> sem-search      (numbers, a draft to save)
    initial --section-----> section         (numbers, a draft to save)
    initial --research----> research        (numbers, a draft to save and to improve)

These transitions apply in every state, except that `list` and `find` keep an existing draft and only assign new
numbers. A command that finds nothing, fails or is paused changes nothing, so that the last real result can still be
saved, improved and opened. A new result ends a pause; commands that only show papers do not.
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
class ShellDraft:
    """Content for `save`: markdown, and the full record of an answer or section."""

    kind: DraftKind
    markdown: str
    record: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ShellState:
    """The state variables: the keys of the last list by number, a draft, and the line that resumes interrupted work."""

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
        """After a command that found nothing: the last result stays current, a pause ends."""
        return replace(self, paused="")

    def paused_at(self, line: str) -> ShellState:
        return replace(self, paused=line)


INITIAL: Final = ShellState()


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
