"""Formats counts and lists for messages: "1 paper", "2 papers", "a, b and c"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with the noun in singular or plural; `plural` if that is not the noun with an "s"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def megabytes(count: int) -> str:
    """A number of bytes: "1.5 MB"."""
    return f"{count / 1_000_000:,.1f} MB"


def join_words(words: Sequence[str], conjunction: str = "and") -> str:
    """The words as a list in a sentence: "a, b and c"."""
    return f" {conjunction} ".join(filter(None, (", ".join(words[:-1]), words[-1])))


def some(names: Iterable[str], most: int = 5) -> str:
    """The first few names, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
