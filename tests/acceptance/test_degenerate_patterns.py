"""Every regular expression, and every function that takes text, on degenerate texts of 100 kB and 1 MB."""

from __future__ import annotations

from heapq import nlargest
from pathlib import Path

import pytest

from tests.support.collected_patterns import ROOT, collect_patterns, source_files
from tests.support.degenerate_texts import TEXTS, degenerate, repeated
from tests.support.function_report import functions_that_grow
from tests.support.pattern_texts import pattern_texts

pytestmark = pytest.mark.attack

_SHARES = 8
_SECONDS = 0.25  # of the processor for 100 kB; while a pattern searches, nothing else of the process runs
_LONGER = 3  # texts of 1 MB for each pattern


@pytest.fixture(scope="module")
def shared() -> dict[str, str]:
    return {name: degenerate(name, 100_000) for name in TEXTS}


@pytest.mark.parametrize("share", range(_SHARES))
def test_a_pattern_takes_time_linear_in_its_text(share: int, shared: dict[str, str]) -> None:
    slow = []
    for item in collect_patterns()[share::_SHARES]:
        made = {repr(parts): parts for parts in pattern_texts(item.pattern, variants=3)}
        texts = shared | {name: repeated(parts, 100_000) for name, parts in made.items()}
        seconds = {name: item.seconds(text, _SECONDS) for name, text in texts.items()}
        longest = nlargest(_LONGER, seconds, key=seconds.__getitem__)
        slow += [f"{item.places} on {name}" for name in longest if item.is_slow(texts[name], _SECONDS)]
        if item.bound is None and not slow:
            longer = {
                name: repeated(made[name], 1_000_000) if name in made else degenerate(name, 1_000_000)
                for name in longest
            }
            slow += [f"{item.places} on 1 MB of {name}" for name in longer if item.is_slow(longer[name], 10 * _SECONDS)]
    assert slow == []


# Quadratic only in text that the package itself passes.
_ARTIFICIAL = ("documents/bibliography.py: _split on ",)  # a separator as long as the value


_ROOMS = (
    ("server", "zotero", "metadata", "api", "runs", "stores", "commands"),
    ("citations", "drafts"),
    ("documents", "text", "ingestion"),
    ("graph", "tools", "roles", "models", "prompts"),
)
_OTHERS = {path.relative_to(ROOT).parts[0] for path in source_files()}.difference(*_ROOMS, {"cli.py"})


@pytest.mark.parametrize(
    ("length", "rooms"),
    [
        *((25_000, rooms) for rooms in _ROOMS),
        (25_000, tuple(sorted(_OTHERS))),
        (250_000, ("server", "zotero", "metadata")),
    ],
)
def test_a_function_takes_time_linear_in_its_text(tmp_path: Path, length: int, rooms: tuple[str, ...]) -> None:
    _, slow = functions_that_grow(tmp_path, length, *rooms)
    assert [line for line in slow if not line.startswith(_ARTIFICIAL)] == []
