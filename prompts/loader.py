"""Prompts as files: read once, checked whole, filled in a single pass.

A prompt is `<name>.md`: a text in which `{{name}}` stands for a variable, if wished under a head between two lines
`---`, which is for people. Values are put in by one pass over the text, so that braces inside a paper's text are never
read as a template. No caller may rely on the wording: a user's folder can replace any file, as long as it takes the
same variables.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from ..errors import WRONG_INPUT, CiteloomError, ExitCode

SHIPPED_FOLDER = Path(__file__).resolve().parent

PROMPT_NAMES: tuple[str, ...] = tuple(sorted(path.stem for path in SHIPPED_FOLDER.glob("*.md")))

_VARIABLE = re.compile(r"\{\{[ \t]*([a-z][a-z0-9_]*)[ \t]*\}\}")
_HEAD = re.compile(r"\A---[ \t]*\n.*?^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)


class PromptError(CiteloomError):
    """A prompt file is missing or malformed, or was filled with other variables than it has."""

    default_help = "Reinstall citeloom: its prompt files are not those it was shipped with."


class PromptOverrideError(PromptError):
    """A file in the user's own prompt folder cannot be used; nothing was changed."""

    exit_code: ClassVar[ExitCode] = WRONG_INPUT
    default_help = "Correct or remove the file; the shipped prompts of the same names show what is expected."


@dataclass(frozen=True, slots=True)
class Prompt:
    """A checked template."""

    name: str
    body: str

    @property
    def variables(self) -> frozenset[str]:
        return frozenset(_VARIABLE.findall(self.body))

    def render(self, **values: str | int) -> str:
        """The body with its variables filled in; `PromptError` names all that are missing or unknown.

        A value of several lines stands on lines of its own wherever the body mentions it, since a fence that
        opens or closes in the middle of a line is none.
        """
        faults = {"missing": self.variables - values.keys(), "unknown": values.keys() - self.variables}
        if wrong := [f"{fault} {', '.join(sorted(names))}" for fault, names in faults.items() if names]:
            raise PromptError(
                f"Prompt {self.name}: {'; '.join(wrong)}.",
                help=f"It takes {', '.join(sorted(self.variables)) or 'no variables'}.",
            )
        return _VARIABLE.sub(lambda match: _on_own_lines(match, str(values[match[1]])), self.body)


def _on_own_lines(match: re.Match[str], value: str) -> str:
    if "\n" not in value:
        return value
    before, after = match.string[: match.start()], match.string[match.end() :]
    opening = "" if not before or before.endswith("\n") else "\n"
    closing = "" if not after or after.startswith("\n") else "\n"
    return f"{opening}{value}{closing}"


def load_prompt(name: str, folder: Path = SHIPPED_FOLDER, *, error: type[PromptError] = PromptError) -> Prompt:
    """Read and check `<folder>/<name>.md`; raises `error`, naming the file."""
    path = folder / f"{name}.md"
    try:
        raw = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise error(f"Prompt {path}: no such file.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"Prompt {path}: cannot be read as UTF-8 text ({problem}).") from problem
    body = _HEAD.sub("", raw, count=1).strip()
    rest = _VARIABLE.sub("", body)
    if not body or "{{" in rest or "}}" in rest:
        wrong = "double braces that are not a variable (put a space between them)" if body else "there is no text"
        raise error(f"Prompt {path}: {wrong}.")
    return Prompt(name, body)


class PromptLibrary(dict[str, Prompt]):
    """The prompts by name; a shipped one is read when it is first looked up, the user's own are checked at once.

    Args:
        folder: the user's own prompts; each file there replaces the shipped one of the same name and must
            take the same variables. A name that is not a prompt's is an error: it is most likely misspelt.

    Raises:
        PromptError: from a look-up, if a shipped file is missing or malformed.
        PromptOverrideError: a file in `folder` cannot be used; names the file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        super().__init__()
        if folder is not None and not folder.is_dir():
            raise PromptOverrideError(f"Prompt folder {folder}: no such folder.", help="Give a folder of .md files.")
        for path in sorted(folder.glob("*.md")) if folder is not None else ():
            if path.stem not in PROMPT_NAMES:
                names = f"The names are {', '.join(PROMPT_NAMES)}."
                raise PromptOverrideError(f"Prompt {path}: no prompt has that name.", help=names)
            both = load_prompt(path.stem, path.parent, error=PromptOverrideError), self[path.stem]
            own, expected = (", ".join(sorted(prompt.variables)) or "no variables" for prompt in both)
            if own != expected:
                raise PromptOverrideError(f"Prompt {path}: has {own}, expected {expected}.")
            self[path.stem] = both[0]

    def __missing__(self, name: str) -> Prompt:
        if name not in PROMPT_NAMES:
            raise KeyError(name)
        return self.setdefault(name, load_prompt(name))

    def fingerprint(self) -> str:
        """A sha256 over all bodies: it changes when a run with these prompts may give another text.

        Descriptions of figures are part of the library, whose version changes with them.
        """
        used = [name for name in PROMPT_NAMES if not name.startswith("describer_")]
        bodies = "\0".join(f"{name}\0{self[name].body}" for name in used)
        return hashlib.sha256(bodies.encode("utf-8")).hexdigest()
