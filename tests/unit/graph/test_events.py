"""Events match their documentation, and the last one says whether the draft was changed."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, get_args

import pytest
from pydantic import ConfigDict, TypeAdapter, with_config

from citeloom.graph import run_events as events
from citeloom.graph.run_events import Event, EventRecorder, progress

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "events.md").read_text(encoding="utf-8")
SHOWN = re.findall(r"^`(\w+)`:.*?```json\n(.*?)\n```", PAGE, re.DOTALL | re.MULTILINE)
STRICT = ConfigDict(extra="forbid", strict=True)


def test_every_kind_of_event_is_documented_once() -> None:
    assert [name for name, _ in SHOWN] == [kind.__name__ for kind in get_args(Event)]


@pytest.mark.parametrize(("name", "example"), SHOWN, ids=[name for name, _ in SHOWN])
def test_each_documented_example_is_a_valid_event(name: str, example: str) -> None:
    kind = with_config(STRICT)(getattr(events, name))
    TypeAdapter(kind).validate_json(example)
    assert set(json.loads(example)) == set(kind.__annotations__)


def token(text: str) -> Any:
    return {"source": "citeloom", "kind": "token", "text": text}


@pytest.mark.parametrize(
    ("came", "text", "differs"),
    [
        pytest.param([token("Seeds"), token(" matter. ")], "Seeds matter.", False, id="as told"),
        pytest.param([token("Seeds matter.")], "Seeds may matter.", True, id="changed"),
        pytest.param([], "Seeds matter.", True, id="never told"),
        pytest.param([], "", False, id="nothing to tell"),
        pytest.param(
            [token("Seed"), {"source": "citeloom", "kind": "restarted"}, token("Seeds matter.")],
            "Seeds matter.",
            False,
            id="restarted",
        ),
    ],
)
def test_the_final_event_says_whether_the_draft_was_changed(came: list[Any], text: str, differs: bool) -> None:
    heard: list[Any] = []
    telling = EventRecorder(heard.append)
    for event in (progress("writing", "writing"), *came):
        telling(event)
    telling.emit_done({"text": text})
    assert heard[1:-1] == came
    assert heard[-1] == {
        "source": "citeloom",
        "kind": "done",
        "text": text,
        "differs": differs,
        "answered": bool(text),
        "result": {"text": text},
    }
