"""Queries each metadata service, and parses works, notices and versions from its answers.

Crossref has most journals, and updates such as retractions; DataCite has arXiv, Zenodo, figshare and other sources
whose DOIs Crossref does not register. OpenAlex returns single works by DOI free of charge; Semantic Scholar finds
papers by DOI, arXiv id and title.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
    """A string as plain text on one line, without tags, entities and control characters, bounded in length."""
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str):
        return ""
    text = unescape_html(_MARKUP.sub(" " if most > _LONGEST_FIELD else "", value[: 4 * most]))
    return " ".join(_UNSEEN.sub("", text).split())[:most]


def abstract_text(value: object) -> str:
    """An abstract without markup and without its heading."""
    return _ABSTRACT_TITLE.sub("", field_text(value, _MOST_CHARACTERS))


def first_text(value: object, most: int = _LONGEST_FIELD) -> str:
    """The first text of a list, or the text itself."""
    items = value if isinstance(value, list) else [value]
    return next(filter(None, (field_text(item, most) for item in items[:20])), "")


def mapping(value: object) -> Mapping[str, Any]:
    """A JSON object; empty for anything else."""
    return value if isinstance(value, dict) else {}


def objects(value: object, most: int = _MOST_NAMES) -> Sequence[Mapping[str, Any]]:
    """The JSON objects of a list; empty for anything else."""
    return [item for item in value[:most] if isinstance(item, dict)] if isinstance(value, list) else []


def whole_number(value: object, least: int = 0, most: int = 10**9) -> int | None:
    """An integer within bounds; None for anything else."""
    return value if type(value) is int and least <= value <= most else None


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
_LONGEST: Final = {"venue": 1000, "volume": 40, "issue": 40, "pages": 60, "publisher": 1000, "kind": 60}

_FIELDS: Final = (
    "title,authors,year,venue,journal,publicationTypes,externalIds,abstract,citationCount,isOpenAccess,openAccessPdf"
)


def _value_at(item: object, place: str) -> object:
    """The value at a path such as `container.title`; None if it is missing."""
    for name in filter(None, place.split(".")):
        item = mapping(item).get(name)
    return item


def _work(
    service: str, item: Mapping[str, Any], doi: str, title: str, people: Iterable[Author | None], **given: Any
) -> Work | None:
    """The work with the fields `given` and the texts at the service's `places`; None if the DOI or title is missing."""
    texts = {
        name: next(filter(None, (first_text(_value_at(item, place), _LONGEST[name]) for place in places)), "")
        for name, places in _KINDS["places"][service].items()
    }
    found = Work(service, doi, title, tuple(filter(None, people)), **{**texts, **given})
    return found if doi and title else None


# Crossref

_DATES: Final = ("published-print", "published", "issued", "published-online", "posted")
_NOTICE_SOURCES: Final = {"retraction-watch": "Retraction Watch by Crossref"}


async def crossref_notices(client: ServiceClient, doi: str) -> list[Notice]:
    """The notices about a work, which Crossref registers only with the notices themselves; raises `ServiceError`."""
    answer = await client.get("/works", {"filter": f"updates:{doi}", "rows": "20"})
    return [
        notice
        for item in objects(_value_at(answer, "message.items"))
        for update in objects(item.get("update-to"))
        if doi_in(update.get("DOI")) == doi
        for notice in _notices([update], doi_in(item.get("DOI")))
    ]


async def crossref_candidates(client: ServiceClient, paper: Paper) -> list[Work]:
    """Works with a similar title, authors and year, best first by Crossref's own ranking; raises `ServiceError`."""
    names = " ".join(paper.family_names[:3] or paper.authors[:3])
    asked = " ".join(f"{paper.title} {names} {paper.year or ''}".split())[:_LONGEST_QUERY]
    answer = await client.get("/works", {"query.bibliographic": asked, "rows": str(_CANDIDATES)})
    items = _value_at(answer, "message.items")
    if not isinstance(items, list):
        raise ServiceError(f"{CROSSREF} gave an answer without a list of works.")
    return [work for work in map(parse_crossref, objects(items)) if work is not None]


def parse_crossref(item: Mapping[str, Any]) -> Work | None:
    """The work that an item of Crossref describes; None if the DOI or title is missing."""
    doi, title = doi_in(item.get("DOI")), first_text(item.get("title"))
    subtitle = first_text(item.get("subtitle"))
    if title and subtitle and subtitle.casefold() not in title.casefold():
        title = f"{title}: {subtitle}"
    people = objects(item.get("author")) or objects(item.get("editor"))
    return _work(
        CROSSREF,
        item,
        doi,
        title,
        (author(person.get("given"), person.get("family"), person.get("name")) for person in people),
        # The date of the issue, else of the earliest other publication.
        year=next(filter(None, (year_in(next(iter(_date_parts(item.get(name))), None)) for name in _DATES)), None),
        abstract=abstract_text(item.get("abstract")),
        citations=whole_number(item.get("is-referenced-by-count")),
        is_notice=bool(objects(item.get("update-to"))),
        notices=tuple(_notices(objects(item.get("updated-by")))),
        versions=tuple(
            Version(kind, other, CROSSREF)
            for name, kind in _KINDS["crossref_versions"].items()
            for related in objects(_value_at(item, f"relation.{name}"), 20)
            if related.get("id-type") == "doi" and (other := doi_in(related.get("id"))) and other != doi
        ),
    )


def _date_parts(value: object) -> list[Any]:
    """Year, month and day of a Crossref date, as far as given."""
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
    """The work that the attributes of a DOI describe; None if the DOI or title is missing."""
    doi = doi_in(item.get("doi"))
    title = first_text([entry.get("title") for entry in objects(item.get("titles"), 5)])
    publisher = field_text(item.get("publisher")) or field_text(_value_at(item, "publisher.name"))
    kind = field_text(_value_at(item, "types.resourceTypeGeneral"), 60)
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
    kind = "posted-content" if is_arxiv else _KINDS["datacite_kinds"].get(kind, kind.lower())
    found = _work(DATACITE, item, doi, title, names, publisher=publisher, kind=kind, versions=tuple(versions))
    return found and replace(
        found,
        year=year_in(item.get("publicationYear")),
        venue=found.venue or ("arXiv" if is_arxiv else ""),
        abstract=next(abstracts, ""),
        citations=whole_number(item.get("citationCount")) or None,
    )


# OpenAlex


def parse_openalex(item: Mapping[str, Any]) -> Work | None:
    """The work that OpenAlex describes; None if the DOI or title is missing."""
    doi, title = doi_in(item.get("doi")), field_text(item.get("title") or item.get("display_name"))
    kind = field_text(item.get("type_crossref") or item.get("type"), 60)
    pages = [field_text(_value_at(item, f"biblio.{name}"), 40) for name in ("first_page", "last_page")]
    names = (
        field_text(entry.get("raw_author_name"), 400) or field_text(_value_at(entry, "author.display_name"), 400)
        for entry in objects(item.get("authorships"))
    )
    words: dict[int, str] = {}  # of the abstract, by their positions
    for word, positions in mapping(item.get("abstract_inverted_index")).items():
        for position in positions if isinstance(positions, list) else []:
            if whole_number(position, 0, _MOST_WORDS) is not None and len(words) < _MOST_WORDS:
                words[position] = field_text(word, 100)
    return _work(
        OPENALEX,
        item,
        doi,
        title,
        (Author(name, family_name(name)) for name in names if name),
        year=year_in(item.get("publication_year")),
        pages="-".join(dict.fromkeys(filter(None, pages))),
        kind=_KINDS["openalex_kinds"].get(kind, kind),
        abstract=" ".join(words[position] for position in sorted(words)),
        citations=whole_number(item.get("cited_by_count")),
        open_access=link(_value_at(item, "best_oa_location.pdf_url")),
        # OpenAlex gives neither the notice nor its date.
        notices=(Notice("retraction", OPENALEX),) if item.get("is_retracted") is True else (),
    )


# Semantic Scholar


async def semantic_scholar_candidates(client: ServiceClient, paper: Paper) -> list[Work]:
    """The work with the nearest title, in a list of at most one; raises `ServiceError`."""
    title = " ".join(paper.title.split())[:_LONGEST_TITLE]
    answer = await client.get("/paper/search/match", {"query": title, "fields": _FIELDS})
    items = objects(_value_at(answer, "data"), 5)
    return [work for work in map(parse_semantic_scholar, items) if work is not None]


def parse_semantic_scholar(item: Mapping[str, Any], doi: str = "") -> Work | None:
    """The work that Semantic Scholar describes; `doi` is the DOI that was asked for. None without DOI or title."""
    arxiv_doi = (
        f"{ARXIV_PREFIX}{arxiv.lower()}" if (arxiv := field_text(_value_at(item, "externalIds.ArXiv"), 60)) else ""
    )
    own = doi_in(_value_at(item, "externalIds.DOI"))
    named = doi or own or arxiv_doi
    # One record covers preprint and article, so its other DOI belongs to the other version.
    versions: tuple[Version, ...] = ()
    if named == arxiv_doi and own and own != arxiv_doi:
        versions = (Version("article", own, SEMANTIC_SCHOLAR),)
    elif arxiv_doi and named == own != arxiv_doi:
        versions = (Version("preprint", arxiv_doi, SEMANTIC_SCHOLAR),)
    names = (field_text(entry.get("name"), 400) for entry in objects(item.get("authors")))
    types = item.get("publicationTypes")
    listed = [each for each in types if isinstance(each, str)] if isinstance(types, list) else []
    kinds = ["posted-content"] if named == arxiv_doi else []
    kinds += [kind for each, kind in _KINDS["semantic_scholar_kinds"].items() if each in listed]
    return _work(
        SEMANTIC_SCHOLAR,
        item,
        named,
        field_text(item.get("title")),
        (Author(name, family_name(name)) for name in names if name),
        year=year_in(item.get("year")),
        kind=next(iter(kinds), ""),
        abstract=abstract_text(item.get("abstract")),
        citations=whole_number(item.get("citationCount")),
        open_access=link(_value_at(item, "openAccessPdf.url")),
        versions=versions,
    )


# For each service: the path of a request for one work, the path of the work in the answer, and the parser.
_LOOK_UPS: Final[Mapping[str, tuple[str, str, Callable[..., Work | None]]]] = {
    CROSSREF: ("/works/", "message", parse_crossref),
    DATACITE: ("/dois/", "data.attributes", parse_datacite),
    OPENALEX: ("/works/", "", parse_openalex),
    SEMANTIC_SCHOLAR: ("/paper/", "", parse_semantic_scholar),
}


async def look_up_work(client: ServiceClient, identifier: Identifier) -> Work | None:
    """The work with this identifier; None if the service does not know it. Raises `ServiceError`."""
    service, doi = client.name, identifier.doi
    path, place, parse = _LOOK_UPS[service]
    named = {OPENALEX: f"doi:{doi}", SEMANTIC_SCHOLAR: f"DOI:{doi}"}.get(service, doi)
    if service == SEMANTIC_SCHOLAR and identifier.arxiv:
        named = f"ARXIV:{identifier.arxiv}"
    fields = {"fields": _FIELDS} if service == SEMANTIC_SCHOLAR else None
    answer = await client.get(f"{path}{quote(named, safe=':')}", fields)
    if answer is None:
        return None
    item = mapping(_value_at(answer, place))
    work = parse(item, doi) if service == SEMANTIC_SCHOLAR else parse(item)
    if work is None:
        raise ServiceError(f"{service} gave an answer without a title for {identifier.shown}.")
    return work
