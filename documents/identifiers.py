"""Reads what names a paper: a DOI, or an arXiv id, bare or as a link."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal
from urllib.parse import unquote

from .front_matter import find_doi

ARXIV_PREFIX: Final = "10.48550/arxiv."
_LEAD = re.compile(r"^(?:https?://(?:dx\.|www\.)?doi\.org/|doi:\s*)", re.IGNORECASE)
_ARXIV = re.compile(
    r"^(?:https?://(?:www\.|export\.)?arxiv\.org/(?:abs|pdf|html)/|arxiv:\s*)?"
    r"(?P<id>\d{4}\.\d{4,5}|[a-z][a-z-]+(?:\.[A-Z]{2})?/\d{7})(?:v\d+)?(?:\.pdf)?/?$",
    re.IGNORECASE,
)
_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Identifier:
    """A paper's DOI in lower case; `arxiv` is its arXiv id, if it has one."""

    kind: Literal["doi", "arxiv"]
    doi: str
    arxiv: str = ""

    @property
    def shown(self) -> str:
        """The usual way to write it."""
        return f"arXiv:{self.arxiv}" if self.arxiv else self.doi


def parse_identifier(text: str) -> Identifier | None:
    """The identifier that a text consists of; None if it is neither a DOI nor an arXiv id."""
    named = text.strip()
    if len(named) > _LONGEST:
        return None
    found = _ARXIV.match(named)
    if found:
        return Identifier("arxiv", ARXIV_PREFIX + found["id"].lower(), found["id"].lower())
    bare = unquote(_LEAD.sub("", named)) if "%" in named else _LEAD.sub("", named)
    doi = find_doi(bare)
    if not doi or doi != bare.rstrip(".,;)]/").lower():
        return None
    return identifier_of(doi)


def identifier_of(doi: str) -> Identifier:
    """The identifier of a valid DOI; the DOI of an arXiv paper holds its arXiv id."""
    lower = doi.lower()
    if lower.startswith(ARXIV_PREFIX):
        return Identifier("arxiv", lower, lower.removeprefix(ARXIV_PREFIX))
    return Identifier("doi", lower)
