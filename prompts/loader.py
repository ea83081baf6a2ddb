"""Prompts as files: read once, checked whole, filled in a single pass.

A prompt is `<name>.md`: a YAML head between two lines `---` with `variables` (a list of names) and, if
wished, a `description`; then the body, in which `{{name}}` stands for a variable. Values are put in by one
pass over the body, so that braces inside a paper's text are never read as a template. No caller may rely on
the wording: a user's folder can replace any file, as long as it takes the same variables.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from ..errors import WRONG_INPUT, CiteloomError, ExitCode

SHIPPED_FOLDER = Path(__file__).resolve().parent

PROMPT_NAMES: tuple[str, ...] = tuple(sorted(path.stem for path in SHIPPED_FOLDER.glob("*.md")))

_VARIABLE = re.compile(r"\{\{[ \t]*([a-z][a-z0-9_]*)[ \t]*\}\}")
_HEAD = re.compile(r"\A---[ \t]*\n(?P<head>.*?)^---[ \t]*$\n?", re.DOTALL | re.MULTILINE)
_HEAD_FIELDS = frozenset({"description", "variables"})


class PromptError(CiteloomError):
    """A prompt file is missing or malformed, or was filled with other variables than it declares."""

    default_help = "Reinstall citeloom: its prompt files are not those it was shipped with."


class PromptOverrideError(PromptError):
    """A file in the user's own prompt folder cannot be used; nothing was changed."""

    exit_code: ClassVar[ExitCode] = WRONG_INPUT
    default_help = "Correct or remove the file; the shipped prompts of the same names show what is expected."


@dataclass(frozen=True, slots=True)
class Prompt:
    """A checked template; `body` mentions each of `variables` and no other."""

    name: str
    variables: frozenset[str]
    body: str
    description: str = ""

    def render(self, **values: str | int) -> str:
        """The body with its variables filled in; `PromptError` names all that are missing or unknown.

        A value of several lines stands on lines of its own wherever the body mentions it, since a fence that
        opens or closes in the middle of a line is none.
        """
        missing = sorted(self.variables - values.keys())
        unknown = sorted(values.keys() - self.variables)
        faults = {"missing": missing, "unknown": unknown}
        wrong = [f"{fault} {', '.join(names)}" for fault, names in faults.items() if names]
        if wrong:
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
    """Read and check `<folder>/<name>.md`; raises `error`, naming the file and every variable at fault."""
    path = folder / f"{name}.md"
    try:
        raw = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise error(f"Prompt {path}: no such file.") from None
    except (OSError, UnicodeDecodeError) as problem:
        raise error(f"Prompt {path}: cannot be read as UTF-8 text ({problem}).") from problem
    match = _HEAD.match(raw)
    if match is None:
        raise error(f"Prompt {path}: expected a head between two lines '---' that declares variables.")
    import yaml  # most commands read no prompt

    try:
        head = _read_yaml(match["head"])
    except (yaml.YAMLError, ValueError, RecursionError) as problem:  # a number of 5,000 digits, lists 1,000 deep
        raise error(f"Prompt {path}: the head is not YAML ({' '.join(str(problem).split())}).") from problem
    try:
        variables, description = _declared(head)
        body = raw[match.end() :].strip()
        _check_body(body, variables)
    except ValueError as problem:
        raise error(f"Prompt {path}: {problem}.") from problem
    return Prompt(name=name, variables=variables, body=body, description=description)


@lru_cache(256)  # a server reads the same forty heads for each request
def _read_yaml(text: str) -> Any:
    import yaml

    return yaml.safe_load(text)


def _declared(head: Any) -> tuple[frozenset[str], str]:
    if not isinstance(head, dict) or "variables" not in head:
        raise ValueError("the head must declare variables, as in 'variables: [query]'")
    if unknown := sorted(str(field) for field in head.keys() - _HEAD_FIELDS):
        raise ValueError(f"the head has the unknown field {', '.join(unknown)}")
    names, description = head["variables"], head.get("description", "")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("variables must be a list of names")
    if not isinstance(description, str):
        raise ValueError("description must be text")
    if malformed := [name for name in names if not _VARIABLE.fullmatch(f"{{{{{name}}}}}")]:
        raise ValueError(f"a variable is written in small letters, digits and _: {', '.join(malformed)}")
    return frozenset(names), description


def _check_body(body: str, declared: frozenset[str]) -> None:
    if not body:
        raise ValueError("there is no text under the head")
    used = frozenset(_VARIABLE.findall(body))
    problems = [f"{{{{{name}}}}} is used but not declared" for name in sorted(used - declared)]
    problems += [f"{name} is declared but not used" for name in sorted(declared - used)]
    rest = _VARIABLE.sub("", body)
    if "{{" in rest or "}}" in rest:
        problems.append("double braces that are not a variable (put a space between them)")
    if problems:
        raise ValueError("; ".join(problems))


class PromptLibrary(Mapping[str, Prompt]):
    """All prompts by name; a shipped one is read when it is first used, the user's own are checked at once.

    Args:
        folder: the user's own prompts; each file there replaces the shipped one of the same name and must
            take the same variables. A name that is not a prompt's is an error: it is most likely misspelt.

    Raises:
        PromptError: from a look-up, if a shipped file is missing or malformed.
        PromptOverrideError: a file in `folder` cannot be used; names the file.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._prompts: dict[str, Prompt] = {}
        if folder is not None:
            self._prompts |= _overrides(folder, self)

    def __getitem__(self, name: str) -> Prompt:
        if name not in self._prompts:
            if name not in PROMPT_NAMES:
                raise KeyError(name)
            self._prompts[name] = load_prompt(name)
        return self._prompts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(PROMPT_NAMES)

    def __len__(self) -> int:
        return len(PROMPT_NAMES)

    def fingerprint(self) -> str:
        """A sha256 over all bodies: it changes when a run with these prompts may give another text.

        Descriptions of figures are part of the library, whose version changes with them.
        """
        used = sorted(item for item in self.items() if not item[0].startswith("describer_"))
        bodies = "\0".join(f"{name}\0{prompt.body}" for name, prompt in used)
        return hashlib.sha256(bodies.encode("utf-8")).hexdigest()


def _overrides(folder: Path, shipped: Mapping[str, Prompt]) -> dict[str, Prompt]:
    if not folder.is_dir():
        raise PromptOverrideError(f"Prompt folder {folder}: no such folder.", help="Give a folder of .md files.")
    found: dict[str, Prompt] = {}
    for path in sorted(folder.glob("*.md")):
        if path.stem not in shipped:
            raise PromptOverrideError(
                f"Prompt {path}: no prompt has that name.",
                help=f"The names are {', '.join(sorted(shipped))}.",
            )
        prompt = load_prompt(path.stem, folder, error=PromptOverrideError)
        expected = shipped[path.stem].variables
        if prompt.variables != expected:
            raise PromptOverrideError(
                f"Prompt {path}: declares {_listed(prompt.variables)}, expected {_listed(expected)}."
            )
        found[path.stem] = prompt
    return found


def _listed(names: frozenset[str]) -> str:
    return ", ".join(sorted(names)) or "no variables"
