"""Crossref's REST API: works by DOI and by title, updates such as retractions, and relations to other versions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from ..documents import Paper
from ..documents.publication_status import Notice, Version, VersionKind, notice_kind
from .service_client import ServiceClient, UnusableAnswerError
from .work import (
    Author,
    Work,
    abstract_text,
    author,
    doi_in,
    field_text,
    first_text,
    mapping,
    objects,
    whole_number,
    year_in,
)

NAME: Final = "Crossref"
_CANDIDATES: Final = 8
_LONGEST_QUERY: Final = 400
_VERSIONS: Final[dict[str, VersionKind]] = {
    "is-preprint-of": "article",
    "has-preprint": "preprint",
    "is-version-of": "version",
    "has-version": "version",
}
_SOURCES: Final = {"retraction-watch": "Retraction Watch by Crossref"}


async def crossref_work(client: ServiceClient, doi: str) -> Work | None:
    """The work with this DOI, with the updates to it; None if Crossref does not know it. Raises `ServiceError`."""
    answer = await client.get(f"/works/{quote(doi, safe='')}")
    if answer is None:
        return None
    found = parse_crossref(mapping(mapping(answer).get("message")))
    if found is None:
        raise UnusableAnswerError(NAME, f"gave an answer without a title for {doi}")
    return found


async def crossref_notices(client: ServiceClient, doi: str) -> list[Notice]:
    """The updates to a work that are registered with the notices alone; raises `ServiceError`."""
    answer = await client.get("/works", {"filter": f"updates:{doi}", "rows": "20"})
    items = objects(mapping(mapping(answer).get("message")).get("items"))
    return [
        notice
        for item in items
        for update in objects(item.get("update-to"))
        if doi_in(update.get("DOI")) == doi
        for notice in _notices([update], doi_in(item.get("DOI")))
    ]


async def crossref_candidates(client: ServiceClient, paper: Paper) -> list[Work]:
    """Works with a similar title, authors and year, best first by Crossref's own ranking; raises `ServiceError`."""
    names = " ".join(paper.family_names[:3] or paper.authors[:3])
    asked = " ".join(f"{paper.title} {names} {paper.year or ''}".split())[:_LONGEST_QUERY]
    answer = await client.get("/works", {"query.bibliographic": asked, "rows": str(_CANDIDATES)})
    message = mapping(mapping(answer).get("message"))
    if not isinstance(message.get("items"), list):
        raise UnusableAnswerError(NAME, "gave an answer without a list of works")
    return [work for work in map(parse_crossref, objects(message["items"])) if work is not None]


def parse_crossref(item: Mapping[str, Any]) -> Work | None:
    """The work that an item of Crossref describes; None without DOI or title."""
    doi, title = doi_in(item.get("DOI")), first_text(item.get("title"))
    if not doi or not title:
        return None
    subtitle = first_text(item.get("subtitle"))
    if subtitle and subtitle.casefold() not in title.casefold():
        title = f"{title}: {subtitle}"
    return Work(
        service=NAME,
        doi=doi,
        title=title,
        authors=tuple(_authors(item)),
        year=_year(item),
        venue=first_text(item.get("container-title")) or first_text(mapping(item.get("institution")).get("name")),
        volume=field_text(item.get("volume"), 40),
        issue=field_text(item.get("issue"), 40),
        pages=field_text(item.get("page"), 60) or field_text(item.get("article-number"), 60),
        publisher=field_text(item.get("publisher")),
        kind=field_text(item.get("type"), 60),
        abstract=abstract_text(item.get("abstract")),
        citations=whole_number(item.get("is-referenced-by-count")),
        is_notice=bool(objects(item.get("update-to"))),
        notices=tuple(_notices(objects(item.get("updated-by")))),
        versions=tuple(_versions(mapping(item.get("relation")), doi)),
    )


def _authors(item: Mapping[str, Any]) -> Iterator[Author]:
    for entry in objects(item.get("author")) or objects(item.get("editor")):
        found = author(entry.get("given"), entry.get("family"), entry.get("name"))
        if found:
            yield found


def _year(item: Mapping[str, Any]) -> int | None:
    """The year of the issue, or else the earliest other date of publication."""
    for name in ("published-print", "published", "issued", "published-online", "posted"):
        parts = mapping(item.get(name)).get("date-parts")
        first = parts[0] if isinstance(parts, list) and parts else None
        year = year_in(first[0]) if isinstance(first, list) and first else None
        if year:
            return year
    return None


def _notices(updates: Any, notice: str = "") -> Iterator[Notice]:
    for update in updates:
        kind = notice_kind(field_text(update.get("type"), 60)) or notice_kind(field_text(update.get("label"), 60))
        if kind is not None:
            named = field_text(update.get("source"), 60)
            source = _SOURCES.get(named, NAME)
            yield Notice(kind, source, notice or doi_in(update.get("DOI")), _date(update.get("updated")))


def _date(value: object) -> str:
    """An ISO date, as far as it is given."""
    parts = mapping(value).get("date-parts")
    numbers = parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], list) else []
    bounds = ((1400, 2200), (1, 12), (1, 31))
    known: list[str] = []
    for number, (least, most), width in zip(numbers, bounds, (4, 2, 2), strict=False):
        if whole_number(number, least, most) is None:
            break
        known.append(f"{number:0{width}d}")
    return "-".join(known)


def _versions(relations: Mapping[str, Any], doi: str) -> Iterator[Version]:
    for name, kind in _VERSIONS.items():
        for related in objects(relations.get(name), 20):
            other = doi_in(related.get("id")) if related.get("id-type") == "doi" else ""
            if other and other != doi:
                yield Version(kind, other, NAME)
