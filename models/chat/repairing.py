"""Broken JSON made whole, where that can be done in bounded time."""

from __future__ import annotations

from typing import Any, Final

import json_repair

# The repair takes quadratic time or worse in brackets: 50,000 opening braces hold it for minutes. Our schemas are
# flat, so an answer worth repairing has few.
_CHARACTERS: Final = 20_000
_BRACKETS: Final = 200


def repaired_json(text: str) -> Any:
    """What `text` most likely meant as JSON, or None when it cannot be told."""
    if len(text) > _CHARACTERS or sum(map(text.count, "{}[]()")) > _BRACKETS:
        return None
    try:
        return json_repair.loads(text)
    except (ValueError, RecursionError, AssertionError):
        # The assertion is the repair's own, met on a fence inside an object.
        return None
