"""Validates user input: the part of the library that a search covers, and the question."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, Unpack

from ..documents import Category, Paper, entry_labels
from ..errors import InputError

if TYPE_CHECKING:
    from ..stores.library import Library
    from ..stores.store_protocols import TextScope


CategoryName = Literal["abstract", "introduction", "method", "evaluation", "conclusion", "other", "related_work"]


def as_list(value: Any) -> Any:
    """Wrap a single value from a model in a list; nothing becomes an empty list."""
    if value is None or value == "":
        return []
    return value if isinstance(value, list | tuple) else [value]


def as_years(value: Any) -> Any:
    """Normalise years from a model to first and last year; a single year counts as both."""
    if value is None or value in ("", []):
        return None
    years = as_list(value)
    return [years[0], years[0]] if len(years) == 1 else years


def require_words(query: str) -> None:
    """Raise `InputError` for a query without letters or digits, to which all texts would be equally close."""
    if not any(character.isalnum() for character in query):
        raise InputError(f"There is nothing to look for in the query {query[:40]!r}.", help="Give it some words.")


def parse_category(name: str) -> Category:
    """Parse a category's name, in any case and with - or _, or a heading; raises `InputError` listing all."""
    try:
        return Category[name.strip().upper().replace("-", "_").replace(" ", "_")]
    except KeyError:
        from ..documents.categories import standard_section  # slow import

        said = standard_section(name)
        if said is not None:
            return said
        listed = ", ".join(category.name.lower() for category in Category)
        raise InputError(f"There is no category {name!r}.", help=f"The categories are {listed}.") from None


class Labels(TypedDict, total=False):
    """Labels that papers must have; an empty text sets no limit. A collection includes its subcollections."""

    kind: str
    tag: str
    collection: str


def has_labels(kind: str, tags: Sequence[str], collections: Sequence[str], wanted: Labels) -> bool:
    """Whether a paper's labels (from `entry_labels`) match the wanted ones, ignoring case."""
    of_kind, tag, within = (str(wanted.get(name, "")).strip().casefold() for name in ("kind", "tag", "collection"))
    return (
        of_kind in ("", kind)
        and (not tag or tag in map(str.casefold, tags))
        and (not within or any(f"{path}/".startswith(f"{within}/") for path in map(str.casefold, collections)))
    )


@dataclass(frozen=True, slots=True)
class Scope:
    """The limits of a search; an empty field sets no limit.

    `years` are the first and last year, both inclusive; `venue` is part of the venue's name, ignoring case.
    """

    papers: tuple[str, ...] = ()
    categories: tuple[Category, ...] = ()
    years: tuple[int, int] | None = None
    venue: str = ""

    @classmethod
    def within(
        cls,
        library: Library,
        papers: Sequence[str] = (),
        categories: Sequence[str] = (),
        years: tuple[int, int] | None = None,
        venue: str = "",
        **labels: Unpack[Labels],
    ) -> Scope:
        """Build the scope from user input; raises `InputError` for labels, keys or a venue that no paper has."""
        for key in papers:
            library.paper(key)
        if any(labels.values()):
            known = [paper for paper in library.papers() if not papers or paper.key in papers]
            papers = [paper.key for paper in known if has_labels(*entry_labels(paper.bibtex), labels)]
            if not papers:
                said = ", ".join(f"{name} {value!r}" for name, value in labels.items() if value)
                raise InputError(f"No paper has {said}.", help="See '{citeloom} papers list --json'.")
        venues = {paper.venue for paper in library.papers() if paper.venue} if venue else set()
        if venue and not any(venue.casefold() in known.casefold() for known in venues):
            by_form = {known.casefold(): known for known in sorted(venues)}
            near = [by_form[form] for form in difflib.get_close_matches(venue.casefold(), by_form, n=3, cutoff=0.4)]
            hint = f"Did you mean {', '.join(near)}?" if near else "See '{citeloom} papers list --json' for the venues."
            raise InputError(f"No paper in the library has a venue with {venue!r} in its name.", help=hint)
        return cls(tuple(papers), tuple(parse_category(name) for name in categories), years, venue)

    def to_text_scope(self) -> TextScope:
        """Convert to the scope of the library's searches."""
        from ..stores.store_protocols import TextScope  # lazy: questions are checked without stores

        return TextScope(self.papers or None, self.categories or None, None, self.years, self.venue)

    def holds(self, paper: Paper) -> bool:
        """Whether a paper is in scope, regardless of its sections."""
        return self.to_text_scope().holds(paper)

    def narrow(self, limits: Scope) -> Scope:
        """Intersect papers and years with `limits`, which win where the intersection is empty.

        Categories and venue are taken from `limits` where this scope has none.
        """
        inside = tuple(key for key in self.papers if key in limits.papers) if limits.papers else self.papers
        years = self.years or limits.years
        if self.years and limits.years:
            first, last = max(self.years[0], limits.years[0]), min(self.years[1], limits.years[1])
            years = (first, last) if first <= last else limits.years
        return Scope(inside or limits.papers, self.categories or limits.categories, years, self.venue or limits.venue)

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data for the graph's state; empty for the whole library."""
        kinds = [category.name.lower() for category in self.categories]
        named = {"papers": list(self.papers), "categories": kinds, "years": list(self.years or ()), "venue": self.venue}
        return {name: value for name, value in named.items() if value}


MOST_WORDS: Final = 400
_MOST_CHARACTERS: Final = 4000  # also for scripts without spaces between words


class QuestionError(InputError):
    """The question is not valid."""

    default_help = "Ask in a sentence or two."


def plain_question(text: object) -> str:
    """Put the question on one line; raises `QuestionError`, also for control characters, which users should notice."""
    if not isinstance(text, str):
        raise QuestionError(f"The question must be text, not {type(text).__name__}.")
    question = " ".join(text.split())
    odd = next((character for character in question if unicodedata.category(character) in ("Cc", "Cs")), None)
    if odd is not None:
        raise QuestionError(f"The question contains the control character U+{ord(odd):04X}.", help="Type it again.")
    require_words(question)
    if len(question.split()) > MOST_WORDS or len(question) > _MOST_CHARACTERS:
        raise QuestionError(
            f"The question has {len(question.split()):,} words; at most {MOST_WORDS} can be asked at once."
        )
    return question
