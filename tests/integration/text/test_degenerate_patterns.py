"""Every regular expression of the package takes time in proportion to its text, on texts made to be its worst.

Patterns and functions are collected, so that a new one needs no entry; `tests/acceptance` has longer and more texts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.collected_patterns import CollectedPattern, collect_patterns
from tests.support.degenerate_texts import degenerate, repeated
from tests.support.function_report import functions_that_grow
from tests.support.pattern_texts import pattern_texts

pytestmark = pytest.mark.attack

LENGTH = 20_000
_LIMIT = 0.04  # seconds of the processor; a quadratic search takes 0.06 and more
_WORST = ("'\\n'", "' '", "'<'", "'<a '", "'a'", "'1'", "'('", "'-'", "'\"'", "'.'")


_SHARED = {name: degenerate(name, LENGTH) for name in _WORST}


def _slow(item: CollectedPattern) -> Iterator[str]:
    """The texts on which a pattern is slow."""
    texts = _SHARED | {repr(parts): repeated(parts, LENGTH) for parts in pattern_texts(item.pattern, variants=1)}
    return (name for name, text in texts.items() if item.is_slow(text, _LIMIT))


def test_no_pattern_is_slow_on_a_short_degenerate_text() -> None:
    patterns = collect_patterns()
    assert [(item.places, slow) for item in patterns if (slow := list(_slow(item)))] == []
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
def test_a_quadratic_pattern_would_be_noticed(pattern: str, method: str) -> None:
    assert any(_slow(CollectedPattern(re.compile(pattern, re.MULTILINE), methods={method})))


def test_functions_that_take_foreign_text_run_in_linear_time(tmp_path: Path) -> None:
    tried, slow = functions_that_grow(tmp_path, 20_000, "server", "zotero", "metadata")
    assert slow == []
    assert tried > 100
