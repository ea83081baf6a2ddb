"""Finds every regular expression of the package in its source, with the methods called on it, and times them.

Each call of `re.compile`, `re.sub` and the like is evaluated in the namespace of its module, and so is each name on
which a method of patterns is called. A comment in the call or above it states what the code guarantees of the text:
`# bounded: 300 characters`, or `# always ends with: -->`.
"""

from __future__ import annotations

import ast
import importlib
import re
import signal
import time
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parents[2]
_METHODS: Final = ("search", "match", "fullmatch", "finditer", "findall", "sub", "subn", "split")
_BOUND: Final = re.compile(r"#.*\bbounded: ([\d,]+) characters")
_ENDING: Final = re.compile(r"# always ends with: (\S+)")


@dataclass
class CollectedPattern:
    """A pattern, where it is used, the methods called on it, and what is known of its texts."""

    pattern: re.Pattern[Any]
    places: list[str] = field(default_factory=list)
    methods: set[str] = field(default_factory=set)
    bound: int | None = None
    ending: str = ""

    def seconds(self, text: str, limit: float) -> float:
        """CPU time of the slowest method on a text, and infinity if it exceeds thrice the limit."""
        text = text[: self.bound] + self.ending
        slowest = 0.0
        for method in {_ANCHORED.get(name, "finditer") for name in self.methods} or {"finditer"}:
            slowest = max(slowest, _timed(self.pattern, method, text, limit))
        return slowest

    def is_slow(self, text: str, limit: float) -> bool:
        """Whether each of three attempts takes longer, lest a busy machine decides."""
        return all(self.seconds(text, limit) > limit for _ in range(3))


_ANCHORED: Final = {name: name for name in ("search", "match", "fullmatch")}


class _TooSlowError(BaseException):
    pass


def _stop(*_: object) -> None:
    raise _TooSlowError


def _timed(pattern: re.Pattern[Any], method: str, text: str, limit: float) -> float:
    written = text.encode("utf-8", "replace") if isinstance(pattern.pattern, bytes) else text
    before = signal.signal(signal.SIGVTALRM, _stop)  # regular expressions look for signals now and then
    try:
        begun = time.thread_time()
        signal.setitimer(signal.ITIMER_VIRTUAL, 3 * limit)
        found = getattr(pattern, method)(written)
        for _ in found if method == "finditer" else ():
            pass
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        return time.thread_time() - begun
    except _TooSlowError:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def source_files() -> list[Path]:
    """Every module of the package."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    folders = (ROOT.joinpath(*name.split(".")[1:]) for name in settings["tool"]["setuptools"]["packages"])
    return sorted(path for folder in folders for path in folder.glob("*.py") if path.stem != "__main__")


def import_module(path: Path) -> ModuleType | None:
    """The module of a source file; None where an optional dependency is not installed."""
    name = ".".join(("citeloom", *path.relative_to(ROOT).with_suffix("").parts)).removesuffix(".__init__")
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("citeloom"):
            raise
        return None


def _evaluate(node: ast.expr, names: dict[str, Any]) -> Any:
    """The value of an expression of a module; None if it needs a variable of a function."""
    try:
        return eval(compile(ast.Expression(node), "<pattern>", "eval"), dict(names))
    except Exception:  # noqa: BLE001 - what a variable of a function is, nobody knows here
        return None


def _source(node: ast.expr, names: dict[str, Any]) -> Any:
    """The source of a pattern, in which `x` stands for variables of functions."""
    found = _evaluate(node, names)
    if found is None and isinstance(node, ast.JoinedStr):
        return "".join(str(_source(part, names)) for part in node.values)
    if found is None and isinstance(node, ast.BinOp):
        left, right = _source(node.left, names), _source(node.right, names)
        either = isinstance(left, bytes) or isinstance(right, bytes)
        return (
            b"".join(part.encode() if isinstance(part, str) else part for part in (left, right))
            if either
            else left + right
        )
    return "x" if found is None else found


def _flags(call: ast.Call, names: dict[str, Any]) -> int:
    at = {"compile": 1, "split": 3, "sub": 4, "subn": 4}.get(getattr(call.func, "attr", ""), 2)
    given = [keyword.value for keyword in call.keywords if keyword.arg == "flags"] or call.args[at : at + 1]
    return int(_evaluate(given[0], names) or 0) if given else 0


def _called(tree: ast.AST, names: dict[str, Any]) -> Iterator[tuple[ast.Call, re.Pattern[Any], str]]:
    """Calls of methods of patterns and of functions of `re`, with the pattern."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)):
            continue
        method, value = node.func.attr, node.func.value
        if isinstance(value, ast.Name) and value.id == "re" and method in (*_METHODS, "compile"):
            source = _source(node.args[0], names)
            yield node, source if isinstance(source, re.Pattern) else re.compile(source, _flags(node, names)), method
        elif method in _METHODS and isinstance(value, ast.Name | ast.Attribute | ast.Subscript):
            found = _evaluate(value, names)
            if isinstance(found, re.Pattern):
                yield node, found, method


def _held(value: object, depth: int = 3) -> Iterator[re.Pattern[Any]]:
    """The patterns in a value of a module: itself, in a container or a class."""
    if isinstance(value, re.Pattern):
        yield value
    elif depth and isinstance(value, dict):
        for item in (*value.keys(), *value.values()):
            yield from _held(item, depth - 1)
    elif depth and isinstance(value, tuple | list | set | frozenset):
        for item in value:
            yield from _held(item, depth - 1)
    elif depth and isinstance(value, type) and value.__module__.startswith("citeloom"):
        yield from _held(dict(vars(value)), depth - 1)


def collect_patterns() -> list[CollectedPattern]:
    """All patterns of the package."""
    found: dict[re.Pattern[Any], CollectedPattern] = {}
    held: dict[re.Pattern[Any], str] = {}
    for path in source_files():
        module = import_module(path)
        if module is None:
            continue
        source = path.read_text(encoding="utf-8")
        lines, shown = source.splitlines(), path.relative_to(ROOT).as_posix()
        for call, pattern, method in _called(ast.parse(source), vars(module)):
            entry = found.setdefault(pattern, CollectedPattern(pattern))
            entry.places.append(f"{shown}:{call.lineno}")
            entry.methods |= {method} - {"compile"}
            above = max(call.lineno - 2, 0)
            comments = "\n".join(lines[above if lines[above].lstrip().startswith("#") else above + 1 : call.end_lineno])
            if bound := _BOUND.search(comments):
                entry.bound = int(bound[1].replace(",", ""))
            if ending := _ENDING.search(comments):
                entry.ending = ending[1]
        held |= {pattern: shown for value in vars(module).values() for pattern in _held(value)}
    for pattern, place in held.items():
        found.setdefault(pattern, CollectedPattern(pattern, [place]))
    return list(found.values())
