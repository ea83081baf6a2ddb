"""Every shipped prompt loads, renders, and asks for what its role needs."""

from __future__ import annotations

import pytest

from citeloom.experiment import SECTION_KINDS
from citeloom.prompts import PROMPT_NAMES, PromptLibrary
from citeloom.prompts.loader import SHIPPED_FOLDER


@pytest.mark.parametrize("name", PROMPT_NAMES)
def test_each_prompt_renders_with_its_declared_variables(name: str) -> None:
    prompt = PromptLibrary()[name]
    text = prompt.render(**{variable: f"<<{variable}>>" for variable in prompt.variables})
    assert all(f"<<{variable}>>" in text for variable in prompt.variables)
    assert "{{" not in text


def test_every_file_beside_the_prompts_is_used() -> None:
    """Each name is in the code, complete or as a family with one member per kind or depth."""
    roles = SHIPPED_FOLDER.parent
    code = "\n".join(
        path.read_text(encoding="utf-8") for room in ("roles", "graph") for path in (roles / room).rglob("*.py")
    )
    families = ("planner_needs_", "writer_plan_", "depth_", "answer_", "writer_")
    unused = [name for name in PROMPT_NAMES if f'"{name}"' not in code and not name.startswith(families)]
    assert not unused


@pytest.mark.parametrize("kind", SECTION_KINDS)
def test_each_section_has_its_own_prompt(kind: str) -> None:
    prompts = PromptLibrary()
    for family in ("planner_needs", "writer_plan"):
        others = {prompts[f"{family}_{other}"].body for other in SECTION_KINDS if other != kind}
        assert prompts[f"{family}_{kind}"].body not in others
