"""Counts what makes the code harder to read, and fails when the structure gets worse: `make structure`.

Lines, files and helpers are printed only. Import cycles inside a package, repeated names and imports of the faces
(`commands`, `server`) from below `api` fail the check above the figures in `_LIMITS`, which are lowered and never
raised. `--places` names every place.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[1]
_WALK: Final = ROOT / "docs" / "how-a-section-is-made.md"
_OUTSIDE: Final = frozenset({"tests", "bench", "examples", "docs"})
_FACES: Final = frozenset({"commands", "server", "language_server"})
_BELOW_FACES: Final = frozenset({"api", "config", "documents", "errors", "settings"})
_SHORT: Final = 60  # lines
_LIMITS: Final = {
    "cycles of imports inside a package": 0,
    "class names that stand twice": 0,
    "file names that stand twice": 0,
    "imports of the faces from below api": 0,
}


@dataclass(frozen=True, slots=True)
class Module:
    """A file of the product, its syntax tree, and the modules that it imports."""

    path: Path
    tree: ast.Module
    lines: int

    @property
    def name(self) -> str:
        """Its dotted name below the package."""
        parts = self.path.with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

    @property
    def package(self) -> str:
        """The dotted name of the folder that holds it."""
        return ".".join(self.path.parts[:-1])

    def imports(self, known: frozenset[str]) -> Iterator[str]:
        """The modules of the product that it imports, also inside functions and for type checkers only."""
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ImportFrom) and node.level:
                base = self.path.parts[: len(self.path.parts) - node.level]
                module = ".".join((*base, *(node.module or "").split("."))).strip(".")
                for alias in node.names:
                    inner = f"{module}.{alias.name}".strip(".")
                    yield inner if inner in known else module


def load_modules(root: Path = ROOT) -> list[Module]:
    """All tracked Python files of the product below `root`."""
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=root, capture_output=True, text=True, check=True)
    paths = [Path(line) for line in listed.stdout.splitlines()]
    product = [path for path in paths if path.parts[0] not in _OUTSIDE and (root / path).exists()]
    texts = {path: (root / path).read_text(encoding="utf-8") for path in product}
    return [Module(path, ast.parse(text), len(text.splitlines())) for path, text in texts.items()]


def find_cycles(modules: list[Module]) -> list[list[str]]:
    """Groups of modules of one package that all import one another, directly or not."""
    known = frozenset(module.name for module in modules)
    package = {module.name: module.package for module in modules}
    edges = {
        module.name: {name for name in module.imports(known) if package.get(name) == module.package}
        for module in modules
    }
    return [group for group in _strongly_connected(edges) if len(group) > 1]


def _strongly_connected(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """Tarjan's algorithm."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in edges.get(name, ()):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            at = stack.index(name)
            found.append(sorted(stack[at:]))
            del stack[at:]

    for name in edges:
        if name not in index:
            visit(name)
    return found


def repeated_class_names(modules: list[Module]) -> list[str]:
    """Names of classes at module level that two modules define."""
    names = Counter(node.name for module in modules for node in module.tree.body if isinstance(node, ast.ClassDef))
    return sorted(name for name, count in names.items() if count > 1)


def repeated_file_names(modules: list[Module]) -> list[str]:
    """Names of files in more than one folder."""
    names = Counter(module.path.name for module in modules if not module.path.name.startswith("__"))
    return sorted(name for name, count in names.items() if count > 1)


def imports_below_api(modules: list[Module]) -> list[str]:
    """What the faces import from below the service layer, as "module -> imported"."""
    known = frozenset(module.name for module in modules)
    faces = [module for module in modules if module.path.parts[0] in _FACES]
    reached = {(module.name, name) for module in faces for name in module.imports(known)}
    allowed = _FACES | _BELOW_FACES
    return sorted(f"{face} -> {name}" for face, name in reached if name and name.split(".")[0] not in allowed)


def files_of_a_question(modules: list[Module], page: str) -> list[str]:
    """The files that the page lists as the walk; raises ValueError for one that no file before it imports."""
    known = frozenset(module.name for module in modules)
    by_path = {str(module.path): module for module in modules}
    listed = re.findall(r"`([\w/]+\.py)`", page.partition("<!-- walk -->")[2].partition("<!-- /walk -->")[0])
    reached: set[str] = set()
    for place, path in enumerate(listed):
        module = by_path.get(path)
        if module is None or (place and not {module.name, module.package} & reached):
            raise ValueError(f"docs/how-a-section-is-made.md: {path} is not imported by a file listed before it")
        reached |= set(module.imports(known))
    return listed


def single_caller_helpers(modules: list[Module]) -> int:
    """The number of private functions and methods that are used at only one place of their module."""
    count = 0
    for module in modules:
        uses: Counter[str] = Counter()
        private: set[str] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name):
                uses[node.id] += 1
            elif isinstance(node, ast.Attribute):
                uses[node.attr] += 1
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and _is_private(node.name):
                private.add(node.name)
        count += sum(uses[name] == 1 for name in private)
    return count


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def measure(modules: list[Module]) -> tuple[dict[str, int], dict[str, list[str]]]:
    """Return the metrics that are only printed, and for each metric with a limit, the places that count."""
    lengths = [module.lines for module in modules]
    short = [m for m in modules if m.lines < _SHORT and m.path.name != "__init__.py"]
    figures = {
        "lines of the product": sum(lengths),
        "files": len(modules),
        f"files under {_SHORT} lines": len(short),
        "private helpers with one caller": single_caller_helpers(modules),
        "files of a question, from command to result": len(files_of_a_question(modules, _WALK.read_text("utf-8"))),
    }
    places = {
        "cycles of imports inside a package": [" ".join(group) for group in find_cycles(modules)],
        "class names that stand twice": repeated_class_names(modules),
        "file names that stand twice": repeated_file_names(modules),
        "imports of the faces from below api": imports_below_api(modules),
    }
    return figures, places


def main() -> int:
    figures, places = measure(load_modules())
    for name, value in figures.items():
        print(f"{value:8,}  {name}")
    failed = False
    for name, found in places.items():
        worse = len(found) > _LIMITS[name]
        failed = failed or worse
        print(f"{len(found):8,}  {name}{f', above the limit of {_LIMITS[name]}' if worse else ''}")
        if worse or "--places" in sys.argv:
            by_start: dict[str, list[str]] = defaultdict(list)
            for place in found:
                by_start[place.split(" -> ")[0]].append(place.split(" -> ")[-1])
            for start, ends in by_start.items():
                print(f"            {start}{'' if ends == [start] else ' -> ' + ', '.join(ends)}")
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
