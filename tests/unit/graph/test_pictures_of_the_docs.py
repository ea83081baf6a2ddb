"""The diagrams in the docs match the code."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def drawing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("draw_graph", ROOT / "docs" / "draw_graph.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["section graph", "nodes", "rooms"])
def test_the_docs_show_the_current_diagrams(drawing: ModuleType, name: str) -> None:
    path: Path = drawing.PICTURES[name][0]
    shown = drawing.between_markers(path.read_text(encoding="utf-8"), name)
    if shown != drawing.picture(name):
        where = "lacks its markers" if shown is None else "is not that of the code"
        pytest.fail(f"The picture in {path.name} {where}. Renew it: python docs/draw_graph.py --write", pytrace=False)


def test_the_section_graph_names_every_step(drawing: ModuleType) -> None:
    picture = drawing.picture("section graph")
    assert picture.startswith("```mermaid\n") and picture.endswith("\n```")
    for arrow in ("__start__ --> default_queries", "agent --> guard", "check -.-> repair", "render --> __end__"):
        assert arrow in picture


def test_updating_a_diagram_changes_only_the_text_between_the_markers(drawing: ModuleType) -> None:
    old = "# Title\n\n<!-- rooms -->\nold\n<!-- /rooms -->\n\nMore.\n"
    new = drawing.renew(old, "rooms")
    assert drawing.between_markers(new, "rooms") == drawing.picture("rooms")
    assert new.startswith("# Title\n\n<!-- rooms -->\n") and new.endswith("<!-- /rooms -->\n\nMore.\n")
    assert drawing.renew(new, "rooms") == new


def test_a_page_without_markers_is_refused(drawing: ModuleType) -> None:
    with pytest.raises(ValueError, match="rooms"):
        drawing.renew("# Title\n", "rooms")
