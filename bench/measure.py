"""Alternating pairs of times, the ratio of their medians, and the table that shows them.

A ratio of two times taken in the same minute says more than either time: whatever else the machine does slows both. So
the two are measured alternately, A B B A A B ..., and each row shows the spread of the single pairs.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from statistics import median

Timed = Callable[[], Awaitable[float]]


@dataclass(frozen=True)
class Row:
    """One comparison; `ours` and `reference` are medians in `unit`.

    `target`, if set, is an upper limit for the ratio, or with `at_least` a lower limit.
    """

    what: str
    ours: float
    reference: float
    ratios: tuple[float, ...]
    ratio: float
    unit: str = "ms"
    target: float | None = None
    at_least: bool = False

    @property
    def verdict(self) -> str:
        """Met, missed, or empty when no target is set."""
        if self.target is None:
            return ""
        return "met" if (self.ratio >= self.target if self.at_least else self.ratio <= self.target) else "missed"


async def alternate(ours: Timed, reference: Timed, rounds: int) -> list[tuple[float, float]]:
    """`rounds` pairs of seconds; the order within a pair alternates."""
    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        if number % 2 == 0:
            first = await ours()
            pairs.append((first, await reference()))
        else:
            second = await reference()
            pairs.append((await ours(), second))
    return pairs


def row_of(
    what: str,
    pairs: Sequence[tuple[float, float]],
    *,
    target: float | None = None,
    scale: float = 1000,
    unit: str = "ms",
    of: Callable[[Sequence[float]], float] = median,
) -> Row:
    """The row for pairs of seconds (ours, reference), compared by their medians or another function `of` them."""
    ours, reference = (of(times) for times in zip(*pairs, strict=True))
    ratios = tuple(mine / other for mine, other in pairs)
    return Row(what, ours * scale, reference * scale, ratios, ours / reference, unit, target)


def table(rows: Sequence[Row]) -> str:
    """The rows as a markdown table."""
    head = ("what", "ours", "reference", "ratio", "single pairs", "target", "verdict")
    lines = [head, tuple("-" * len(name) for name in head)]
    for row in rows:
        sign = ">=" if row.at_least else "<="
        lines.append(
            (
                row.what,
                f"{_short(row.ours)} {row.unit}",
                f"{_short(row.reference)} {row.unit}",
                f"{row.ratio:.2f}",
                f"{min(row.ratios):.2f}-{max(row.ratios):.2f}",
                f"{sign} {row.target:.3g}" if row.target is not None else "",
                row.verdict,
            )
        )
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    padded = [[cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines]
    padded[1] = ["-" * width for width in widths]
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"
