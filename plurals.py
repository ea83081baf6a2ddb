"""Formats counts with nouns for messages: "1 paper", "2 papers", "1,000 entries"."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """The number with the noun in singular or plural; `plural` if that is not the noun with an "s"."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def megabytes(count: int) -> str:
    """A number of bytes: "1.5 MB"."""
    return f"{count / 1_000_000:,.1f} MB"
