"""Parses a line of the shell: a command with its argument, or a question in plain words."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass, field
from typing import Final, Literal

CommandName = Literal[
    "research",
    "ask",
    "improve",
    "resume",
    "find",
    "sem-search",
    "list",
    "summary",
    "open",
    "save",
    "section",
    "rebuild-index",
    "help",
    "quit",
]
Takes = Literal["nothing", "text", "paper", "file", "section"]


@dataclass(frozen=True, slots=True)
class CommandWord:
    """A command as `help` shows it; `takes` is the kind of its argument."""

    name: CommandName
    argument: str
    purpose: str
    takes: Takes


@dataclass(frozen=True, slots=True)
class ShellRequest:
    """A command to run; `ask` is a follow-up question; `plain` if the line named no command."""

    command: CommandName
    argument: str = ""
    plain: bool = field(default=False, compare=False)

    @property
    def line(self) -> str:
        """The request as it could be typed."""
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
    CommandWord("help", "", "this list", "nothing"),
    CommandWord("quit", "", "leave; Ctrl-D does the same", "nothing"),
)
_BY_NAME: Final = {word.name: word for word in WORDS}
_ALIASES: Final[dict[str, CommandName]] = {"exit": "quit", "?": "help", "h": "help", "q": "quit"}
_NEAR: Final = 0.75  # of difflib: one wrong letter in four, two in eight
_LATIN = re.compile(r"[\x00-\x7f]+")


def parse(line: str) -> ShellRequest | NotUnderstood | None:
    """Parse a line; None for an empty one.

    A first word that is a command counts as one unless the rest cannot be its argument: "list the assumptions
    of LASSO" and "open questions in drug repurposing?" are questions.
    """
    text = " ".join(line.split())
    if not text:
        return None
    slash = text.startswith("/") and len(text) > 1
    first, _, argument = text.removeprefix("/").partition(" ") if slash else text.partition(" ")
    name = _find_command(first)
    if name is not None and (slash or _fits(name, argument)):
        return _check(name, argument)
    if name is None and (slash or _looks_mistyped(first, argument)):
        return NotUnderstood(_describe_unknown(first, argument))
    return ShellRequest("ask", text, plain=True)


def _find_command(first: str) -> CommandName | None:
    known: dict[str, CommandName] = {**_ALIASES, **{word.name: word.name for word in WORDS}}
    return known.get(first.casefold())


def _fits(name: CommandName, argument: str) -> bool:
    """Whether the command can take `argument`; with a wrong word count, the line is a question."""
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


def _check(name: CommandName, argument: str) -> ShellRequest | NotUnderstood:
    word = _BY_NAME[name]
    if word.takes == "nothing" and argument:
        return NotUnderstood(f"'{name}' takes no argument.")
    if word.takes in ("text", "paper", "section") and not argument:
        return NotUnderstood(f"'{name}' needs an argument: {name} {word.argument}.")
    return ShellRequest(name, argument)


def _looks_mistyped(first: str, argument: str) -> bool:
    """Whether a line without a command was meant as one: a single word or a misspelling.

    A near miss is a question if it ends in a question mark or the command cannot take its other words.
    """
    if not argument:
        return not first.endswith("?") and _LATIN.fullmatch(first) is not None
    near = _near(first)
    return near is not None and not argument.endswith("?") and _fits(near, argument) and not _is_inflected(first, near)


def _is_inflected(first: str, name: str) -> bool:
    """Whether the word is an inflected command: "researchers", "finding", "lists" may start a sentence."""
    return first.casefold().startswith(name)


def _near(first: str) -> CommandName | None:
    lowered = first.casefold()
    found = difflib.get_close_matches(lowered, [word.name for word in WORDS], n=1, cutoff=_NEAR)
    begun = [word.name for word in WORDS if len(lowered) > 2 and word.name.startswith(lowered)]
    return next((word.name for word in WORDS if word.name in (found or begun)), None)


def _describe_unknown(first: str, argument: str) -> str:
    near = _near(first)
    hint = f"Did you mean '{f'{near} {argument}'.strip()}'?" if near else "'help' lists the commands."
    question = " To ask it as a question, begin with 'ask'." if argument or near is None else ""
    return f"Unknown command '{first}'. {hint}{question}"
