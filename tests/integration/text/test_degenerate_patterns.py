"""Every regular expression of the package takes time in proportion to its text, on texts made to be its worst.

Patterns are collected from the source, so that a new one needs no entry; `tests/torture` has longer and more texts.
"""

from __future__ import annotations

import re

import pytest

from tests.support.collected_patterns import CollectedPattern, collect_patterns
from tests.support.degenerate_texts import degenerate, repeated
from tests.support.pattern_texts import pattern_texts

LENGTH = 20_000
_LIMIT = 0.04  # seconds of the processor; a quadratic search takes 0.06 and more
_WORST = ("'\\n'", "' '", "'<'", "'<a '", "'a'", "'1'", "'('", "'-'", "'\"'", "'.'")


def test_no_pattern_is_slow_on_a_short_degenerate_text() -> None:
    shared = {name: degenerate(name, LENGTH) for name in _WORST}
    patterns = collect_patterns()
    slow = []
    for item in patterns:
        texts = shared | {repr(parts): repeated(parts, LENGTH) for parts in pattern_texts(item.pattern, variants=1)}
        slow += [f"{', '.join(item.places)} on {name}" for name, text in texts.items() if item.is_slow(text, _LIMIT)]
    assert slow == []
    assert len(patterns) > 600


@pytest.mark.parametrize(
    ("pattern", "method"),
    [
        (r"^\W*(?:user|human)\W*:", "search"),
        (r"\s+$", "search"),
        (r"\s*,\s*", "split"),
        (r"<[^>]*>", "sub"),
        (r"(?:a|a)*b", "match"),
        (r"“([^”]+)”", "finditer"),
        (r"\S+-$", "sub"),
    ],
)
def test_a_quadratic_pattern_would_be_found(pattern: str, method: str) -> None:
    item = CollectedPattern(re.compile(pattern, re.MULTILINE), methods={method})
    assert any(item.is_slow(repeated(parts, LENGTH), _LIMIT) for parts in pattern_texts(item.pattern, variants=1))
