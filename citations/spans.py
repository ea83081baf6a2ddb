"""Sets of text spans with lookup by bisection, and line starts."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import Final

_LONGEST_LINE: Final = 10_000  # characters; text further into a line is in no heading or list item


class SpanSet:
    """The union of spans `(start, end)`; touching spans are merged."""

    def __init__(self, spans: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for start, end in sorted(spans):
            if self._ends and start <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], end)
            else:
                self._starts.append(start)
                self._ends.append(end)

    def meets(self, start: int, end: int) -> bool:
        """Whether any character of `start:end` lies in a span."""
        index = bisect_right(self._ends, start)
        return index < len(self._starts) and self._starts[index] < end

    def holds(self, position: int) -> bool:
        """Whether the character at a position lies in a span."""
        return self.meets(position, position + 1)


def within(starts: list[int], start: int, end: int) -> range:
    """The indices of those sorted `starts` that lie in `start:end`."""
    return range(bisect_left(starts, start), bisect_left(starts, end))


def line_start(text: str, position: int) -> int:
    """The start of the line that contains a position; the position itself if that is very far before it."""
    first = max(0, position - _LONGEST_LINE)
    before = text.rfind("\n", first, position)
    return before + 1 if before >= 0 else position if first else 0
