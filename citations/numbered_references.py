"""The numbered reference list of an answer: one line per paper, with the cited locations."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..documents.paper_names import family_name
from .citation_styles import Citation
from .references import Place, escaped, places_line

_TITLE: Final = 100  # characters


def cited_places(citations: Sequence[Citation]) -> dict[str, tuple[Place, ...]]:
    """The cited locations of each paper, without duplicates: by page, those without a page in text order."""
    found: dict[str, dict[Place, None]] = {}
    for citation in citations:
        if citation.page is not None or citation.section:
            found.setdefault(citation.key, {})[Place(citation.page, citation.section)] = None
    return {key: tuple(sorted(places, key=lambda place: place.page or 0)) for key, places in found.items()}


def numbered_list(references: Iterable[Mapping[str, Any]]) -> str:
    """The references of an answer's JSON as a markdown list: number, authors and year, title, key, locations."""
    return "\n".join(_entry(reference) for reference in references)


def _entry(reference: Mapping[str, Any]) -> str:
    title = " ".join(str(reference["title"]).split()) or reference["key"]
    if len(title) > _TITLE:
        title = title[:_TITLE].rsplit(" ", 1)[0].rstrip(",:;-") + " …"
    byline = escaped(_byline(reference)).rstrip(".")
    head = f"- **[{reference['label']}]** {byline}. {escaped(title)} ({escaped(reference['key'])})"
    places = places_line(reference.get("places", ()))
    return f"{head}\n  - {places}" if places else head


def _byline(reference: Mapping[str, Any]) -> str:
    """`Smith et al. 2024`; a group that is the author is named in full, as in the reference."""
    names = [family_name(author) for author in reference["authors"]]
    if names and reference["authors"][0] in reference.get("text", ""):
        names[0] = reference["authors"][0]
    who = names[0] + " et al." if len(names) > 2 else " and ".join(names)
    return f"{who} {reference['year'] or 'n.d.'}".strip()
