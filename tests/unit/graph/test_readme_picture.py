"""The picture of the section graph in the README is the one that the graph gives."""

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


def test_the_readme_shows_the_graph_as_it_is(drawing: ModuleType) -> None:
    shown = drawing.between_markers((ROOT / "README.md").read_text(encoding="utf-8"))
    if shown != drawing.picture():
        where = "lacks its markers" if shown is None else "is not the graph's"
        pytest.fail(f"The picture in README.md {where}. Renew it: python docs/draw_graph.py --write", pytrace=False)


def test_the_picture_names_every_step(drawing: ModuleType) -> None:
    picture = drawing.picture()
    assert picture.startswith("```mermaid\n") and picture.endswith("\n```")
    for arrow in ("__start__ --> default_queries", "agent --> guard", "check -.-> repair", "render --> __end__"):
        assert arrow in picture


def test_renewing_changes_what_is_between_the_markers_only(drawing: ModuleType) -> None:
    old = f"# Title\n\n{drawing.BEGIN}\nold\n{drawing.END}\n\nMore.\n"
    new = drawing.renewed(old)
    assert drawing.between_markers(new) == drawing.picture()
    assert new.startswith(f"# Title\n\n{drawing.BEGIN}\n") and new.endswith(f"{drawing.END}\n\nMore.\n")
    assert drawing.renewed(new) == new


@pytest.mark.parametrize("text", ["", "# Title\n"])
def test_a_readme_without_markers_gets_them_at_its_end(drawing: ModuleType, text: str) -> None:
    new = drawing.renewed(text)
    assert new.startswith(text)
    assert drawing.between_markers(new) == drawing.picture()
