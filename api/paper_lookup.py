"""Looks papers up at metadata services, adds them by DOI or arXiv id, and syncs them from Zotero."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Awaitable, Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..documents.paper_names import Identifier, parse_identifier
from ..documents.pdf.ocr import choose_ocr
from ..errors import CiteloomError, InputError
from ..graph.session import Session
from ..ingestion.ingest import ingest as ingest_papers
from ..ingestion.ingest_events import IngestEvent
from ..metadata.adding import KnownPapers, NewPaper, fetch_pdf, keep_entry, keep_file, look_up, own_bib, read_bibs
from ..metadata.bib_entry import KeyPattern
from ..metadata.enriching import enrich_paper
from ..metadata.services import Services, open_services, service_hosts
from ..models.http.limiter import Clock
from ..models.journal.budget import bill_to
from ..settings.config import Settings
from ..stores.home import Home
from ..zotero.syncing import SyncReport, sync_reading, watch_zotero
from ..zotero.zotero_source import ZoteroReading, ZoteroRequest, read_zotero
from .arguments import one_or_more, require_writable
from .blocking import blocking

_SHOWN_CHARACTERS = 100  # of an invalid identifier


async def aenrich(
    session: Session,
    papers: Sequence[str] | str = (),
    *,
    offline: bool = False,
    refresh: bool = False,
    on_open: Callable[[str, int], None] = lambda _, __: None,
    on_paper: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Look papers up at metadata services; returns the JSON of `papers enrich --json`.

    Args:
        papers: their keys; all papers if omitted.
        offline: send nothing, use only cached answers of any age.
        refresh: ignore cached answers.
        on_open: called with services and paper count before anything is sent.
        on_paper: called with the record of each paper.

    Raises `UnknownPaperError`, and `ConfigurationError` if no service is configured.
    """
    require_writable(session)
    keys: tuple[str, ...] = one_or_more(papers)
    chosen = [await asyncio.to_thread(session.library.paper, key) for key in dict.fromkeys(keys)]
    chosen = chosen or await asyncio.to_thread(session.library.papers)
    records: list[dict[str, Any]] = []
    async with open_services(session.settings, session.library.metadata, offline=offline, refresh=refresh) as services:
        if not offline:
            on_open(service_hosts(session.settings), len(chosen))
        for paper in chosen:
            records.append(await enrich_paper(services, paper))
            on_paper(records[-1])
    return {"papers": records, "requests": services.traffic["requests"], "cached": services.traffic["cached"]}


async def aadd(
    session: Session,
    identifiers: Sequence[str] | str,
    *,
    download: bool = False,
    anyway: bool = False,
    offline: bool = False,
) -> dict[str, Any]:
    """Add papers by DOI or arXiv id; returns the JSON of `add --json`.

    Args:
        identifiers: DOIs or arXiv ids, bare or as links.
        download: fetch the free PDF if a service names one; otherwise index the abstract.
        anyway: add a paper even if its title and authors are in the library already.
        offline: send nothing, use only cached answers.

    Raises `InputError` for anything but DOIs and arXiv ids, `ConfigurationError` if no service is configured.
    """
    require_writable(session)
    options = Adding(agreed=lambda _: download, wants_file=download, anyway=anyway, offline=offline)
    return {"papers": await aadd_papers(session, parse_identifiers(one_or_more(identifiers)), options)}


@dataclass(frozen=True, slots=True)
class Adding:
    """Options and callbacks for adding papers by identifier.

    `agreed` decides whether to download a free PDF, `wants_file` whether to fetch one if the library has only the
    abstract; `bib` is the user's own file for the entries.
    """

    agreed: Callable[[NewPaper], bool]
    wants_file: bool = False
    anyway: bool = False
    offline: bool = False
    bib: Path | None = None
    on_open: Callable[[str, int], None] = lambda _, __: None
    on_event: Callable[[IngestEvent], None] = lambda _: None
    on_report: Callable[[dict[str, Any]], None] = lambda _: None
    on_notice: Callable[[str], None] = lambda _: None
    on_record: Callable[[dict[str, Any]], None] = lambda _: None


def parse_identifiers(texts: Sequence[str]) -> list[Identifier]:
    """Parse DOIs and arXiv ids, without repeats; raises `InputError` otherwise."""
    found: dict[str, Identifier] = {}
    for text in texts:
        identifier = parse_identifier(text)
        if identifier is None:
            raise InputError(
                f"{' '.join(text.split())[:_SHOWN_CHARACTERS]} is neither a DOI nor an arXiv id.",
                help="A DOI begins with 10., as in 10.1371/journal.pmed.0020124; an arXiv id is arXiv:1706.03762.",
            )
        found[identifier.doi] = identifier
    return list(found.values())


async def aadd_papers(
    session: Session, identifiers: Sequence[Identifier], options: Adding, *, run: str = ""
) -> list[dict[str, Any]]:
    """Add papers one by one, each finished before the next, embeddings billed to `run`; returns their records."""
    pattern = KeyPattern(session.settings.citation_key)
    records: list[dict[str, Any]] = []
    # New keys depend on existing ones, so only one process may add at a time.
    waiting = "Another process is adding papers; waiting for it."
    async with session.home.run_lock("add", lambda _: options.on_notice(waiting)):
        bibs = await asyncio.to_thread(read_bibs, session.home, options.bib)
        papers = await asyncio.to_thread(session.library.papers)
        known = await asyncio.to_thread(KnownPapers, papers, session.library.metadata, bibs)
        async with open_services(session.settings, session.library.metadata, offline=options.offline) as services:
            if not options.offline:
                options.on_open(service_hosts(session.settings), len(identifiers))
            with bill_to(run, session.budget(run)) if run else nullcontext():
                for identifier in identifiers:
                    records.append(await _add_one(session, services, options, identifier, known, pattern))
                    options.on_record(records[-1])
    return records


async def _add_one(
    session: Session,
    services: Services,
    options: Adding,
    identifier: Identifier,
    known: KnownPapers,
    pattern: KeyPattern,
) -> dict[str, Any]:
    """Add one paper; an error goes into its record, so the others are still added."""
    try:
        found = await look_up(services, identifier, known, pattern)
        if found.duplicate:
            source, abstract = session.library.paper(found.duplicate).source, f"{found.duplicate}.md"
            lacks_file = Path(source) == (session.home.added / abstract).resolve()
            if not (options.wants_file and lacks_file):
                return _addition_record(identifier, "duplicate", found, key=found.duplicate)
        elif found.similar and not options.anyway:
            why = f"{found.similar} has the same title and authors; --anyway adds this version too"
            return _addition_record(identifier, "similar", found, why=why)
        return await _index_paper(session, services, options, found)
    except CiteloomError as error:
        return _addition_record(identifier, "refused", why=f"{error.message} {error.help}".strip())


async def _index_paper(session: Session, services: Services, options: Adding, found: NewPaper) -> dict[str, Any]:
    """Save a paper's BibTeX entry, and index its free PDF or its abstract."""
    home, settings = session.home, session.settings
    why, pdf = "", None
    if found.pdfs and not options.offline and options.agreed(found):
        try:
            pdf = await fetch_pdf(services, found)
        except CiteloomError as error:
            why = f"{error.message} {error.help}".strip()
    await asyncio.to_thread(keep_entry, home, found, options.bib)
    file = await asyncio.to_thread(keep_file, home, found, pdf)
    if file is None:
        return _addition_record(found.identifier, "entry", found, why=why)
    report = await ingest_papers(
        session.library,
        [file],
        bib=own_bib(home),
        on_event=options.on_event,
        chunking=(settings.chunk_tokens, settings.chunk_overlap),
        ocr=choose_ocr(settings),
    )
    options.on_report(report.as_dict())
    refused = "; ".join(refusal.reason for refusal in report.refused)
    if pdf is not None:  # delete the abstract that the PDF replaces, or the PDF if refused
        await asyncio.to_thread((file if refused else file.with_suffix(".md")).unlink, missing_ok=True)
    if refused:
        return _addition_record(found.identifier, "refused", found, why=f"{file}: {refused}")
    return _addition_record(
        found.identifier, "added" if file.suffix == ".pdf" else "abstract", found, why=why, file=file
    )


def _addition_record(
    identifier: Identifier,
    outcome: str,
    found: NewPaper | None = None,
    *,
    key: str = "",
    why: str = "",
    file: Path | None = None,
) -> dict[str, Any]:
    return {
        "identifier": identifier.shown,
        "doi": identifier.doi,
        "outcome": outcome,
        "key": key or (found.key if found and outcome not in ("similar", "refused") else ""),
        "title": found.work.title if found else "",
        "why": why,
        "file": str(file) if file else "",
        "free_pdfs": [url for url, _ in found.pdfs] if found else [],
        **(found.status.as_dict() if found else {"status": "", "notices": []}),
        "failures": list(found.failures) if found else [],
    }


enrich = blocking(aenrich)
add = blocking(aadd)


async def async_zotero(
    session: Session,
    collections: Sequence[str] | str = (),
    *,
    group: str = "",
    prune: bool = False,
    dry_run: bool = False,
) -> dict[str, Any]:
    """Sync Zotero's items, including deletions, into the library; returns the JSON of `sync zotero --json`.

    Args:
        collections: names, paths or keys of collections, including subcollections; default: the whole library.
        group: name or id of a group whose library to sync instead of your own.
        prune: also remove papers that came only from earlier syncs of other collections.
        dry_run: change nothing, only report what would be done.

    Raises `ZoteroError` if neither Zotero's local API nor its database can be read, `InputError` for an unknown
    collection or group or a damaged state, and any error of the embedding model; finished papers are kept.
    """
    require_writable(session)
    request = ZoteroRequest(group, one_or_more(collections), prune)
    reading = await aread_zotero(session.settings, request)
    return (await async_reading(session, reading, request, dry_run=dry_run)).record


async def aread_zotero(
    settings: Settings, request: ZoteroRequest, on_notice: Callable[[str], None] = lambda _: None
) -> ZoteroReading:
    """Read the requested part of Zotero; raises `ZoteroError`, and `InputError` for an unknown group."""
    reading = await read_zotero(settings, request, on_notice=on_notice)
    assert reading is not None  # no version was given to compare with
    return reading


async def async_reading(
    session: Session,
    reading: ZoteroReading,
    request: ZoteroRequest,
    *,
    dry_run: bool = False,
    on_event: Callable[[IngestEvent], None] = lambda _: None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> SyncReport:
    """Apply a Zotero reading to the library, billed to a new run; raises what `async_zotero` raises."""
    run = f"sync-{secrets.token_hex(6)}"
    with bill_to(run, session.budget(run)):
        return await sync_reading(
            session.library,
            session.settings,
            reading,
            request,
            dry_run=dry_run,
            on_event=on_event,
            on_wait=lambda _: on_notice("Another process is syncing with Zotero; waiting for it."),
        )


sync_zotero = blocking(async_zotero)
