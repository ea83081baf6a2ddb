"""The records of what services said of papers, whatever the backend."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, Final

from ..documents import Paper

RETRACTION_WATCH: Final = "Retraction Watch"


@dataclass(frozen=True, slots=True)
class ServiceAnswer:
    """A stored answer of a service."""

    status: int
    body: Any
    answered_at: float


@dataclass(frozen=True, slots=True)
class ServiceStatement:
    """What a service said of one field of a paper, and when it first said so."""

    field: str
    service: str
    value: Any
    said_at: float


def title_mark(paper: Paper) -> str:
    """Title and first author's family name without case, accents and punctuation, which identify a paper."""
    families = paper.family_names or tuple(author.split()[-1] for author in paper.authors if author.split())
    return f"{_letters(paper.title)}|{_letters(families[0]) if families else ''}"


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(character for character in plain if character.isalnum())
