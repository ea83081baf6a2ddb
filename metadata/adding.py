"""Adds papers by DOI or arXiv id: metadata, entry in a `.bib`, and a file to ingest where one can be had.

Every step is kept before the next, so that a command that was killed continues when it is given again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from ..documents import Paper
from ..documents.bibliography import Bibliography
from ..documents.paper_names import ARXIV_PREFIX, Identifier
from ..documents.publication_status import PublicationStatus
from ..errors import InputError
from ..stores.home import Home
from ..stores.metadata_store import MetadataStore
from .bib_entry import append_entries, bib_entry, bib_of, write_durably
from .citation_keys import KeyFields, KeyPattern
from .enriching import NOT_OF_THE_REGISTRAR, REGISTRARS, keep_said
from .matching import SURE, compare
from .open_access import DownloadError, download_pdf
from .services import Said, Services
from .work import Work

BIB_NAME: Final = "library.bib"
_ARXIV: Final = "arXiv"


@dataclass(frozen=True, slots=True)
class PdfLink:
    """A free PDF, and who names it."""

    url: str
    service: str


@dataclass(frozen=True, slots=True)
class Found:
    """A work to add: its key, and whether its entry has to be made (`entry`) or is there (empty).

    `duplicate` is the key of the same paper in the library, `similar` that of a paper with the same title and authors
    under another DOI, such as its preprint.
    """

    identifier: Identifier
    work: Work
    key: str
    entry: str = ""
    duplicate: str = ""
    similar: str = ""
    pdfs: tuple[PdfLink, ...] = ()
    status: PublicationStatus = field(default_factory=PublicationStatus)
    failures: tuple[str, ...] = ()


class UnknownIdentifierError(InputError):
    """No service knows this DOI or arXiv id."""

    default_help = "Check it, or add the paper's own file with '{citeloom} ingest'."


@dataclass(slots=True)
class KnownPapers:
    """What is there already: the papers of the library, and the entries of the `.bib` files by key."""

    papers: Sequence[Paper]
    dois: Mapping[str, str]
    entries: dict[str, Paper]

    @classmethod
    def of(cls, papers: Iterable[Paper], store: MetadataStore, bibs: Sequence[Bibliography]) -> KnownPapers:
        """Read what is there; blocks."""
        listed = list(papers)
        entries = {key: paper for bib in bibs for key, paper in bib.papers.items()}
        return cls(listed, store.dois(listed), entries)

    @property
    def keys(self) -> set[str]:
        """All keys that are in use."""
        return {paper.key for paper in self.papers} | set(self.entries)

    def key_of(self, doi: str) -> str:
        """The key of the library's paper with this DOI; empty if there is none."""
        return next((key for key, known in self.dois.items() if known == doi), "")

    def entry_of(self, doi: str) -> str:
        """The key of the entry with this DOI; empty if there is none."""
        return next((key for key, paper in self.entries.items() if paper.doi == doi), "")

    def similar_to(self, work: Work) -> str:
        """The key of a paper with the same title and authors under another DOI; empty if there is none."""
        for paper in self.papers:
            bare = replace(paper, venue="", year=work.year)
            if self.dois.get(paper.key) != work.doi and compare(bare, work).similarity >= SURE:
                return paper.key
        return ""


async def look_up(services: Services, identifier: Identifier, known: KnownPapers, pattern: KeyPattern) -> Found:
    """What the services know of an identifier, under the key that it has or will get; all of it is committed.

    Raises `UnknownIdentifierError` if no service knows it, and the first service's `ServiceError` if none answers.
    """
    said = await services.about(identifier)
    if not said.works:
        if said.failures:
            raise InputError(f"{identifier.shown}: {said.failures[0]}", help="Run the same command again later.")
        raise UnknownIdentifierError(f"{identifier.shown}: no service knows it.")
    await asyncio.to_thread(keep_said, services.store, identifier.doi, said, services.clock.time())
    work = merged(said.works, identifier.doi)
    key = known.entry_of(identifier.doi)
    entry = ""
    if not key:
        families = [author.family for author in work.authors]
        key = pattern.key(KeyFields(families, work.title, work.year, work.venue, work.kind), known.keys)
        entry = bib_entry(work, key)
        known.entries[key] = Paper(key, work.title, doi=identifier.doi)
    probe = Paper(key, work.title, doi=identifier.doi)
    statuses = await asyncio.to_thread(services.store.statuses, [probe])
    return Found(
        identifier,
        work,
        key,
        entry,
        duplicate=known.key_of(identifier.doi),
        similar=await asyncio.to_thread(known.similar_to, work),
        pdfs=tuple(_pdf_links(said, identifier)),
        status=statuses.get(key, PublicationStatus()),
        failures=tuple(said.failures),
    )


def merged(works: Sequence[Work], doi: str) -> Work:
    """One work from what several services say: each field from the first that gives it, most authoritative first.

    What describes the publication is the registrar's alone, if it answered: others may mean the article of a preprint.
    """
    first = works[0]
    names = set(NOT_OF_THE_REGISTRAR)
    if first.service not in REGISTRARS:
        names |= {"authors", "year", "venue", "volume", "issue", "pages", "publisher", "kind"}
    values = {name: next(filter(None, (getattr(work, name) for work in works)), getattr(first, name)) for name in names}
    return replace(first, doi=doi, **values)


def _pdf_links(said: Said, identifier: Identifier) -> list[PdfLink]:
    links = {work.open_access: work.service for work in reversed(said.works) if work.open_access}
    found = [PdfLink(url, service) for url, service in reversed(links.items())]
    if identifier.doi.startswith(ARXIV_PREFIX):
        found.append(PdfLink(f"https://arxiv.org/pdf/{identifier.arxiv}", _ARXIV))
    return found


async def fetch_pdf(services: Services, found: Found) -> bytes:
    """The first of a work's free PDFs that can be had; raises the `DownloadError` of the first if none can."""
    addresses = {client.address.name: client.address.base_url for client in services.clients.values()}
    errors: list[DownloadError] = []
    for pdf in found.pdfs:
        try:
            return await download_pdf(services.http, pdf.url, named_by=addresses.get(pdf.service, ""))
        except DownloadError as error:
            errors.append(error)
    raise errors[0] if errors else DownloadError(f"{found.identifier.shown}: no service names a free PDF.")


def own_bib(home: Home) -> Path:
    """The `.bib` that Citeloom makes."""
    return home.added / BIB_NAME


def bibs_in_use(home: Home, users: Path | None) -> list[Bibliography]:
    """The entries of Citeloom's own `.bib` and of the user's, if it was named; raises `InputError`."""
    return [bib_of(path) for path in (own_bib(home), *([users] if users else []))]


def keep_entry(home: Home, found: Found, users: Path | None) -> None:
    """Write the entry into the user's `.bib` if it was named, and into Citeloom's own for the ingest; blocks."""
    own = bib_of(own_bib(home))
    if found.entry:
        if users is not None:
            append_entries(users, [found.entry])
        append_entries(own_bib(home), [found.entry])
    elif found.key not in own.papers and users is not None:
        append_entries(own_bib(home), [bib_of(users).papers[found.key].bibtex])


def keep_file(home: Home, found: Found, pdf: bytes | None) -> Path | None:
    """The file to ingest, under the paper's key: its PDF, else its abstract; None if there is neither. Blocks.

    Raises `InputError` if it cannot be written.
    """
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
    """The markdown that is indexed for a paper of which only the abstract is known."""
    text = abstract if abstract[0].isalnum() else f"\\{abstract}"
    return f"# {' '.join(title.split())}\n\n## Abstract\n\n{text}\n"
