"""Which part of the library a search looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from citeloom.documents import Category


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of a search; an empty field sets none. `years` are the first and the last, both included."""

    papers: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    years: tuple[int, int] | None = None

    def as_dict(self) -> dict[str, Any]:
        """The plain form that graph state holds; empty for the whole library."""
        record: dict[str, Any] = {}
        if self.papers:
            record["papers"] = list(self.papers)
        if self.categories:
            record["categories"] = [category.name.lower() for category in self.categories]
        if self.years:
            record["years"] = list(self.years)
        return record
