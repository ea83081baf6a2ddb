"""A paper as described by a metadata service, and helpers that turn answers into plain, bounded text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..documents.front_matter import find_doi
from ..documents.publication_status import Notice, Version
from ..text.words import unescape_html

_MOST_NAMES: Final = 1000
_MOST_CHARACTERS: Final = 20_000  # of an abstract; a long one has 5,000
_LONGEST_FIELD: Final = 1000
_MARKUP = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_ABSTRACT_TITLE = re.compile(r"^(?:abstract|summary)\b[\s:.]*(?=[A-Z])", re.IGNORECASE)
_LINK = re.compile(r"https?://[^\s<>\"'\\^`{|}\x00-\x1f\x7f-\uffff]{4,1000}")
PREPRINT_KINDS: Final = frozenset({"posted-content", "preprint"})
_STATED: Final = "title year venue volume issue pages publisher abstract citations open_access".split()


@dataclass(frozen=True, slots=True)
class Author:
    """An author: the name as shown, and the family name."""

    name: str
    family: str


@dataclass(frozen=True, slots=True)
class Work:
    """One service's description of a paper; fields that it does not give are empty.

    `kind` is Crossref's type of work, `open_access` the link to a free PDF, `is_notice` true for a retraction notice,
    a correction or the like, which is about another paper.
    """

    service: str
    doi: str
    title: str
    authors: tuple[Author, ...] = ()
    year: int | None = None
    venue: str = ""
    volume: str = ""
    issue: str = ""
    pages: str = ""
    publisher: str = ""
    kind: str = ""
    abstract: str = ""
    citations: int | None = None
    open_access: str = ""
    is_notice: bool = False
    notices: tuple[Notice, ...] = ()
    versions: tuple[Version, ...] = ()

    @property
    def is_preprint(self) -> bool:
        return self.kind in PREPRINT_KINDS

    def stated_fields(self) -> dict[str, Any]:
        """The fields that the service gives, as plain values."""
        fields = {name: getattr(self, name) for name in _STATED}
        fields |= {"authors": [author.name for author in self.authors], "type": self.kind}
        return {name: value for name, value in fields.items() if value not in ("", None, [])}


def field_text(value: object, most: int = _LONGEST_FIELD) -> str:
    """A string of an answer as plain text on one line: no tags, entities or control characters, bounded in length."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    text = unescape_html(_MARKUP.sub(" " if most > _LONGEST_FIELD else "", value[: 4 * most]))
    return " ".join(_UNSEEN.sub("", text).split())[:most]


def abstract_text(value: object) -> str:
    """An abstract without markup and without its heading."""
    return _ABSTRACT_TITLE.sub("", field_text(value, _MOST_CHARACTERS))


def first_text(value: object) -> str:
    """The first text of a list, or the text itself."""
    items = value if isinstance(value, list) else [value]
    return next(filter(None, map(field_text, items[:20])), "")


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object, most: int = _MOST_NAMES) -> Sequence[Mapping[str, Any]]:
    """The JSON objects of a list; empty for anything else."""
    return [item for item in value[:most] if isinstance(item, dict)] if isinstance(value, list) else []


def whole_number(value: object, least: int = 0, most: int = 10**9) -> int | None:
    """An integer within bounds; None for anything else."""
    good = isinstance(value, int) and not isinstance(value, bool) and least <= value <= most
    return value if good and isinstance(value, int) else None


def year_in(value: object) -> int | None:
    """A year of publication, given as a number or at the start of a date."""
    if isinstance(value, str) and re.match(r"\d{4}(?!\d)", value):
        value = int(value[:4])
    return whole_number(value, 1400, 2200)


def link(value: object) -> str:
    """An http(s) link; empty for anything else."""
    return value if isinstance(value, str) and _LINK.fullmatch(value) else ""


def doi_in(value: object) -> str:
    """The DOI in a text or link, in lower case; empty if there is none."""
    return find_doi(value[:1000]) if isinstance(value, str) else ""


def author(given: object, family: object, whole: object = "") -> Author | None:
    """An author by given and family name, or by the whole name of a person or an organisation."""
    first, last, full = field_text(given, 200), field_text(family, 200), field_text(whole, 400)
    if last:
        return Author(f"{first} {last}".strip(), last)
    return Author(full, full) if full else None
