"""What the words of a statement tell: its subject, measured results, their direction, and whether it weighs sources.

English patterns of bounded length; a statement that matches none counts as telling nothing of the kind.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from .words import is_generic, is_stop, one_of, read_rules, split_words

Direction = Literal["up", "down", "none", ""]

NAMED: Final = 2  # weight of a number or name
_NUMBER: Final = re.compile(r"\d{1,12}(?:[.,]\d{1,12}){0,3}")
_EXAMINED: Final = 1_000  # characters of a statement


def telling_words(text: str) -> dict[str, int]:
    """The numbers and uncommon words of a text with a weight, which is higher for a number or name."""
    words = [word for word in split_words(text) if not is_stop(word) and not is_generic(word.form)]
    weights = {word.form: 1 if word.surface.islower() else NAMED for word in words}
    return weights | dict.fromkeys(_NUMBER.findall(text), NAMED)


_WORDINGS: Final = read_rules(__file__, "wordings")
_MEASURES: Final = tuple(one_of(patterns, re.IGNORECASE) for patterns in _WORDINGS["measures"].values())
_NONE, _UP, _DOWN = (one_of(_WORDINGS["directions"][name], re.IGNORECASE) for name in ("none", "up", "down"))
_WEIGHS: Final = one_of(_WORDINGS["weighs"]["sources"], re.IGNORECASE)


def count_measures(text: str) -> int:
    """How much of a result a statement gives: an effect, the size of a group, a test (0-3)."""
    return sum(pattern.search(text[:_EXAMINED]) is not None for pattern in _MEASURES)


def direction(text: str) -> Direction:
    """Whether a statement says that something rose, fell, or showed no effect; empty for none or several of these."""
    text = text[:_EXAMINED]
    if _NONE.search(text):
        return "none"
    up, down = _UP.search(text) is not None, _DOWN.search(text) is not None
    return "" if up == down else "up" if up else "down"


_OUTCOME_REACH: Final = 45  # characters on either side of what rose, fell or did not differ


def outcome_words(text: str) -> set[str]:
    """The telling words next to what a statement says rose, fell or did not differ; empty if it says none."""
    text = text[:_EXAMINED]
    pattern = {"none": _NONE, "up": _UP, "down": _DOWN}.get(direction(text))
    match = pattern.search(text) if pattern else None
    if match is None:
        return set()
    return set(telling_words(text[max(0, match.start() - _OUTCOME_REACH) : match.end() + _OUTCOME_REACH]))


def weighs_sources(sentence: str) -> bool:
    """Whether a sentence weighs, counts or compares what several sources say, rather than reporting one of them."""
    return _WEIGHS.search(sentence[:_EXAMINED]) is not None
