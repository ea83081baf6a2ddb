"""Makes degenerate texts for a regular expression: each part that it repeats, many times, after what comes before."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from re import _constants, _parser  # type: ignore[attr-defined]
from typing import Any, Final

_PROBES: Final = "a1 \n\tA.,-_([{<\"'\\*#|>&;:/=@$%é)]}\u00a0"
_REPEATS: Final = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)


def _character(item: tuple[Any, Any], flags: int, variant: int) -> str:
    """A character that a set, a category or `.` accepts: the one of this rank among common ones."""
    state = _parser.State()
    state.flags = flags
    state.str = ""
    whole = _parser.SubPattern(state, [item])
    accepts = re._compiler.compile(whole, flags).match  # type: ignore[attr-defined]
    fitting = [probe for probe in _PROBES if accepts(probe)]
    if not fitting:
        fitting = [chr(code) for code in range(0x20, 0x3000) if accepts(chr(code))][:1] or ["x"]
    return fitting[variant % len(fitting)]


def _sample(items: Sequence[tuple[Any, Any]], flags: int, variant: int, groups: dict[int, str]) -> str:
    """A short text that the parts match: one turn of each repetition, the branch of this rank."""
    text = ""
    for item in items:
        kind, value = item
        if kind is _constants.LITERAL:
            text += chr(value)
        elif kind in (_constants.IN, _constants.NOT_LITERAL, _constants.ANY):
            text += _character(item, flags, variant)
        elif kind in _REPEATS:
            least, most, body = value
            text += _sample(body, flags, variant, groups) * max(least, min(most, variant))
        elif kind is _constants.SUBPATTERN:
            inner = _sample(value[3], flags, variant, groups)
            groups[value[0]] = inner
            text += inner
        elif kind is _constants.ATOMIC_GROUP:
            text += _sample(value, flags, variant, groups)
        elif kind is _constants.BRANCH:
            text += _sample(value[1][variant % len(value[1])], flags, variant, groups)
        elif kind is _constants.GROUPREF:
            text += groups.get(value, "")
        elif kind is _constants.ASSERT and value[0] < 0:  # what stands before
            text += _sample(value[1], flags, variant, groups)
    return text


def _repetitions(items: Sequence[tuple[Any, Any]], flags: int, variant: int, before: str) -> Iterator[tuple[str, str]]:
    """What comes before each repetition without an end, and what is repeated."""
    for item in items:
        kind, value = item
        if kind in _REPEATS:
            if value[1] > 50:
                yield before, _sample(value[2], flags, variant, {})
            yield from _repetitions(value[2], flags, variant, before)
        elif kind is _constants.SUBPATTERN:
            yield from _repetitions(value[3], flags, variant, before)
        elif kind is _constants.ATOMIC_GROUP:
            yield from _repetitions(value, flags, variant, before)
        elif kind is _constants.BRANCH:
            for branch in value[1]:
                yield from _repetitions(branch, flags, variant, before)
        elif kind in (_constants.ASSERT, _constants.ASSERT_NOT):
            yield from _repetitions(value[1], flags, variant, before)
        before += _sample([item], flags, variant, {})


def pattern_texts(pattern: re.Pattern[Any], variants: int) -> list[tuple[str, str, str]]:
    """Prefix, repeated piece and suffix of each text, with so many choices of the characters of each set."""
    source = pattern.pattern if isinstance(pattern.pattern, str) else pattern.pattern.decode("latin-1")
    flags = pattern.flags if isinstance(pattern.pattern, str) else pattern.flags | re.UNICODE
    parsed = _parser.parse(source, flags)
    found: dict[tuple[str, str, str], None] = {}
    for variant in range(variants):
        whole = _sample(parsed, flags, variant, {})
        found[("", whole, "")] = None
        for before, piece in _repetitions(parsed, flags, variant, ""):
            for text in (
                ("", piece, "\x00"),
                (before, piece, "\x00"),
                ("", before, "\x00"),
                ("", before + piece, "\x00"),
                ("", before + piece * 3, "\x00"),
            ):
                found[text] = None
    return [text for text in found if text[1]]
