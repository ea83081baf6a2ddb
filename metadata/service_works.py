"""Queries each metadata service, and parses works, notices and versions from its answers.

Crossref has most journals, and updates such as retractions; DataCite has arXiv, Zenodo, figshare and others whose DOIs
Crossref does not register. OpenAlex gives single works by DOI free of charge; Semantic Scholar knows papers by DOI, by
arXiv id and by title.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote

from ..documents import Paper
from ..documents.front_matter import find_doi
from ..documents.paper_names import ARXIV_PREFIX, Identifier, family_name
from ..documents.publication_status import Notice, Version, notice_kind
from ..text.words import read_rules, unescape_html
from .service_client import ServiceClient, ServiceError

_MOST_NAMES: Final = 1000
_MOST_CHARACTERS: Final = 20_000  # of an abstract; a long one has 5,000
_LONGEST_FIELD: Final = 1000
_MARKUP = re.compile(r"</?[A-Za-z][\w:.-]*(?:\s[^<>]*)?/?>")
_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufeff]")
_ABSTRACT_TITLE = re.compile(r"^(?:abstract|summary)\b[\s:.]*(?=[A-Z])", re.IGNORECASE)
_LINK = re.compile(r"https?://[^\s<>\"'\\^`{|}\x00-\x1f\x7f-\uffff]{4,1000}")
_KINDS: Final = read_rules(__file__, "kinds_of_works")
PREPRINT_KINDS: Final = frozenset({"posted-content", "preprint"})
_STATED: Final = "title year venue volume issue pages publisher abstract citations open_access".split()


@dataclass(frozen=True, slots=True)
class Author:
    """An author: the name as shown, and the family name."""

    name: str
    family: str


@dataclass(frozen=True, slots=True)
class Work:
    """One service's description of a paper; fields that it does not give are empty."""

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
    kind: str = ""  # Crossref's type of work
    abstract: str = ""
    citations: int | None = None
    open_access: str = ""  # the link to a free PDF
    is_notice: bool = False  # a retraction notice, correction or the like, which is about another paper
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


CROSSREF: Final = "Crossref"
DATACITE: Final = "DataCite"
OPENALEX: Final = "OpenAlex"
SEMANTIC_SCHOLAR: Final = "Semantic Scholar"
_CANDIDATES: Final = 8  # works per search
_LONGEST_QUERY: Final = 400
_LONGEST_TITLE: Final = 300
_MOST_WORDS: Final = 5000  # of an abstract

_FIELDS: Final = (
    "title,authors,year,venue,journal,publicationTypes,externalIds,abstract,citationCount,isOpenAccess,openAccessPdf"
)


async def look_up_work(client: ServiceClient, identifier: Identifier) -> Work | None:
    """The work with this identifier; None if the service does not know it. Raises `ServiceError`."""
    service, doi = client.address.name, identifier.doi
    named = f"ARXIV:{identifier.arxiv}" if identifier.arxiv else f"DOI:{doi}"
    paths = {
        CROSSREF: f"/works/{quote(doi, safe='')}",
        DATACITE: f"/dois/{quote(doi, safe='')}",
        OPENALEX: f"/works/{quote(f'doi:{doi}', safe=':')}",
        SEMANTIC_SCHOLAR: f"/paper/{quote(named, safe=':')}",
    }
    answer = await client.get(paths[service], {"fields": _FIELDS} if service == SEMANTIC_SCHOLAR else None)
    if answer is None:
        return None
    item = mapping(answer)
    if service == CROSSREF:
        work = parse_crossref(mapping(item.get("message")))
    elif service == DATACITE:
        work = parse_datacite(mapping(mapping(item.get("data")).get("attributes")))
    else:
        work = parse_openalex(item) if service == OPENALEX else parse_semantic_scholar(item, doi)
    if work is None:
        raise ServiceError(f"{service} gave an answer without a title for {identifier.shown}.")
    return work


# Crossref

_DATES: Final = ("published-print", "published", "issued", "published-online", "posted")
_NOTICE_SOURCES: Final = {"retraction-watch": "Retraction Watch by Crossref"}


async def crossref_notices(client: ServiceClient, doi: str) -> list[Notice]:
    """The updates to a work that are registered only with the notices themselves; raises `ServiceError`."""
    answer = await client.get("/works", {"filter": f"updates:{doi}", "rows": "20"})
    return [
        notice
        for item in objects(mapping(mapping(answer).get("message")).get("items"))
        for update in objects(item.get("update-to"))
        if doi_in(update.get("DOI")) == doi
        for notice in _notices([update], doi_in(item.get("DOI")))
    ]


async def crossref_candidates(client: ServiceClient, paper: Paper) -> list[Work]:
    """Works with a similar title, authors and year, best first by Crossref's own ranking; raises `ServiceError`."""
    names = " ".join(paper.family_names[:3] or paper.authors[:3])
    asked = " ".join(f"{paper.title} {names} {paper.year or ''}".split())[:_LONGEST_QUERY]
    answer = await client.get("/works", {"query.bibliographic": asked, "rows": str(_CANDIDATES)})
    items = mapping(mapping(answer).get("message")).get("items")
    if not isinstance(items, list):
        raise ServiceError(f"{CROSSREF} gave an answer without a list of works.")
    return [work for work in map(parse_crossref, objects(items)) if work is not None]


def parse_crossref(item: Mapping[str, Any]) -> Work | None:
    """The work that an item of Crossref describes; None without DOI or title."""
    doi, title = doi_in(item.get("DOI")), first_text(item.get("title"))
    if not doi or not title:
        return None
    subtitle = first_text(item.get("subtitle"))
    if subtitle and subtitle.casefold() not in title.casefold():
        title = f"{title}: {subtitle}"
    people = objects(item.get("author")) or objects(item.get("editor"))
    names = (author(person.get("given"), person.get("family"), person.get("name")) for person in people)
    return Work(
        service=CROSSREF,
        doi=doi,
        title=title,
        authors=tuple(filter(None, names)),
        # That of the issue, or else of the earliest other publication.
        year=next(filter(None, (year_in(next(iter(_date_parts(item.get(name))), None)) for name in _DATES)), None),
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
        versions=tuple(
            Version(kind, other, CROSSREF)
            for name, kind in _KINDS["crossref_versions"].items()
            for related in objects(mapping(item.get("relation")).get(name), 20)
            if related.get("id-type") == "doi" and (other := doi_in(related.get("id"))) and other != doi
        ),
    )


def _date_parts(value: object) -> list[Any]:
    """Year, month and day of a date of Crossref, as far as they are given."""
    parts = mapping(value).get("date-parts")
    return parts[0] if isinstance(parts, list) and parts and isinstance(parts[0], list) else []


def _notices(updates: Iterable[Mapping[str, Any]], notice: str = "") -> Iterator[Notice]:
    for update in updates:
        kind = notice_kind(field_text(update.get("type"), 60)) or notice_kind(field_text(update.get("label"), 60))
        if kind is not None:
            source = _NOTICE_SOURCES.get(field_text(update.get("source"), 60), CROSSREF)
            date: list[str] = []  # ISO, as far as it is given
            bounds = ((1400, 2200, 4), (1, 12, 2), (1, 31, 2))
            for number, (least, most, width) in zip(_date_parts(update.get("updated")), bounds, strict=False):
                if whole_number(number, least, most) is None:
                    break
                date.append(f"{number:0{width}d}")
            yield Notice(kind, source, notice or doi_in(update.get("DOI")), "-".join(date))


# DataCite


def parse_datacite(item: Mapping[str, Any]) -> Work | None:
    """The work that the attributes of a DOI describe; None without DOI or title."""
    doi = doi_in(item.get("doi"))
    title = first_text([entry.get("title") for entry in objects(item.get("titles"), 5)])
    if not doi or not title:
        return None
    types, container = mapping(item.get("types")), mapping(item.get("container"))
    publisher = item.get("publisher")
    publisher = field_text(publisher if isinstance(publisher, str) else mapping(publisher).get("name"))
    kind = field_text(types.get("resourceTypeGeneral"), 60)
    is_arxiv = publisher.casefold() == "arxiv"
    abstracts = (
        abstract_text(entry.get("description"))
        for entry in objects(item.get("descriptions"), 20)
        if entry.get("descriptionType") == "Abstract"
    )
    names: list[Author | None] = []
    for entry in objects(item.get("creators")):
        whole = field_text(entry.get("name"), 400)
        family, comma, given = whole.partition(",")
        if comma and not entry.get("familyName") and entry.get("nameType") != "Organizational":
            names.append(author(given, family))
        else:
            names.append(author(entry.get("givenName"), entry.get("familyName"), whole))
    versions: list[Version] = []
    for entry in objects(item.get("relatedIdentifiers"), 200):
        relation = _KINDS["datacite_versions"].get(field_text(entry.get("relationType"), 60))
        other = doi_in(entry.get("relatedIdentifier")) if entry.get("relatedIdentifierType") == "DOI" else ""
        if relation == "version" and doi.startswith(ARXIV_PREFIX) and not other.startswith(ARXIV_PREFIX):
            relation = "article"  # arXiv's name for the journal article
        if relation and other and other != doi:
            versions.append(Version(relation, other, DATACITE))
    return Work(
        service=DATACITE,
        doi=doi,
        title=title,
        authors=tuple(filter(None, names)),
        year=year_in(item.get("publicationYear")),
        venue=field_text(container.get("title")) or ("arXiv" if is_arxiv else ""),
        volume=field_text(container.get("volume"), 40),
        issue=field_text(container.get("issue"), 40),
        pages=field_text(container.get("firstPage"), 40),
        publisher=publisher,
        kind="posted-content" if is_arxiv else _KINDS["datacite_kinds"].get(kind, kind.lower()),
        abstract=next(abstracts, ""),
        citations=whole_number(item.get("citationCount")) or None,
        versions=tuple(versions),
    )


# OpenAlex


def parse_openalex(item: Mapping[str, Any]) -> Work | None:
    """The work that OpenAlex describes; None without DOI or title."""
    doi, title = doi_in(item.get("doi")), field_text(item.get("title") or item.get("display_name"))
    if not doi or not title:
        return None
    place, detail = mapping(item.get("primary_location")), mapping(item.get("biblio"))
    kind = field_text(item.get("type_crossref") or item.get("type"), 60)
    pages = [field_text(detail.get(name), 40) for name in ("first_page", "last_page")]
    names = (
        field_text(entry.get("raw_author_name"), 400)
        or field_text(mapping(entry.get("author")).get("display_name"), 400)
        for entry in objects(item.get("authorships"))
    )
    words: dict[int, str] = {}  # of the abstract, by their positions
    for word, positions in mapping(item.get("abstract_inverted_index")).items():
        for position in positions if isinstance(positions, list) else []:
            if whole_number(position, 0, _MOST_WORDS) is not None and len(words) < _MOST_WORDS:
                words[position] = field_text(word, 100)
    return Work(
        service=OPENALEX,
        doi=doi,
        title=title,
        authors=tuple(Author(name, family_name(name)) for name in names if name),
        year=year_in(item.get("publication_year")),
        venue=field_text(mapping(place.get("source")).get("display_name")),
        volume=field_text(detail.get("volume"), 40),
        issue=field_text(detail.get("issue"), 40),
        pages="-".join(dict.fromkeys(filter(None, pages))),
        kind=_KINDS["openalex_kinds"].get(kind, kind),
        abstract=" ".join(words[position] for position in sorted(words)),
        citations=whole_number(item.get("cited_by_count")),
        open_access=link(mapping(item.get("best_oa_location")).get("pdf_url")),
        # OpenAlex gives neither the notice nor its date.
        notices=(Notice("retraction", OPENALEX),) if item.get("is_retracted") is True else (),
    )


# Semantic Scholar


async def semantic_scholar_candidates(client: ServiceClient, paper: Paper) -> list[Work]:
    """The work whose title is nearest, as a list of at most one; raises `ServiceError`."""
    title = " ".join(paper.title.split())[:_LONGEST_TITLE]
    answer = await client.get("/paper/search/match", {"query": title, "fields": _FIELDS})
    items = objects(mapping(answer).get("data"), 5)
    return [work for work in map(parse_semantic_scholar, items) if work is not None]


def parse_semantic_scholar(item: Mapping[str, Any], doi: str = "") -> Work | None:
    """The work that Semantic Scholar describes; `doi` is the DOI that was asked for. None without DOI or title."""
    ids, journal = mapping(item.get("externalIds")), mapping(item.get("journal"))
    arxiv = field_text(ids.get("ArXiv"), 60).lower()
    arxiv_doi = ARXIV_PREFIX + arxiv if arxiv else ""
    own = doi_in(ids.get("DOI"))
    named = doi or own or arxiv_doi
    title = field_text(item.get("title"))
    if not named or not title:
        return None
    # One record covers preprint and article, so its other DOI belongs to the other version.
    versions: tuple[Version, ...] = ()
    if named == arxiv_doi and own and own != arxiv_doi:
        versions = (Version("article", own, SEMANTIC_SCHOLAR),)
    elif arxiv_doi and named == own != arxiv_doi:
        versions = (Version("preprint", arxiv_doi, SEMANTIC_SCHOLAR),)
    names = (field_text(entry.get("name"), 400) for entry in objects(item.get("authors")))
    types = item.get("publicationTypes")
    types = types if isinstance(types, list) else []
    kind = "journal-article" if "JournalArticle" in types or "Review" in types else ""
    if named == arxiv_doi or "Conference" in types:
        kind = "posted-content" if named == arxiv_doi else "proceedings-article"
    return Work(
        service=SEMANTIC_SCHOLAR,
        doi=named,
        title=title,
        authors=tuple(Author(name, family_name(name)) for name in names if name),
        year=year_in(item.get("year")),
        venue=field_text(journal.get("name")) or field_text(item.get("venue")),
        volume=field_text(journal.get("volume"), 40),
        pages=field_text(journal.get("pages"), 60),
        kind=kind,
        abstract=abstract_text(item.get("abstract")),
        citations=whole_number(item.get("citationCount")),
        open_access=link(mapping(item.get("openAccessPdf")).get("url")),
        versions=versions,
    )
