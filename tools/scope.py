"""Which part of the library a search looks at."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from citeloom.documents import Category
from citeloom.errors import InputError


def category_named(name: str) -> Category:
    """The category of a name, in any case and with - or _; raises `InputError` listing them."""
    try:
        return Category[name.strip().upper().replace("-", "_")]
    except KeyError:
        listed = ", ".join(category.name.lower() for category in Category)
        raise InputError(f"There is no category {name!r}.", help=f"There are {listed}.") from None


@dataclass(frozen=True, slots=True)
class Scope:
    """Limits of a search; an empty field sets none. `years` are the first and the last, both included.

    `venue` is a part of the venue's name, in any case.
    """

    papers: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    years: tuple[int, int] | None = None
    venue: str = ""

    def limits(self) -> dict[str, Any]:
        """The limits as the library's searches take them."""
        return {
            "keys": self.papers or None,
            "categories": self.categories or None,
            "years": self.years,
            "venue": self.venue or None,
        }

    def as_dict(self) -> dict[str, Any]:
        """The plain form that graph state holds; empty for the whole library."""
        record: dict[str, Any] = {}
        if self.papers:
            record["papers"] = list(self.papers)
        if self.categories:
            record["categories"] = [category.name.lower() for category in self.categories]
        if self.years:
            record["years"] = list(self.years)
        if self.venue:
            record["venue"] = self.venue
        return record
