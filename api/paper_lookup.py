"""Metadata services from Python: what they know of the library's papers, and papers added by DOI or arXiv id."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..documents.paper_names import Identifier, parse_identifier
from ..errors import CiteloomError, InputError
from ..graph.session import Session
from ..ingestion.ingest import ingest as ingest_papers
from ..ingestion.ingest_events import IngestEvent
from ..ingestion.reading import PdfReading
from ..metadata.adding import (
    KnownPapers,
    fetch_pdf,
    keep_entry,
    keep_file,
    look_up,
    own_bib,
    read_bibs,
)
from ..metadata.adding import (
    NewPaper as NewPaper,
)
from ..metadata.citation_keys import KeyPattern
from ..metadata.enriching import enrich as enrich_all
from ..metadata.services import Services, open_services, service_hosts
from ..models.journal.budget import bill_to
from ..stores.backends import backend_of
from .arguments import one_or_more, require_writable, requires_open
from .blocking import blocking

_IN_TEXT = 100  # characters of a wrong identifier in a message


@requires_open
async def aenrich(
    session: Session,
    papers: Sequence[str] | str = (),
    *,
    offline: bool = False,
    refresh: bool = False,
    on_open: Callable[[str, int], None] = lambda _, __: None,
    on_paper: Callable[[dict[str, Any]], None] = lambda _: None,
) -> dict[str, Any]:
    """Look papers up at the metadata services; returns the JSON of `papers enrich --json`.

    Args:
        session: an open library.
        papers: their keys; all papers if omitted.
        offline: send nothing, use only cached answers of any age.
        refresh: ask again for what is in the cache.
        on_open: called with the services and the number of papers before anything is sent.
        on_paper: called with the record of each paper.

    Raises `UnknownPaperError`, and `ConfigurationError` if no service is configured.
    """
    require_writable(session)
    keys: tuple[str, ...] = one_or_more(papers)
    chosen = [await asyncio.to_thread(session.library.paper, key) for key in dict.fromkeys(keys)]
    chosen = chosen or await asyncio.to_thread(session.library.papers)
    records: list[dict[str, Any]] = []
    async with open_services(session.settings, session.metadata, offline=offline, refresh=refresh) as services:
        if not offline:
            on_open(service_hosts(session.settings), len(chosen))
        async for found in enrich_all(services, chosen):
            records.append(found.as_dict())
            on_paper(records[-1])
    return {"papers": records, "requests": services.traffic.requests, "cached": services.traffic.cached}


@requires_open
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
        session: an open library.
        identifiers: DOIs or arXiv ids, bare or as links.
        download: get the free PDF where a service names one; otherwise the abstract is indexed.
        anyway: also add a paper whose title and authors are in the library already.
        offline: send nothing, use only cached answers.

    Raises `InputError` for what is neither a DOI nor an arXiv id, and `ConfigurationError` if no service is configured.
    """
    require_writable(session)
    options = Adding(agreed=lambda _: download, wants_file=download, anyway=anyway, offline=offline)
    return {"papers": await aadd_papers(session, parse_identifiers(one_or_more(identifiers)), options)}


@dataclass(frozen=True, slots=True)
class Adding:
    """How papers are added by identifier, with the callbacks that follow it.

    `agreed` decides on the download of a free PDF, `wants_file` whether one is fetched for a paper of which the library
    has only the abstract, `bib` is the user's own file for the entries.
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
    """The DOIs and arXiv ids, each once; raises `InputError` for anything else."""
    parsed = {text: parse_identifier(text) for text in texts}
    wrong = next((text for text, identifier in parsed.items() if identifier is None), None)
    if wrong is not None:
        raise InputError(
            f"{' '.join(wrong.split())[:_IN_TEXT]}: is neither a DOI nor an arXiv id.",
            help="A DOI begins with 10., as in 10.1371/journal.pmed.0020124; an arXiv id is arXiv:1706.03762.",
        )
    return list({identifier.doi: identifier for identifier in parsed.values() if identifier}.values())


async def aadd_papers(
    session: Session, identifiers: Sequence[Identifier], options: Adding, *, run: str = ""
) -> list[dict[str, Any]]:
    """Add papers one after the other, each complete before the next is begun, and return the record of each.

    Embeddings are billed to a `run` if one is named.
    """
    pattern = KeyPattern(session.settings.citation_key)
    records: list[dict[str, Any]] = []
    # Keys are chosen by what is there, so two processes must not add at once.
    waiting = "Another process is adding papers; waiting for it."
    async with backend_of(session.home).run_lock("add", lambda _: options.on_notice(waiting)):
        bibs = await asyncio.to_thread(read_bibs, session.home, options.bib)
        papers = await asyncio.to_thread(session.library.papers)
        known = await asyncio.to_thread(KnownPapers, papers, session.metadata, bibs)
        async with open_services(session.settings, session.metadata, offline=options.offline) as services:
            if not options.offline:
                options.on_open(service_hosts(session.settings), len(identifiers))
            with bill_to(run, session.budget(run)) if run else nullcontext():
                for identifier in identifiers:
                    records.append(await _AddOne(session, services, options).run(identifier, known, pattern))
                    options.on_record(records[-1])
    return records


@dataclass(frozen=True, slots=True)
class _AddOne:
    library: Session
    services: Services
    options: Adding

    async def run(self, identifier: Identifier, known: KnownPapers, pattern: KeyPattern) -> dict[str, Any]:
        """The record of one paper; an error is its reason, so that the others are added."""
        try:
            found = await look_up(self.services, identifier, known, pattern)
            if found.duplicate and not self._lacks_file(found):
                return _record(identifier, "duplicate", found, key=found.duplicate)
            if found.similar and not self.options.anyway and not found.duplicate:
                why = f"{found.similar} has the same title and authors; --anyway adds this version too"
                return _record(identifier, "similar", found, why=why)
            return await self._added(found)
        except CiteloomError as error:
            return _record(identifier, "refused", why=f"{error.message} {error.help}".strip())

    def _lacks_file(self, found: NewPaper) -> bool:
        """Whether the library has only the abstract, and a PDF is wanted."""
        paper = self.library.library.paper(found.duplicate)
        abstract = self.library.home.added / f"{found.duplicate}.md"
        return self.options.wants_file and Path(paper.source) == abstract.resolve()

    async def _added(self, found: NewPaper) -> dict[str, Any]:
        home = self.library.home
        why, pdf = "", None
        if found.pdfs and not self.options.offline and self.options.agreed(found):
            try:
                pdf = await fetch_pdf(self.services, found)
            except CiteloomError as error:
                why = f"{error.message} {error.help}".strip()
        await asyncio.to_thread(keep_entry, home, found, self.options.bib)
        file = await asyncio.to_thread(keep_file, home, found, pdf)
        if file is None:
            return _record(found.identifier, "entry", found, why=why)
        refused = await self._ingest(file)
        if pdf is not None:  # the whole paper takes the place of its abstract; one that is refused is not kept
            await asyncio.to_thread((file if refused else file.with_suffix(".md")).unlink, missing_ok=True)
        if refused:
            return _record(found.identifier, "refused", found, why=f"{file}: {refused}")
        return _record(found.identifier, "added" if file.suffix == ".pdf" else "abstract", found, why=why, file=file)

    async def _ingest(self, file: Path) -> str:
        """Index one file; the reason if it was refused."""
        settings = self.library.settings
        report = await ingest_papers(
            self.library.library,
            [file],
            bib=own_bib(self.library.home),
            on_event=self.options.on_event,
            chunk_tokens=settings.chunk_tokens,
            chunk_overlap=settings.chunk_overlap,
            pdf=PdfReading.of(settings),
        )
        self.options.on_report(report.as_dict())
        return "; ".join(refusal.reason for refusal in report.refused)


def _record(
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
        "free_pdfs": [pdf.url for pdf in found.pdfs] if found else [],
        **(found.status.as_dict() if found else {"status": "", "notices": []}),
        "failures": list(found.failures) if found else [],
    }


enrich = requires_open(blocking(aenrich))
add = requires_open(blocking(aadd))
add_papers = blocking(aadd_papers)
