"""What stands in quotation marks in a draft: words that say themselves that they are another's."""

from __future__ import annotations

import re

_BLANK_LINE = re.compile(r"\n[ \t]*\n")
_PAIRS = re.compile(r"“[^“”]*”|„[^„“”]*[“”]|«[^«»]*»")
# By direction, so that the inch mark of 5" opens nothing.
_STRAIGHT = re.compile(r"(?<![^\s(\[\u2014\u2013-])\"(?=\S)[^\"]*\"")
_BLOCK = re.compile(r"(?m)^[ \t]*>.*$")


def quoted_spans(text: str) -> list[tuple[int, int]]:
    """Spans of quotations with their marks, and of quoted lines (`> ...`); a mark that is not closed opens nothing."""
    spans: list[tuple[int, int]] = []
    start = 0
    for blank in [*_BLANK_LINE.finditer(text), None]:
        end = blank.start() if blank else len(text)
        for pattern in (_PAIRS, _STRAIGHT, _BLOCK):
            spans += [match.span() for match in pattern.finditer(text, start, end)]
        start = blank.end() if blank else end
    return sorted(spans)
