"""The messages and remedies of all errors, and the reasons of refusals, read from the code: one table, not asserts.

`python -m tests.support.error_messages` renews `docs/error-messages.md`; a test says when it has to be.
"""

from __future__ import annotations

import ast
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
PAGE: Final = ROOT / "docs" / "error-messages.md"
_OUTSIDE: Final = frozenset({"tests", "bench", "examples", "docs", ".venv", ".typecheck", "build"})
# Their messages complete a line such as "paper.pdf: is empty."; that of `Refusal` is its second argument.
REASONS: Final = (
    "FileRefusedError",
    "PandocError",
    "Refusal",
    "SandboxError",
    "_EntryRefusedError",
)
INTRODUCTION: Final = """# Error messages

What each error says, and the remedy that it names; `{}` stands for a value. `python -m tests.support.error_messages`
makes this page from the code. Tests elsewhere ask for the class of an error and the values that it must name, not for
its words.
"""


@dataclass(frozen=True, slots=True)
class Raised:
    """One place that makes an error: its class, message and remedy, with `{}` for values."""

    error: str
    message: str
    remedy: str
    place: str


@cache
def _product() -> list[tuple[str, ast.Module]]:
    """The path and the syntax of each file of the product."""
    rooms = [path for path in ROOT.iterdir() if path.name not in _OUTSIDE]
    paths = sorted(
        path.relative_to(ROOT) for room in rooms for path in (*room.glob("**/*.py"), room) if path.suffix == ".py"
    )
    return [(str(path), ast.parse((ROOT / path).read_text("utf-8"))) for path in paths]


@cache
def _calls() -> list[tuple[str, ast.Call, ast.AST, ast.Module]]:
    """The calls of names in the product: the path, the call, the innermost function around it, and the file."""
    found: list[tuple[str, ast.Call, ast.AST, ast.Module]] = []
    for path, tree in _product():
        waiting: deque[tuple[ast.AST, ast.AST]] = deque([(tree, tree)])
        while waiting:
            node, scope = waiting.popleft()
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                found.append((path, node, scope, tree))
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                scope = node
            waiting.extend((child, scope) for child in ast.iter_child_nodes(node))
    return found


def _derived(product: list[tuple[str, ast.Module]], roots: Sequence[str]) -> dict[str, ast.ClassDef]:
    """All classes of the product that are or derive from `roots`, by name."""
    found = [node for _, tree in product for node in tree.body if isinstance(node, ast.ClassDef)]
    known: dict[str, ast.ClassDef] = {}
    while more := [
        node
        for node in found
        if node.name not in known
        and (node.name in roots or {getattr(base, "id", "") for base in node.bases} & known.keys())
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


@cache
def _assigned(scope: ast.AST) -> list[tuple[int, str, ast.AST | None]]:
    """The values assigned to names in a scope, in order of their lines."""
    found = [
        (node.lineno, getattr(target, "id", ""), node.value)
        for node in ast.walk(scope)
        if isinstance(node, ast.Assign | ast.AnnAssign)
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
    ]
    return sorted(found, key=lambda item: item[0])


@cache
def raised_errors() -> tuple[Raised, ...]:
    """Every place that makes an error with a message."""
    return tuple(_made(("CiteloomError",)))


@cache
def reasons() -> tuple[Raised, ...]:
    """Every place that gives a reason for refusing a file, an entry or a style."""
    return tuple(_made(REASONS))


def _made(roots: Sequence[str]) -> Iterator[Raised]:
    classes = _derived(_product(), roots)
    for path, node, function, tree in _calls():
        name, line, scopes = node.func.id, node.lineno, (function, tree)  # type: ignore[attr-defined]
        if name in classes and node.args:
            helps = [word.value for word in node.keywords if word.arg == "help"]
            remedy = _template(helps[0], *scopes, before=line) if helps else _default_help(classes, name)
            message = _template(node.args[-1 if name == "Refusal" else 0], *scopes, before=line)
            yield Raised(name, message, remedy, f"{path}:{line}")


def _default_help(classes: dict[str, ast.ClassDef], name: str) -> str:
    """The remedy of a class, or of the first of its bases that has one."""
    own = [value for _, target, value in _assigned(classes[name]) if target == "default_help"]
    if own:
        return _template(own[0])
    bases = [base.id for base in classes[name].bases if isinstance(base, ast.Name) and base.id in classes]
    return _default_help(classes, bases[0]) if bases else ""


def table() -> str:
    """The page: for each class its messages and remedies, and last the reasons."""
    lines = [
        INTRODUCTION,
        *_sections(raised_errors(), "##"),
    ]
    from citeloom.models.http.failures import _MESSAGES, _REMEDIES  # by the kind of failure

    rows = [f"- {_MESSAGES[kind]}{f' *{_REMEDIES[kind]}*' if kind in _REMEDIES else ''}" for kind in _MESSAGES]
    lines.append("## Failed calls of models\n\n" + "\n".join(rows) + "\n")
    lines.append('## Reasons\n\nThey complete a line such as "paper.pdf: is empty.".\n')
    return "\n".join([*lines, *_sections(reasons(), "###")])


def _sections(raised: Sequence[Raised], level: str) -> Iterator[str]:
    by_class: dict[str, list[Raised]] = defaultdict(list)
    for item in raised:
        by_class[item.error].append(item)
    for name in sorted(by_class):
        rows = dict.fromkeys(f"- {item.message}{f' *{item.remedy}*' if item.remedy else ''}" for item in by_class[name])
        known = [" ".join(row.split()) for row in rows if row != "- {}"]
        if known:
            yield f"{level} {name}\n\n" + "\n".join(known) + "\n"


if __name__ == "__main__":
    PAGE.write_text(table(), "utf-8")
