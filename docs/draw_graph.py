"""Draw the pictures of the docs from the code: the section graph (docs/python.md) and the rooms (docs/architecture.md).

python docs/draw_graph.py            print them
python docs/draw_graph.py --write    put each between its markers
"""

from __future__ import annotations

import argparse
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Final

from citeloom.graph.graphs import section_graph

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


PICTURES: Final[dict[str, tuple[Path, Callable[[], str]]]] = {
    "section graph": (ROOT / "docs" / "python.md", draw_section_graph),
    "rooms": (ROOT / "docs" / "architecture.md", draw_rooms),
}


def picture(name: str) -> str:
    """A picture as a fenced Mermaid block."""
    lines = PICTURES[name][1]().strip().splitlines()
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
