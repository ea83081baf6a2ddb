"""Formats counts with nouns for messages: "1 paper", "2 papers", "1,000 entries"."""

from __future__ import annotations

from collections.abc import Iterable


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with the noun in singular or plural; `plural` if that is not the noun with an "s"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def megabytes(count: int) -> str:
    """A number of bytes: "1.5 MB"."""
    return f"{count / 1_000_000:,.1f} MB"


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few names, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
