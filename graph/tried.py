"""How much of what was tried came about: passages that a model could read, sentences and pairs that it judged."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Tried:
    """How many things were tried, and with how many it succeeded; `done` is the participle ("read", "judged")."""

    things: str
    done: str
    total: int
    succeeded: int

    def said(self) -> str:
        """Both numbers in words."""
        return f"{self.succeeded} of {self.total} {self.things} were {self.done}"


def coverage_warnings(*tried: Tried) -> list[str]:
    """A line for each kind of thing of which less than half came about; none was nothing to try."""
    return [
        f"Only {item.said()}: the model gave no valid answer for the others, so what is said here rests on a part."
        for item in tried
        if 2 * item.succeeded < item.total
    ]
