"""DataCite's REST API: the works of arXiv, Zenodo, figshare and others whose DOIs Crossref does not register."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote

from ..documents.paper_names import ARXIV_PREFIX
from ..documents.publication_status import Version, VersionKind
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

NAME: Final = "DataCite"
_VERSIONS: Final[dict[str, VersionKind]] = {
    "IsPreviousVersionOf": "version",
    "IsNewVersionOf": "version",
    "IsPreprintOf": "article",
    "HasPreprint": "preprint",
    "IsVersionOf": "version",
}
_KINDS: Final = {
    "Preprint": "posted-content",
    "JournalArticle": "journal-article",
    "ConferencePaper": "proceedings-article",
    "Dissertation": "dissertation",
    "Report": "report",
    "Book": "book",
}


async def datacite_work(client: ServiceClient, doi: str) -> Work | None:
    """The work with this DOI; None if DataCite does not know it. Raises `ServiceError`."""
    answer = await client.get(f"/dois/{quote(doi, safe='')}")
    if answer is None:
        return None
    found = parse_datacite(mapping(mapping(mapping(answer).get("data")).get("attributes")))
    if found is None:
        raise UnusableAnswerError(NAME, f"gave an answer without a title for {doi}")
    return found


def parse_datacite(item: Mapping[str, Any]) -> Work | None:
    """The work that the attributes of a DOI describe; None without DOI or title."""
    doi = doi_in(item.get("doi"))
    title = first_text([entry.get("title") for entry in objects(item.get("titles"), 5)])
    if not doi or not title:
        return None
    types, container = mapping(item.get("types")), mapping(item.get("container"))
    publisher = item.get("publisher")
    named = field_text(publisher if isinstance(publisher, str) else mapping(publisher).get("name"))
    kind = field_text(types.get("resourceTypeGeneral"), 60)
    is_arxiv = named.casefold() == "arxiv"
    return Work(
        service=NAME,
        doi=doi,
        title=title,
        authors=tuple(_authors(item)),
        year=year_in(item.get("publicationYear")),
        venue=field_text(container.get("title")) or ("arXiv" if is_arxiv else ""),
        volume=field_text(container.get("volume"), 40),
        issue=field_text(container.get("issue"), 40),
        pages=field_text(container.get("firstPage"), 40),
        publisher=named,
        kind="posted-content" if is_arxiv else _KINDS.get(kind, kind.lower()),
        abstract=_abstract(item),
        citations=whole_number(item.get("citationCount")) or None,
        versions=tuple(_versions(item, doi)),
    )


def _authors(item: Mapping[str, Any]) -> list[Author]:
    found = []
    for entry in objects(item.get("creators")):
        whole = field_text(entry.get("name"), 400)
        family, comma, given = whole.partition(",")
        named = author(entry.get("givenName"), entry.get("familyName"), whole)
        if comma and not entry.get("familyName") and entry.get("nameType") != "Organizational":
            named = author(given, family)
        if named:
            found.append(named)
    return found


def _abstract(item: Mapping[str, Any]) -> str:
    entries = objects(item.get("descriptions"), 20)
    return next((abstract_text(entry.get("description")) for entry in entries if _is_abstract(entry)), "")


def _is_abstract(entry: Mapping[str, Any]) -> bool:
    return entry.get("descriptionType") == "Abstract"


def _versions(item: Mapping[str, Any], doi: str) -> list[Version]:
    found = []
    for entry in objects(item.get("relatedIdentifiers"), 200):
        kind = _VERSIONS.get(field_text(entry.get("relationType"), 60))
        other = doi_in(entry.get("relatedIdentifier")) if entry.get("relatedIdentifierType") == "DOI" else ""
        if kind == "version" and doi.startswith(ARXIV_PREFIX) and not other.startswith(ARXIV_PREFIX):
            kind = "article"  # arXiv names the journal's article so
        if kind and other and other != doi:
            found.append(Version(kind, other, NAME))
    return found
