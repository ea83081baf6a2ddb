"""Looks papers up at the metadata services: their DOI, what the `.bib` lacks, what differs, and what became of them.

Nothing of the library or the user's `.bib` changes. What was found is kept with the service that said it and the time.
"""

from __future__ import annotations

import asyncio
import re
import unicodedata
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final, Literal

from ..documents import Paper
from ..documents.paper_names import identifier_of
from ..documents.publication_status import PublicationStatus
from ..stores.metadata_records import Statement
from ..stores.metadata_store import MetadataStore
from .crossref import NAME as CROSSREF
from .datacite import NAME as DATACITE
from .matching import SURE, Candidate, Match, match_paper, title_similarity
from .openalex import NAME as OPENALEX
from .semantic_scholar import NAME as SEMANTIC_SCHOLAR
from .services import Said, Services

Outcome = Literal["known", "found", "unsure", "not-found", "failed"]

REGISTRARS: Final = frozenset({CROSSREF, DATACITE})
PRECEDENCE: Final = (CROSSREF, DATACITE, OPENALEX, SEMANTIC_SCHOLAR)
# What describes the publication is taken from the agency that registered the DOI, where it answers: others keep one
# record for preprint and article.
NOT_OF_THE_REGISTRAR: Final = frozenset({"abstract", "citations", "open_access"})
# OpenAlex counts citations from the most sources; Crossref only those of its members.
_OF_CITATIONS: Final = (OPENALEX, SEMANTIC_SCHOLAR, CROSSREF, DATACITE)
_COMPARED: Final = ("title", "authors", "year", "venue", "doi")
_SHOWN_CANDIDATES: Final = 3


@dataclass(frozen=True, slots=True)
class KnownField:
    """A field that the `.bib` lacks: its value, who says so, and since when."""

    field: str
    value: Any
    service: str
    said_at: float


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that a service gives otherwise than the user's `.bib`, which stays as it is."""

    field: str
    own: Any
    service: str
    said: Any


@dataclass(frozen=True, slots=True)
class StoredMetadata:
    """What is stored about a paper: its DOI, the fields that its entry lacks, differences, and its status."""

    doi: str = ""
    filled: tuple[KnownField, ...] = ()
    differences: tuple[Difference, ...] = ()
    status: PublicationStatus = field(default_factory=PublicationStatus)

    def as_dict(self) -> dict[str, Any]:
        """The plain form of the JSON output."""
        filled = {
            item.field: {"value": item.value, "service": item.service, "said_at": moment(item.said_at)}
            for item in self.filled
        }
        differences = [
            {"field": item.field, "own": item.own, "service": item.service, "said": item.said}
            for item in self.differences
        ]
        return {"doi": self.doi, "filled": filled, "differences": differences, **self.status.as_dict()}


@dataclass(frozen=True, slots=True)
class Enrichment:
    """The result of looking a paper up; without a DOI in `known` it was not identified, and nothing changed."""

    key: str
    outcome: Outcome
    similarity: float | None = None
    why: str = ""
    candidates: tuple[Candidate, ...] = ()
    known: StoredMetadata = field(default_factory=StoredMetadata)
    failures: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The plain form of the JSON output."""
        return {
            "key": self.key,
            "outcome": self.outcome,
            "similarity": self.similarity,
            "why": self.why,
            "candidates": [_candidate_record(item) for item in self.candidates],
            **self.known.as_dict(),
            "failures": list(self.failures),
        }


async def enrich(services: Services, papers: Sequence[Paper]) -> AsyncIterator[Enrichment]:
    """Look papers up one after the other; everything is committed before it is yielded."""
    for paper in papers:
        yield await _enrich_one(services, paper)


async def _enrich_one(services: Services, paper: Paper) -> Enrichment:
    store = services.store
    doi = (await asyncio.to_thread(store.dois, [paper])).get(paper.key, "")
    outcome: Outcome = "known"
    match = Match("same")
    if not doi:
        proposed = await services.candidates(paper)
        match = match_paper(paper, proposed.works)
        if match.verdict != "same" or match.best is None:
            return _not_identified(paper, match, proposed)
        doi, outcome = match.best.work.doi, "found"
    said = await services.about(identifier_of(doi))
    now = services.clock.time()
    if match.best is not None:
        best = match.best
        await asyncio.to_thread(store.keep_identity, paper, doi, best.similarity, best.work.service, now)
    await asyncio.to_thread(keep_said, store, doi, said, now)
    if not said.works:
        outcome = "failed" if said.failures else "not-found"
    similarity = match.best.similarity if match.best else None
    known = await asyncio.to_thread(stored_metadata, store, paper)
    return Enrichment(paper.key, outcome, similarity, known=known, failures=tuple(said.failures))


def _not_identified(paper: Paper, match: Match, proposed: Said) -> Enrichment:
    if proposed.failures and match.verdict == "different":
        return Enrichment(paper.key, "failed", failures=tuple(proposed.failures))
    outcome: Outcome = "unsure" if match.verdict == "unsure" else "not-found"
    best = match.best.similarity if match.best else None
    shown = match.candidates[:_SHOWN_CANDIDATES]
    return Enrichment(paper.key, outcome, best, match.why, shown, failures=tuple(proposed.failures))


def keep_said(store: MetadataStore, doi: str, said: Said, now: float) -> None:
    """Commit what the services said of the work with this DOI; blocks."""
    for work in said.works:
        notices = [*work.notices, *(said.notices if work.service == CROSSREF else ())]
        store.keep_work(doi, work.service, work.said(), notices, work.versions, now)


def stored_metadata(store: MetadataStore, paper: Paper) -> StoredMetadata:
    """What is stored about a paper; blocks, and asks nobody."""
    doi = store.dois([paper]).get(paper.key, "")
    if not doi:
        return StoredMetadata()
    statements = store.statements(doi)
    return StoredMetadata(
        doi,
        tuple(missing_fields(paper, statements)),
        tuple(differing_fields(paper, statements)),
        store.statuses([paper]).get(paper.key, PublicationStatus()),
    )


def missing_fields(paper: Paper, statements: Sequence[Statement]) -> list[KnownField]:
    """What the services know and the paper's entry does not say, each from the most authoritative service."""
    own = _own_fields(paper)
    registered = any(item.service in REGISTRARS for item in statements)
    counting = [
        item
        for item in statements
        if item.field in NOT_OF_THE_REGISTRAR or item.service in REGISTRARS or not registered
    ]
    return [
        KnownField(name, given.value, given.service, given.said_at)
        for name, given in sorted((name, _first(name, by_service)) for name, by_service in _by_field(counting).items())
        if name not in own
    ]


def differing_fields(paper: Paper, statements: Sequence[Statement]) -> list[Difference]:
    """What a service gives otherwise than the paper's entry; spelling and initials do not count."""
    own = _own_fields(paper)
    return [
        Difference(name, own[name], service, given.value)
        for name, by_service in _by_field(statements).items()
        if name in _COMPARED and name in own
        for service, given in by_service.items()
        if _differ(name, own[name], given.value, paper)
    ]


def moment(seconds: float) -> str:
    """A time in ISO form, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _by_field(statements: Sequence[Statement]) -> dict[str, dict[str, Statement]]:
    said: dict[str, dict[str, Statement]] = {}
    for item in statements:
        said.setdefault(item.field, {})[item.service] = item
    return said


def _first(name: str, by_service: Mapping[str, Statement]) -> Statement:
    order = _OF_CITATIONS if name == "citations" else PRECEDENCE
    return min(by_service.values(), key=lambda item: order.index(item.service) if item.service in order else len(order))


def _own_fields(paper: Paper) -> dict[str, Any]:
    """What the paper's own entry says, by the services' names for its fields."""
    own: dict[str, Any] = {
        "title": paper.title,
        "authors": list(paper.authors),
        "year": paper.year,
        "venue": paper.venue,
        "doi": paper.doi,
        "abstract": paper.abstract,
    }
    named = {"volume": "volume", "issue": "number|issue", "pages": "pages|eid", "publisher": "publisher"}
    for name, fields in named.items():
        found = re.search(rf"(?im)[,{{\n][^\S\n]*+(?:{fields})\s*+=\s*+[{{\"]?\s*+([^}}\",\n]+)", paper.bibtex)
        if found:
            own[name] = found[1].strip()
    return {name: value for name, value in own.items() if value not in ("", None, [])}


def _differ(name: str, own: Any, said: Any, paper: Paper) -> bool:
    if name in ("title", "venue"):
        return title_similarity(str(own), str(said)) < SURE
    if name == "authors":
        families = [_letters(family) for family in paper.family_names or paper.authors]
        names = [_letters(str(item)) for item in said] if isinstance(said, list) else []
        listed = [family for family in families if family and family != "others"]
        return len(names) != len(listed) or any(family not in name for family, name in zip(listed, names, strict=True))
    return str(own).casefold() != str(said).casefold()


def _letters(text: str) -> str:
    plain = unicodedata.normalize("NFKD", text.casefold())
    return "".join(sign for sign in plain if sign.isalpha())


def _candidate_record(item: Candidate) -> dict[str, Any]:
    work = item.work
    return {
        "doi": work.doi,
        "title": work.title,
        "authors": [author.name for author in work.authors[:5]],
        "year": work.year,
        "venue": work.venue,
        "service": work.service,
        "similarity": item.similarity,
        "against": list(item.against),
    }
