"""Draw the pictures of the docs from the code: the section graph (docs/python.md), its nodes and those of
the other graphs (docs/langgraph.md), and the rooms (docs/architecture.md).

python docs/draw_graph.py            print them
python docs/draw_graph.py --write    put each between its markers
"""

from __future__ import annotations

import argparse
import inspect
import re
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from citeloom.graph import graphs
from citeloom.graph.graphs import section_graph
from citeloom.graph.state import ResearchState, SectionState

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
    """A table of the nodes of all graphs: what each does, reads and writes, and which roles it may pay for.

    Taken from the source of the node and of the functions of its module that it calls: the fields of the state, and the
    roles of the run.
    """
    steps = {
        step.__name__: step for shape in (graphs._SECTION, graphs._PAPER, graphs._RESEARCH) for step in shape.steps
    }
    lines = ["| node | what it does | reads | writes | may pay for |", "|---|---|---|---|---|"]
    for name, step in steps.items():
        calls = _with_helpers(step)
        read = {item for call in calls for item in _STATE.findall(call)}
        written = {key for call in calls[:1] for key in _KEY.findall(call) if key in _FIELDS}
        roles = {role for call in calls for role in _ROLE.findall(call)} - {"writer_for"}
        roles |= {"writer"} if any("writer_for" in call for call in calls) else set()
        does = (inspect.getdoc(step) or "").split("\n\n")[0].replace("\n", " ")
        cells = [", ".join(f"`{item}`" for item in sorted(kind)) or "-" for kind in (read, written, roles)]
        lines.append(f"| `{name}` | {does} | {' | '.join(cells)} |")
    return "\n".join(lines)


_STATE: Final = re.compile(r"""(?:state|given|asked|section)(?:\[|\.get\()["'](\w+)["']""")
_KEY: Final = re.compile(r"""["'](\w+)["']\s*[:\]]""")
_ROLE: Final = re.compile(r"roles(?:\(runtime\)\))?\.(\w+)")
_FIELDS: Final = {*SectionState.__annotations__, *ResearchState.__annotations__}


def _with_helpers(step: Callable[..., object]) -> list[str]:
    """The source of a function, and of those of its module that it calls."""
    module, found, waiting = sys.modules[step.__module__], dict[str, str](), [step.__name__]
    while waiting:
        name = waiting.pop(0)
        call = getattr(module, name, None)
        if name in found or not inspect.isfunction(call) or call.__module__ != module.__name__:
            continue
        found[name] = inspect.getsource(call)
        waiting += re.findall(r"\b(\w+)\(", found[name])
    return list(found.values())


PICTURES: Final[dict[str, tuple[Path, Callable[[], str]]]] = {
    "section graph": (ROOT / "docs" / "python.md", draw_section_graph),
    "nodes": (ROOT / "docs" / "langgraph.md", describe_nodes),
    "rooms": (ROOT / "docs" / "architecture.md", draw_rooms),
}


def picture(name: str) -> str:
    """A picture as a fenced Mermaid block, or a table as it is."""
    lines = PICTURES[name][1]().strip().splitlines()
    if lines[0].startswith("|"):
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
