"""The words of LaTeX commands that pandoc does not know and would leave out silently."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from ..text.words import close_gaps, read_rules
from .pandoc import pandoc

_MOST: Final = 2_000
_NESTED: Final = 3  # maximum nesting depth of commands
_SHOWN: Final = 200  # characters
_COMMAND: Final = re.compile(r"\\(?P<name>[A-Za-z]{1,60})\*?\s*(?:\[[^\[\]]*\]\s*)*")
_WORD: Final = re.compile(r"[^\W\d_]{2}|\d")
_FIRST_ARGUMENTS: Final = {"replaced": 1, "deleted": 0}  # of tracked changes, which are taken as accepted
_COMMANDS: Final = {
    kind: frozenset(names.split()) for kind, names in read_rules(__file__, "latex_words")["commands"].items()
}


def with_words_of_commands(latex: str) -> tuple[str, list[str]]:
    """LaTeX with the words of unknown commands in their place, and a line about each that has no place in the text.

    Remarks such as `\\todo{...}` are not part of its text. Blocks; raises `PandocError`.
    """
    preamble, begin, body = latex.rpartition("\\begin{document}")
    notices: dict[str, None] = {}
    for _ in range(_NESTED):
        before = body
        for content in islice(_left_out(f"{preamble}{begin}{body}"), _MOST):
            command = _COMMAND.match(content)
            if command is None or command["name"] in _COMMANDS["without_words"]:
                continue
            name, arguments = command["name"], list(_arguments(content[command.end() :]))
            said = [words for words in arguments if _WORD.search(words) and "=" not in words]
            if name in _COMMANDS["remarks"] and any(words in body for words in said):
                body = body.replace(f" {content}", "")
                notices[f"A remark, not taken over: {close_gaps(' '.join(said))[:_SHOWN]}"] = None
            elif content in body and (said or name in _FIRST_ARGUMENTS):
                kept = said[: _FIRST_ARGUMENTS.get(name, len(said))]
                body = body.replace(content, " ".join(kept))
            elif name not in _COMMANDS["layout"] and (content.strip() in body or any(words in body for words in said)):
                notices[f"A command that is not defined, not taken over: {close_gaps(content)[:_SHOWN]}"] = None
        if body == before:
            break
    return f"{preamble}{begin}{body}", list(notices)


def _left_out(latex: str) -> dict[str, None]:
    """The commands that pandoc leaves out, with their arguments."""
    with TemporaryDirectory(prefix="citeloom-") as folder:
        log = Path(folder) / "log.json"
        pandoc(["--from", "latex", "--to", "plain", f"--log={log}", "text"], {"text": latex})
        messages = json.loads(log.read_text("utf-8"))
    return {message["contents"]: None for message in messages if message["type"] == "SkippedContent"}


def _arguments(braces: str) -> Iterator[str]:
    """The content of each pair of braces."""
    depth, start = 0, 0
    for sign in re.finditer(r"\\.|[{}]", braces, re.DOTALL):
        if sign[0] == "{":
            depth += 1
            start = sign.end() if depth == 1 else start
        elif sign[0] == "}":
            depth -= 1
            if depth == 0:
                yield braces[start : sign.start()]
