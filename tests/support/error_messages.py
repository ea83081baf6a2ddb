"""The messages and remedies of all errors that some rooms raise, read from their code: one table in place of asserts.

`python -m tests.support.error_messages` renews `docs/error-messages.md`; a test says when it has to be.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "error-messages.md"
ROOMS: Final = ("experiment.py", "graph", "metadata", "models", "runs", "settings", "zotero")
INTRODUCTION: Final = """# Error messages

What each error says, and the remedy that it names; `{}` stands for a value. `python -m tests.support.error_messages`
makes this page from the code of {rooms}. Tests elsewhere ask for the class
of an error and the values that it must name, not for its words.
"""


@dataclass(frozen=True, slots=True)
class Raised:
    """One place that makes an error: its class, message and remedy, with `{}` for values."""

    error: str
    message: str
    remedy: str
    place: str


def _classes() -> dict[str, ast.ClassDef]:
    """All classes of the product that derive from `CiteloomError`, by name."""
    found = [
        node
        for path in ROOT.glob("**/*.py")
        if path.relative_to(ROOT).parts[0] not in ("tests", "bench", "examples", "docs", ".venv", ".typecheck", "build")
        for node in ast.parse(path.read_text("utf-8")).body
        if isinstance(node, ast.ClassDef)
    ]
    known: dict[str, ast.ClassDef] = {}
    while more := [
        node
        for node in found
        if node.name not in known
        and (node.name == "CiteloomError" or {getattr(base, "id", "") for base in node.bases} & known.keys())
    ]:
        known |= {node.name: node for node in more}
    return known


def _template(node: ast.AST | None, *scopes: ast.AST, before: int = 10**9) -> str:
    """The text of an expression, with `{}` for what is only known when it runs; names are looked up in the scopes."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_template(part) if isinstance(part, ast.Constant) else "{}" for part in node.values)
    if isinstance(node, ast.Name):
        for scope in scopes:
            values = [value for line, name, value in _assigned(scope) if name == node.id and line < before]
            if values:
                return _template(values[-1], *scopes)
    return "{}"


def _assigned(scope: ast.AST) -> list[tuple[int, str, ast.AST | None]]:
    """The values assigned to names in a scope, in order of their lines."""
    found = [
        (node.lineno, getattr(target, "id", ""), node.value)
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return sorted(found, key=lambda item: item[0])


def raised_errors() -> Iterator[Raised]:
    """Every place in the rooms that makes an error with a message."""
    classes = _classes()
    paths = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) or [ROOT / room]]
    for path in paths:
        tree = ast.parse(path.read_text("utf-8"))
        outer: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                outer |= dict.fromkeys(ast.walk(node), node)
        for node in ast.walk(tree):
            name = getattr(node.func, "id", "") if isinstance(node, ast.Call) else ""
            if isinstance(node, ast.Call) and name in classes and node.args:
                scopes, line = (outer.get(node, tree), tree), node.lineno
                helps = [word.value for word in node.keywords if word.arg == "help"]
                remedy = _template(helps[0], *scopes, before=line) if helps else _default_help(classes, name)
                message = _template(node.args[0], *scopes, before=line)
                yield Raised(name, message, remedy, f"{path.relative_to(ROOT)}:{line}")


def _default_help(classes: dict[str, ast.ClassDef], name: str) -> str:
    """The remedy of a class, or of the first of its bases that has one."""
    own = [value for _, target, value in _assigned(classes[name]) if target == "default_help"]
    if own:
        return _template(own[0])
    bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name) and base.id in classes]
    return _default_help(classes, bases[0]) if bases else ""


def table() -> str:
    """The page: for each class its messages and remedies."""
    by_class: dict[str, list[Raised]] = defaultdict(list)
    for raised in raised_errors():
        by_class[raised.error].append(raised)
    lines = [INTRODUCTION.replace("{rooms}", ", ".join(f"`{room}`" for room in ROOMS))]
    for name in sorted(by_class):
        rows = dict.fromkeys(f"- {item.message}{f' *{item.remedy}*' if item.remedy else ''}" for item in by_class[name])
        lines.append(f"## {name}\n\n" + "\n".join(" ".join(row.split()) for row in rows) + "\n")
    from citeloom.models.http.failures import _MESSAGES, _REMEDIES  # by the kind of failure

    rows = [f"- {_MESSAGES[kind]}{f' *{_REMEDIES[kind]}*' if kind in _REMEDIES else ''}" for kind in _MESSAGES]
    lines.append("## Failed calls of models\n\n" + "\n".join(rows) + "\n")
    return "\n".join(lines)


if __name__ == "__main__":
    PAGE.write_text(table(), "utf-8")
