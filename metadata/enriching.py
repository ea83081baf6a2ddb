"""Looks papers up at metadata services and stores results with service and time; library and `.bib` do not change.

Retraction Watch's CSV file is imported row by row, once per version of the file.
"""

from __future__ import annotations

import asyncio
import csv
import io
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

from ..documents import Paper
from ..documents.paper_names import Identifier
from ..documents.publication_status import Notice, PublicationStatus, notice_kind
from ..documents.safe_files import FileRefusedError, require_regular
from ..errors import InputError
from ..stores.metadata_store import RETRACTION_WATCH, MetadataStore, ServiceStatement
from .matching import SURE, WorkCandidate, fold_name, match_paper, title_similarity
from .service_works import CROSSREF, DATACITE, OPENALEX, SEMANTIC_SCHOLAR, doi_in, field_text
from .services import Responses, Services

Outcome = Literal["known", "found", "unsure", "not-found", "failed"]

REGISTRARS: Final = frozenset({CROSSREF, DATACITE})
_PRECEDENCE: Final = (CROSSREF, DATACITE, OPENALEX, SEMANTIC_SCHOLAR)
# Publication fields come from the agency that registered the DOI, if it answers: others keep one
# record for preprint and article.
FROM_ANY_SERVICE: Final = frozenset({"abstract", "citations", "open_access"})
# OpenAlex counts citations from the most sources; Crossref only those of its members.
_CITATION_PRECEDENCE: Final = (OPENALEX, SEMANTIC_SCHOLAR, CROSSREF, DATACITE)
_COMPARED: Final = ("title", "authors", "year", "venue", "doi")
_SHOWN_CANDIDATES: Final = 3


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs between a service and the user's `.bib`, which is not changed."""

    field: str
    own: Any
    service: str
    said: Any


@dataclass(frozen=True, slots=True)
class StoredMetadata:
    """The stored metadata of a paper: its DOI, the fields that its entry lacks, differences, and its status."""

    doi: str = ""
    filled: tuple[ServiceStatement, ...] = ()
    differences: tuple[Difference, ...] = ()
    status: PublicationStatus = field(default_factory=PublicationStatus)

    def as_dict(self) -> dict[str, Any]:
        filled = {
            item.field: {"value": item.value, "service": item.service, "said_at": iso_time(item.said_at)}
            for item in self.filled
        }
        differences = [asdict(item) for item in self.differences]
        return {"doi": self.doi, "filled": filled, "differences": differences, **self.status.as_dict()}


async def enrich_paper(services: Services, paper: Paper) -> dict[str, Any]:
    """Look a paper up and commit the answers; without a `doi` in the result, nothing was identified or stored."""
    store, known = services.store, StoredMetadata()
    doi = (await asyncio.to_thread(store.dois, [paper])).get(paper.key, "")
    outcome: Outcome = "known"
    best: WorkCandidate | None = None
    candidates: Sequence[WorkCandidate] = ()
    why, failures = "", list[str]()
    if not doi:
        found = await services.search(paper)
        match, failures = match_paper(paper, found.works), found.failures
        if match.verdict == "different" and failures:
            outcome = "failed"
        elif match.verdict != "same" or match.best is None:
            outcome = "unsure" if match.verdict == "unsure" else "not-found"
            best, why, candidates = match.best, match.why, match.candidates[:_SHOWN_CANDIDATES]
        else:
            outcome, best, doi = "found", match.best, match.best.work.doi
    if doi:
        responses = await services.look_up(Identifier(doi.lower()))
        now, failures = services.clock.time(), responses.failures
        if best is not None:
            await asyncio.to_thread(store.keep_identity, paper, doi, best.similarity, best.work.service, now)
        await asyncio.to_thread(store_responses, store, doi, responses, now)
        if not responses.works:
            outcome = "failed" if failures else "not-found"
        known = await asyncio.to_thread(stored_metadata, store, paper)
    similarity = best.similarity if best else None
    listed = [item.as_dict() for item in candidates]
    looked_up = {"key": paper.key, "outcome": outcome, "similarity": similarity, "why": why, "candidates": listed}
    return {**looked_up, **known.as_dict(), "failures": list(failures)}


def store_responses(store: MetadataStore, doi: str, responses: Responses, now: float) -> None:
    """Commit the services' responses for the work with this DOI; blocks."""
    for work in responses.works:
        notices = [*work.notices, *(responses.notices if work.service == CROSSREF else ())]
        store.keep_work(doi, work.service, work.stated_fields(), notices, work.versions, now)


def stored_metadata(store: MetadataStore, paper: Paper) -> StoredMetadata:
    """The stored metadata of a paper; blocks, and sends no requests."""
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


def missing_fields(paper: Paper, statements: Sequence[ServiceStatement]) -> list[ServiceStatement]:
    """Fields missing from the paper's entry, each from the most authoritative service that has it."""
    own = _own_fields(paper)
    registered = any(item.service in REGISTRARS for item in statements)
    counting = [
        item for item in statements if item.field in FROM_ANY_SERVICE or item.service in REGISTRARS or not registered
    ]
    known = []
    for name, by_service in sorted(_group_by_field(counting).items()):
        if name not in own:
            order = _CITATION_PRECEDENCE if name == "citations" else _PRECEDENCE
            known.append(by_service[next(filter(by_service.__contains__, (*order, *by_service)))])
    return known


def differing_fields(paper: Paper, statements: Sequence[ServiceStatement]) -> list[Difference]:
    """Fields in which a service differs from the paper's entry; spelling and initials do not count."""
    own = _own_fields(paper)
    return [
        Difference(name, own[name], service, given.value)
        for name, by_service in _group_by_field(statements).items()
        if name in _COMPARED and name in own
        for service, given in by_service.items()
        if _differ(name, own[name], given.value, paper)
    ]


def iso_time(seconds: float) -> str:
    """A time in ISO form, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _group_by_field(statements: Sequence[ServiceStatement]) -> dict[str, dict[str, ServiceStatement]]:
    return {each.field: {item.service: item for item in statements if item.field == each.field} for each in statements}


def _own_fields(paper: Paper) -> dict[str, Any]:
    own = {name: getattr(paper, name) for name in ("title", "year", "venue", "doi", "abstract")}
    own["authors"] = list(paper.authors)
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
        families = [fold_name(family) for family in paper.family_names or paper.authors]
        names = [fold_name(str(item)) for item in said] if isinstance(said, list) else []
        listed = [family for family in families if family and family != "others"]
        complete = len(names) == len(listed) or (len(names) > len(listed) and "others" in families)
        return not complete or any(family not in name for family, name in zip(listed, names, strict=False))
    return str(own).casefold() != str(said).casefold()


_COLUMNS: Final = ("OriginalPaperDOI", "RetractionDOI", "RetractionDate", "RetractionNature", "Reason")
_MOST_BYTES: Final = 1_000_000_000  # the file had 60 MB in 2025
_LONGEST_CELL: Final = 1_000_000
_LONGEST_REASON: Final = 300
_DATE = re.compile(  # ISO, or month/day/year as in the file
    r"(?:(?P<year>\d{4})-(?P<month>\d{1,2})-(?P<day>\d{1,2})|(?P<m>\d{1,2})/(?P<d>\d{1,2})/(?P<y>\d{4}))\b"
)
_HELP: Final = "Download it again from Retraction Watch, or correct CITELOOM_RETRACTION_WATCH."


def import_retraction_watch(store: MetadataStore, file: Path, on_notice: Callable[[str], None] | None = None) -> bool:
    """Replace Retraction Watch's notices with the file's, unless this version was already imported; blocks.

    `on_notice` is called before the import, which takes seconds. Returns whether the file was imported. Raises
    `InputError`, keeping the previous import, if the file is missing, too large or not Retraction Watch's.
    """
    try:
        require_regular(file, _MOST_BYTES)
        state = file.stat()
    except (OSError, FileRefusedError) as error:
        reason = (error.strerror or type(error).__name__) if isinstance(error, OSError) else str(error)
        raise InputError(f"{file} (retraction_watch): cannot be read ({reason}).", help=_HELP) from error
    stamp = f"{file.resolve()}:{state.st_size}:{state.st_mtime_ns}"
    if store.file_stamp(RETRACTION_WATCH) == stamp:
        return False
    if on_notice is not None:
        on_notice(f"Importing {file}; this is done once for each version of the file.")
    try:
        with file.open(encoding="utf-8-sig", errors="replace", newline="") as opened:
            store.replace_notices(RETRACTION_WATCH, read_notices(opened, str(file)), stamp)
    except OSError as error:
        raise InputError(f"{file}: cannot be read ({error.strerror}).", help=_HELP) from error
    return True


def read_notices(opened: io.TextIOBase | io.TextIOWrapper, name: str) -> Iterator[tuple[str, Notice]]:
    """The notices of the file, each with the DOI of its paper; raises `InputError` if it has other columns."""
    before = csv.field_size_limit(_LONGEST_CELL)
    try:
        rows = csv.DictReader(opened)
        missing = [column for column in _COLUMNS if column not in (rows.fieldnames or ())]
        if missing:
            raise InputError(f"{name} is not Retraction Watch's file: it has no column {missing[0]}.", help=_HELP)
        for row in rows:
            doi = doi_in(row["OriginalPaperDOI"])
            kind = notice_kind(row["RetractionNature"] or "")
            if doi and kind is not None:
                reasons = [reason.strip(" +") for reason in (row["Reason"] or "").split(";")]
                reason = field_text(", ".join(filter(None, reasons)))[:_LONGEST_REASON]
                date, found = "", _DATE.match((row["RetractionDate"] or "").strip())
                if found is not None:
                    month, day = found["month"] or found["m"], found["day"] or found["d"]
                    date = f"{found['year'] or found['y']}-{int(month):02d}-{int(day):02d}"
                yield doi, Notice(kind, RETRACTION_WATCH, doi_in(row["RetractionDOI"]), date, reason)
    except csv.Error as error:
        raise InputError(f"{name}: cannot be read as CSV ({error}).", help=_HELP) from error
    finally:
        csv.field_size_limit(before)
