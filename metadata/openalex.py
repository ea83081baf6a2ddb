"""OpenAlex: single works by DOI, which are free of charge with a key; citation counts, free PDFs, retractions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ..documents.publication_status import Notice
from .service_client import ServiceClient, UnusableAnswerError
from .work import Author, Work, doi_in, field_text, link, mapping, objects, whole_number, year_in

NAME: Final = "OpenAlex"
_MOST_WORDS: Final = 5000
_KINDS: Final = {"article": "journal-article", "preprint": "posted-content"}


async def openalex_work(client: ServiceClient, doi: str) -> Work | None:
    """The work with this DOI; None if OpenAlex does not know it. Raises `ServiceError`."""
    answer = await client.get(f"/works/{quote(f'doi:{doi}', safe=':')}")
    if answer is None:
        return None
    found = parse_openalex(mapping(answer))
    if found is None:
        raise UnusableAnswerError(NAME, f"gave an answer without a title for {doi}")
    return found


def parse_openalex(item: Mapping[str, Any]) -> Work | None:
    """The work that OpenAlex describes; None without DOI or title."""
    doi, title = doi_in(item.get("doi")), field_text(item.get("title") or item.get("display_name"))
    if not doi or not title:
        return None
    place, detail = mapping(item.get("primary_location")), mapping(item.get("biblio"))
    best = mapping(item.get("best_oa_location"))
    kind = field_text(item.get("type_crossref") or item.get("type"), 60)
    ends = [field_text(detail.get(name), 40) for name in ("first_page", "last_page")]
    return Work(
        service=NAME,
        doi=doi,
        title=title,
        authors=tuple(_authors(item)),
        year=year_in(item.get("publication_year")),
        venue=field_text(mapping(place.get("source")).get("display_name")),
        volume=field_text(detail.get("volume"), 40),
        issue=field_text(detail.get("issue"), 40),
        pages="-".join(dict.fromkeys(filter(None, ends))),
        kind=_KINDS.get(kind, kind),
        abstract=_abstract(mapping(item.get("abstract_inverted_index"))),
        citations=whole_number(item.get("cited_by_count")),
        open_access=link(best.get("pdf_url")),
        # It names neither the notice nor its date.
        notices=(Notice("retraction", NAME),) if item.get("is_retracted") is True else (),
    )


def _authors(item: Mapping[str, Any]) -> list[Author]:
    from ..documents.paper_names import family_name

    found = []
    for entry in objects(item.get("authorships")):
        name = field_text(entry.get("raw_author_name"), 400) or field_text(
            mapping(entry.get("author")).get("display_name"), 400
        )
        if name:
            found.append(Author(name, family_name(name)))
    return found


def _abstract(places: Mapping[str, Any]) -> str:
    """The abstract from the positions of its words."""
    words: dict[int, str] = {}
    for word, positions in places.items():
        for position in positions if isinstance(positions, list) else []:
            if whole_number(position, 0, _MOST_WORDS) is not None and len(words) < _MOST_WORDS:
                words[position] = field_text(word, 100)
    return " ".join(words[position] for position in sorted(words))
