"""Adds papers by DOI or arXiv id; each step is stored before the next, so that a killed command can continue."""

from __future__ import annotations

import asyncio
import ipaddress
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from ..documents import Paper
from ..documents.bibliography import Bibliography
from ..documents.paper_names import ARXIV_PREFIX, Identifier
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..models.http.failures import RedirectedError, classify_failure, one_line
from ..settings.key_trust import host_of
from ..stores.home import Home
from ..stores.metadata_store import MetadataStore
from .bib_entry import KeyFields, KeyPattern, append_entries, bib_entry, read_bib, write_durably
from .enriching import FROM_ANY_SERVICE, REGISTRARS, store_responses
from .matching import SURE, compare
from .service_client import fetch
from .service_works import Work
from .services import Services

if TYPE_CHECKING:
    import httpx

BIB_NAME: Final = "library.bib"
_ARXIV: Final = "arXiv"
_MOST_BYTES: Final = 100_000_000  # of a PDF
_DOWNLOAD_TIMEOUT: Final = 300.0
_PDF: Final = b"%PDF-"
_START: Final = 1024  # readers accept the mark within the first kilobyte


@dataclass(frozen=True, slots=True)
class NewPaper:
    """A work to add under a key."""

    identifier: Identifier
    work: Work
    key: str
    entry: str = ""  # empty if there already is one
    duplicate: str = ""  # the key of the same paper in the library
    similar: str = ""  # the key of a paper with the same title and authors under another DOI, such as a preprint
    pdfs: tuple[tuple[str, str], ...] = ()  # links to free PDFs, each with the service that names it
    status: PublicationStatus = field(default_factory=PublicationStatus)
    failures: tuple[str, ...] = ()


class UnknownIdentifierError(InputError):
    """No service knows this DOI or arXiv id."""

    default_help = "Check it, or add the paper's own file with '{citeloom} ingest'."


class KnownPapers:
    """The papers of the library and the `.bib` entries, against which a new paper is compared; blocks."""

    def __init__(self, papers: Iterable[Paper], store: MetadataStore, bibs: Sequence[Bibliography]) -> None:
        self.papers = list(papers)
        self.dois = store.dois(self.papers)
        self.entries = {key: paper for bib in bibs for key, paper in bib.papers.items()}

    @property
    def keys(self) -> set[str]:
        return {paper.key for paper in self.papers} | set(self.entries)

    def similar_to(self, work: Work) -> str:
        """The key of a paper with the same title and authors under another DOI; empty if there is none."""
        for paper in self.papers:
            bare = replace(paper, venue="", year=work.year)
            if self.dois.get(paper.key) != work.doi and compare(bare, work).similarity >= SURE:
                return paper.key
        return ""


async def look_up(services: Services, identifier: Identifier, known: KnownPapers, pattern: KeyPattern) -> NewPaper:
    """Look up an identifier at the services and commit all responses.

    Raises `UnknownIdentifierError` if no service knows it, and the first service's `ServiceError` if none answers.
    """
    responses = await services.look_up(identifier)
    if not responses.works:
        if responses.failures:
            raise InputError(f"{identifier.shown}: {responses.failures[0]}", help="Run the same command again later.")
        raise UnknownIdentifierError(f"{identifier.shown}: no service knows it.")
    await asyncio.to_thread(store_responses, services.store, identifier.doi, responses, services.clock.time())
    work = merge_works(responses.works, identifier.doi)
    entry = ""
    if not (key := next((key for key, paper in known.entries.items() if paper.doi == identifier.doi), "")):
        families = [author.family for author in work.authors]
        key = pattern.key(KeyFields(families, work.title, work.year, work.venue, work.kind), known.keys)
        entry = bib_entry(work, key)
        known.entries[key] = Paper(key, work.title, doi=identifier.doi)
    links = {work.open_access: work.service for work in reversed(responses.works) if work.open_access}
    pdfs = list(reversed(links.items()))
    if identifier.doi.startswith(ARXIV_PREFIX):
        pdfs.append((f"https://arxiv.org/pdf/{identifier.arxiv}", _ARXIV))
    statuses = await asyncio.to_thread(services.store.statuses, [Paper(key, work.title, doi=identifier.doi)])
    return NewPaper(
        identifier,
        work,
        key,
        entry,
        duplicate=next((key for key, doi in known.dois.items() if doi == identifier.doi), ""),
        similar=await asyncio.to_thread(known.similar_to, work),
        pdfs=tuple(pdfs),
        status=statuses.get(key, PublicationStatus()),
        failures=tuple(responses.failures),
    )


def merge_works(works: Sequence[Work], doi: str) -> Work:
    """Merge several services' works, most authoritative first: each field comes from the first work that has it.

    Publication fields come only from the registrar, if it answered; for a preprint, others may describe the article.
    """
    first = works[0]
    names = set(FROM_ANY_SERVICE)
    if first.service not in REGISTRARS:
        names |= {"authors", "year", "venue", "volume", "issue", "pages", "publisher", "kind"}
    values = {name: next(filter(None, (getattr(work, name) for work in works)), getattr(first, name)) for name in names}
    return replace(first, doi=doi, **values)


class DownloadError(InputError):
    """A free PDF could not be downloaded; nothing was stored."""


async def fetch_pdf(services: Services, found: NewPaper) -> bytes:
    """Download the first available free PDF of a work; raises the first `DownloadError` if there is none."""
    addresses = {client.name: client.base_url for client in services.clients.values()}
    errors: list[DownloadError] = []
    for url, service in found.pdfs:
        try:
            return await _download(services.http, url, addresses.get(service, ""))
        except DownloadError as error:
            errors.append(error)
    raise errors[0] if errors else DownloadError(f"{found.identifier.shown}: no service names a free PDF.")


async def _download(http: httpx.AsyncClient, url: str, service: str) -> bytes:
    """Follow https links to public hosts, and any link on the service's own host; raises `DownloadError`."""
    host, remedy = host_of(url), f"Download it yourself: {url}"
    try:
        parts, own = urlsplit(url), urlsplit(service)
        name = parts.hostname or ""
        is_service = bool(service) and (parts.scheme, name, parts.port) == (own.scheme, own.hostname, own.port)
        allowed = is_service or (parts.scheme == "https" and parts.username is None and _is_public(name))
    except ValueError:
        allowed = False
    if not allowed:
        raise DownloadError(f"{host} is not a public https address, so nothing was downloaded.")
    try:
        async with asyncio.timeout(_DOWNLOAD_TIMEOUT):
            body = await fetch(http, url, {"Accept": "application/pdf"}, _MOST_BYTES)
    except RedirectedError as error:
        raise DownloadError(f"{host} was not read, since it redirects {error}.", help=remedy) from error
    except Exception as error:
        failure = classify_failure(error)
        if failure is None:
            raise
        reason = one_line(failure.reason) or failure.kind
        raise DownloadError(f"{host} sent no file ({reason}).", help=remedy) from error
    if _PDF not in body[:_START]:
        raise DownloadError(f"{host} sent a file that is not a PDF.", help=remedy)
    return body


def _is_public(host: str) -> bool:
    if "." not in host or host.endswith((".local", ".internal")):
        return False
    try:
        return ipaddress.ip_address(host).is_global
    except ValueError:
        return True


def own_bib(home: Home) -> Path:
    return home.added / BIB_NAME


def read_bibs(home: Home, users: Path | None) -> list[Bibliography]:
    """Read the entries of Citeloom's own `.bib` and of the user's, if given; raises `InputError`."""
    return [read_bib(path) for path in (own_bib(home), users) if path]


def keep_entry(home: Home, found: NewPaper, users: Path | None) -> None:
    """Write the entry into the user's `.bib`, if given, and into Citeloom's own for ingestion; blocks."""
    own = read_bib(own_bib(home))
    if found.entry:
        if users is not None:
            append_entries(users, [found.entry])
        append_entries(own_bib(home), [found.entry])
    elif found.key not in own.papers and users is not None:
        append_entries(own_bib(home), [read_bib(users).papers[found.key].bibtex])


def keep_file(home: Home, found: NewPaper, pdf: bytes | None) -> Path | None:
    """Store the file to ingest: the paper's PDF, else its abstract, else None. Blocks; raises `InputError`."""
    file, abstract = home.added / f"{found.key}.pdf", home.added / f"{found.key}.md"
    if pdf is None and file.is_file():
        return file
    try:
        if pdf is not None:
            write_durably(file, pdf)
            return file
        if found.work.abstract:
            write_durably(abstract, abstract_page(found.work.title, found.work.abstract).encode("utf-8"))
            return abstract
    except OSError as error:
        raise InputError(f"{home.added}: cannot be written ({error.strerror}).") from error
    return None


def abstract_page(title: str, abstract: str) -> str:
    """The Markdown to index for a paper without a file."""
    text = abstract if abstract[0].isalnum() else f"\\{abstract}"
    return f"# {' '.join(title.split())}\n\n## Abstract\n\n{text}\n"
