"""Semantic Scholar's Graph API: works by DOI or arXiv id, and the best match for a title."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ..documents import Paper
from ..documents.paper_names import ARXIV_PREFIX, Identifier, family_name
from ..documents.publication_status import Version
from .service_client import ServiceClient, UnusableAnswerError
from .work import Author, Work, abstract_text, doi_in, field_text, link, mapping, objects, whole_number, year_in

NAME: Final = "Semantic Scholar"
_FIELDS: Final = (
    "title,authors,year,venue,journal,publicationTypes,externalIds,abstract,citationCount,isOpenAccess,openAccessPdf"
)
_LONGEST_QUERY: Final = 300


async def semantic_scholar_work(client: ServiceClient, identifier: Identifier) -> Work | None:
    """The work with this identifier; None if Semantic Scholar does not know it. Raises `ServiceError`."""
    named = f"ARXIV:{identifier.arxiv}" if identifier.arxiv else f"DOI:{identifier.doi}"
    answer = await client.get(f"/paper/{quote(named, safe=':')}", {"fields": _FIELDS})
    if answer is None:
        return None
    found = parse_semantic_scholar(mapping(answer), identifier.doi)
    if found is None:
        raise UnusableAnswerError(NAME, f"gave an answer without a title for {identifier.shown}")
    return found


async def semantic_scholar_candidates(client: ServiceClient, paper: Paper) -> list[Work]:
    """The work whose title is nearest, as a list of at most one; raises `ServiceError`."""
    title = " ".join(paper.title.split())[:_LONGEST_QUERY]
    answer = await client.get("/paper/search/match", {"query": title, "fields": _FIELDS})
    items = objects(mapping(answer).get("data"), 5)
    return [work for work in map(parse_semantic_scholar, items) if work is not None]


def parse_semantic_scholar(item: Mapping[str, Any], doi: str = "") -> Work | None:
    """The work that Semantic Scholar describes; `doi` is the DOI that was asked for. None without DOI or title."""
    ids, journal = mapping(item.get("externalIds")), mapping(item.get("journal"))
    arxiv = field_text(ids.get("ArXiv"), 60).lower()
    of_arxiv = ARXIV_PREFIX + arxiv if arxiv else ""
    own = doi_in(ids.get("DOI"))
    named = doi or own or of_arxiv
    title = field_text(item.get("title"))
    if not named or not title:
        return None
    is_preprint = named == of_arxiv
    return Work(
        service=NAME,
        doi=named,
        title=title,
        authors=tuple(Author(name, family_name(name)) for name in _names(item)),
        year=year_in(item.get("year")),
        venue=field_text(journal.get("name")) or field_text(item.get("venue")),
        volume=field_text(journal.get("volume"), 40),
        pages=field_text(journal.get("pages"), 60),
        kind="posted-content" if is_preprint else _kind(item),
        abstract=abstract_text(item.get("abstract")),
        citations=whole_number(item.get("citationCount")),
        open_access=link(mapping(item.get("openAccessPdf")).get("url")),
        versions=tuple(_versions(named, own, of_arxiv)),
    )


def _names(item: Mapping[str, Any]) -> list[str]:
    names = [field_text(entry.get("name"), 400) for entry in objects(item.get("authors"))]
    return [name for name in names if name]


def _kind(item: Mapping[str, Any]) -> str:
    types = item.get("publicationTypes")
    named = types if isinstance(types, list) else []
    if "Conference" in named:
        return "proceedings-article"
    return "journal-article" if "JournalArticle" in named or "Review" in named else ""


def _versions(named: str, own: str, of_arxiv: str) -> list[Version]:
    """One record stands for preprint and article, so its other DOI is that of the other version."""
    if named == of_arxiv and own and own != of_arxiv:
        return [Version("article", own, NAME)]
    return [Version("preprint", of_arxiv, NAME)] if of_arxiv and named == own != of_arxiv else []
