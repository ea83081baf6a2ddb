"""Draw the pictures of the docs from the code: the section graph (docs/python.md), its nodes and those of
the other graphs (docs/langgraph.md), and the rooms (docs/architecture.md).

python docs/draw_graph.py            print them
python docs/draw_graph.py --write    put each between its markers
"""

from __future__ import annotations

import argparse
import ast
import inspect
import sys
import textwrap
from collections import defaultdict
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

from citeloom.graph import conversation_graph, graphs
from citeloom.graph.graphs import section_graph
from citeloom.graph.nodes import ask
from citeloom.graph.state import ResearchState, SectionState
from citeloom.roles.run_roles import Roles

ROOT: Final = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from bench.structure import Module, load_modules  # noqa: E402

# Small modules on the ground floor, which most rooms import: arrows to them would hide the others.
_GROUND: Final = frozenset({"errors", "settings", "text"})


def draw_section_graph() -> str:
    """The compiled graph as a Mermaid block, without the colours, which are for light pages only."""
    return section_graph().get_graph().draw_mermaid(with_styles=False)


def draw_rooms() -> str:
    """The rooms and which imports which, as a Mermaid block; arrows that follow from others are left out."""
    modules = load_modules(ROOT)
    rooms = {module.path.parts[0] for module in modules if len(module.path.parts) > 1} - _GROUND
    edges = _room_imports(modules, rooms)
    lines = [f"    {room} --> {other}" for room in sorted(rooms) for other in sorted(_direct(edges, room))]
    return "\n".join(["flowchart TD", *lines])


def _room_imports(modules: list[Module], rooms: set[str]) -> dict[str, set[str]]:
    known = frozenset(module.name for module in modules)
    edges: defaultdict[str, set[str]] = defaultdict(set)
    for module in modules:
        room = module.path.parts[0]
        if room in rooms:
            edges[room] |= {name.split(".")[0] for name in module.imports(known)} & rooms - {room}
    return edges


def _direct(edges: dict[str, set[str]], room: str) -> set[str]:
    """The rooms that are imported and cannot be reached through another imported room."""
    own = edges.get(room, set())
    return {other for other in own if not any(other in _reached(edges, via) for via in own - {other})}


def _reached(edges: dict[str, set[str]], start: str) -> set[str]:
    reached: set[str] = set()
    waiting = [start]
    while waiting:
        for other in edges.get(waiting.pop(), set()) - reached:
            reached.add(other)
            waiting.append(other)
    return reached


def describe_nodes() -> str:
    """A page for each node of all graphs: what it does, reads and writes, what it may pay for, where it can wait, and
    what comes next.

    Taken from the source of the node and of the functions of this room that it calls: the fields of the state, and the
    roles of the run.
    """
    shapes = {"section": graphs._SECTION, "paper": graphs._PAPER, "research": graphs._RESEARCH}
    shapes["conversation"] = conversation_graph._CONVERSATION
    steps = {step.__name__: step for shape in shapes.values() for step in shape.steps}
    drawn = {name: shape.compile().get_graph().edges for name, shape in shapes.items()}
    lines: list[str] = []
    for name, step in steps.items():
        found = _Found()
        found.follow(step)
        graphs_of = [shape for shape in shapes if step in shapes[shape].steps]
        after = {edge.target.strip("_") for edges in drawn.values() for edge in edges if edge.source == name}
        lines += [f"### `{name}`", "", (inspect.getdoc(step) or "").split("\n\n")[0].replace("\n", " "), ""]
        lines.append(f"- in the graph{'s' * (len(graphs_of) > 1)} {', '.join(graphs_of)}; next: {_listed(after)}")
        lines.append(f"- reads {_listed(found.read)}; writes {_listed(found.written)}")
        paid = f"calls of {_listed(found.roles)}" if found.roles else "nothing"
        paid = "what the research graph costs, which it runs" if name == "answer" else paid
        lines += [f"- may cost: {paid}", f"- can wait: {_waits(name, found.roles)}", ""]
    return "\n".join(lines)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names)) or "nothing"


def _waits(name: str, roles: set[str]) -> str:
    """Where a node waits, by what it may ask and call."""
    if name.startswith("ask_"):
        return f"for a person, with `--ask {name.removeprefix('ask_')}`, as long as it takes; that costs nothing"
    if name == "answer":
        return "wherever that graph does"
    if not roles:
        return "nowhere"
    return "for a free place at the endpoint; it pauses at a limit (with `--ask budget` a person is asked)"


class _Found(ast.NodeVisitor):
    """What the functions that a node calls read, write and pay for."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.written: set[str] = set()
        self.roles: set[str] = set()
        self._done: set[Callable[..., object]] = set()

    def follow(self, step: Callable[..., object]) -> None:
        """Read a function, and those of the room `graph` that it calls."""
        self._done.add(step)
        tree = ast.parse(textwrap.dedent(inspect.getsource(step)))
        self.visit(tree)
        returns = str(inspect.get_annotations(step).get("return"))
        if step.__name__ in ("initial_state", "begin_steering") or returns in ("Update", "Resolved"):
            self._find_updates(tree)
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)} - stored
        calls: list[Any] = [getattr(sys.modules[step.__module__], name, None) for name in sorted(names)]
        if step.__name__.removeprefix("ask_") in ask._RESOLVERS:
            calls.append(ask._RESOLVERS[step.__name__.removeprefix("ask_")])
        for call in calls:
            ours = inspect.isfunction(call) and call.__module__.startswith("citeloom.graph.")
            if ours and call not in self._done and call.__name__ != "ask_budget":
                self.follow(call)

    def _find_updates(self, tree: ast.AST) -> None:
        """The keys of what a function returns, and of what it collects for that in a variable."""
        for node in ast.walk(tree):
            match node:
                case ast.Return(value):
                    self._take(value)
                case ast.AnnAssign(annotation=ast.Name("Update" | "Attempt"), value=value):
                    self._take(value)
                case ast.AugAssign(target=ast.Name("update"), value=value):
                    self._take(value)
                case ast.Subscript(ast.Name("update" | "planned"), ast.Constant(str(key)), ast.Store()):
                    self.written.add(key)

    def _take(self, value: ast.expr | None) -> None:
        if isinstance(value, ast.Tuple):
            self._take(value.elts[0])
        elif isinstance(value, ast.IfExp):
            self._take(value.body)
            self._take(value.orelse)
        elif isinstance(value, ast.Dict):
            self.written |= {str(key.value) for key in value.keys if isinstance(key, ast.Constant)}
            for key, inner in zip(value.keys, value.values, strict=True):
                if key is None:
                    self._take(inner)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr in Roles.__dataclass_fields__ and "roles" in ast.unparse(node.value):
            self.roles.add("reader" if node.attr == "answer_reader" else node.attr)
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        if isinstance(node.ctx, ast.Load):
            self._read(node.value, node.slice)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
            self._read(node.func.value, node.args[0])
        self.generic_visit(node)

    def _read(self, owner: ast.expr, key: ast.expr) -> None:
        if isinstance(key, ast.Constant) and key.value in _FIELDS and _is_state(owner):
            self.read.add(str(key.value))


_STATES: Final = ("state", "given", "asked", "section")
_FIELDS: Final = {
    *SectionState.__annotations__,
    *ResearchState.__annotations__,
    *conversation_graph.ConversationState.__annotations__,
}


def _is_state(node: ast.expr) -> bool:
    cast = isinstance(node, ast.Call) and ast.unparse(node).startswith("cast(") and ast.unparse(node).endswith("state)")
    return cast or (isinstance(node, ast.Name) and node.id in _STATES)


PICTURES: Final[dict[str, tuple[Path, Callable[[], str]]]] = {
    "section graph": (ROOT / "docs" / "python.md", draw_section_graph),
    "nodes": (ROOT / "docs" / "langgraph.md", describe_nodes),
    "rooms": (ROOT / "docs" / "architecture.md", draw_rooms),
}


@cache
def picture(name: str) -> str:
    """A picture as a fenced Mermaid block, or pages as they are."""
    lines = PICTURES[name][1]().strip().splitlines()
    if lines[0].startswith("#"):
        return "\n".join(lines)
    return "\n".join(["```mermaid", *(line.replace("\t", "    ").rstrip() for line in lines), "```"])


def between_markers(text: str, name: str) -> str | None:
    """The text between the markers of a picture; None unless each occurs once and in order."""
    begin, end = f"<!-- {name} -->", f"<!-- /{name} -->"
    if text.count(begin) != 1 or text.count(end) != 1 or text.index(begin) > text.index(end):
        return None
    return text[text.index(begin) + len(begin) : text.index(end)].strip()


def renew(text: str, name: str) -> str:
    """The text with the current picture between its markers; raises ValueError if it lacks them."""
    if between_markers(text, name) is None:
        raise ValueError(f"there are no lines <!-- {name} --> and <!-- /{name} -->")
    before, rest = text.split(f"<!-- {name} -->")
    after = rest.split(f"<!-- /{name} -->")[1]
    return f"{before}<!-- {name} -->\n{picture(name)}\n<!-- /{name} -->{after}"


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw the pictures of the docs from the code.")
    parser.add_argument("--write", action="store_true", help="put each between its markers")
    write = parser.parse_args().write
    for name, (path, _) in PICTURES.items():
        if write:
            path.write_text(renew(path.read_text(encoding="utf-8"), name), encoding="utf-8")
        else:
            sys.stdout.write(picture(name) + "\n")


if __name__ == "__main__":
    main()
