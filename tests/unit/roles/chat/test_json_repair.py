"""Broken JSON: what is repaired, and what would take too long."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.roles.chat.model_answers import repair_json


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ('{"label": "good", "score": 0.5', {"label": "good", "score": 0.5}),
        ("{'label': 'good',}", {"label": "good"}),
        ('{"a": [1, 2}', {"a": [1, 2]}),
        ("", ""),
    ],
)
def test_slips_in_json_are_repaired(text: str, meant: Any) -> None:
    assert repair_json(text) == meant


@pytest.mark.parametrize(
    "text",
    [
        "{" * 50_000,
        "[" * 50_000,
        '{"a": "b' + "}\\" * 10_000,
        '{"a":' * 5_000,
        '{"a": "' + "word " * 5_000,
        '{"```json ' * 64,
    ],
)
def test_json_that_would_take_minutes_to_repair_is_given_up(text: str) -> None:
    assert repair_json(text) is None
