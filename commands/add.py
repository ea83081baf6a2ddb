"""add: papers by DOI or arXiv id."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..errors import DONE_WITH_REFUSALS, CiteloomError, InputError
from ..models.concurrency import run_async
from ..plurals import counted
from ..program import command
from .enrich import OfflineOption
from .escaping import one_line
from .options import HomeOption, JsonOption, command_session, resolve
from .output import ingest_progress, notice, result, result_json, warnings_and_refusals

if TYPE_CHECKING:
    from ..config import Settings
    from ..documents.identifiers import Identifier
    from ..graph.session import Session
    from ..metadata.adding import Found
    from ..metadata.services import Services

_SAID: Final = {
    "added": "added with its PDF",
    "abstract": "added; only its abstract is indexed",
    "entry": "its entry was made, but there is nothing to index",
    "duplicate": "is in the library already",
    "similar": "not added",
    "refused": "not added",
}


def register(app: typer.Typer) -> None:
    """Add the command to the command line."""
    app.command("add", rich_help_panel="Library")(add)


def add(
    identifiers: Annotated[list[str], typer.Argument(help="DOIs or arXiv ids, bare or as links.", show_default=False)],
    download: Annotated[
        bool | None,
        typer.Option(
            "--download/--no-download",
            help="Download the free PDF where a service names one.",
            show_default="asked on a terminal, else no",
        ),
    ] = None,
    bib: Annotated[
        Path | None,
        typer.Option("--bib", help="Also add the entries at the end of this .bib of yours.", show_default=False),
    ] = None,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Also add a paper whose title and authors are in the library already.")
    ] = False,
    offline: OfflineOption = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
) -> None:
    """Add papers by DOI or arXiv id: metadata, BibTeX entry and, where there is one, the free PDF.

    The entries go into a .bib of Citeloom's own, in the folder 'added' of the home; yours is only touched with --bib.
    Keys follow CITELOOM_CITATION_KEY, in Better BibTeX's terms. Without a PDF the abstract is indexed, until you ingest
    the paper's file. Exit code 4 means that some were not added, each named with its reason.

    Example: citeloom add 10.1371/journal.pmed.0020124 arXiv:1706.03762 --download
    """
    settings, found = resolve(home)
    asked = _parsed(identifiers)
    records = run_async(_add(settings, asked, found, bib, download, anyway=anyway, offline=offline))
    if as_json:
        result_json({"papers": records})
    else:
        for record in records:
            for line in _lines(record):
                result(line)
    if any(record["outcome"] in ("refused", "similar") or record["failures"] for record in records):
        raise typer.Exit(DONE_WITH_REFUSALS)


def _parsed(identifiers: Sequence[str]) -> list[Identifier]:
    from ..documents.identifiers import parse_identifier

    parsed = {text: parse_identifier(text) for text in identifiers}
    wrong = next((text for text, identifier in parsed.items() if identifier is None), None)
    if wrong is not None:
        raise InputError(
            f"{one_line(wrong)[:100]}: is neither a DOI nor an arXiv id.",
            help="A DOI begins with 10., as in 10.1371/journal.pmed.0020124; an arXiv id is arXiv:1706.03762.",
        )
    return list({identifier.doi: identifier for identifier in parsed.values() if identifier}.values())


async def _add(
    settings: Settings,
    identifiers: Sequence[Identifier],
    home: Any,
    bib: Path | None,
    download: bool | None,
    *,
    anyway: bool,
    offline: bool,
) -> list[dict[str, Any]]:
    import asyncio

    from ..metadata.adding import KnownPapers, bibs_in_use
    from ..metadata.citation_keys import KeyPattern
    from ..metadata.services import hosts_asked, open_services
    from ..stores.backends import backend_of

    pattern = KeyPattern(settings.citation_key)
    records: list[dict[str, Any]] = []
    with command_session(settings, home) as session:
        # Keys are chosen by what is there, so two processes must not add at once.
        adding = backend_of(session.home).run_lock(
            "add", lambda _: notice("Another process is adding papers; waiting for it.")
        )
        async with adding:
            bibs = await asyncio.to_thread(bibs_in_use, session.home, bib)
            papers = await asyncio.to_thread(session.library.papers)
            known = await asyncio.to_thread(KnownPapers.of, papers, session.metadata, bibs)
            async with open_services(settings, session.metadata, offline=offline) as services:
                if not offline:
                    notice(f"Asking {hosts_asked(settings)} about {counted(len(identifiers), 'paper')}.")
                one = _AddOne(settings, session, services, bib, download=download, anyway=anyway, offline=offline)
                for identifier in identifiers:
                    records.append(await one.run(identifier, known, pattern))
    return records


class _AddOne:
    """Adds one paper after the other, so that each is complete before the next is begun."""

    def __init__(
        self,
        settings: Settings,
        session: Session,
        services: Services,
        bib: Path | None,
        *,
        download: bool | None,
        anyway: bool,
        offline: bool,
    ) -> None:
        self._settings = settings
        self._session = session
        self._services = services
        self._bib = bib
        self._download = download
        self._anyway = anyway
        self._offline = offline

    async def run(self, identifier: Identifier, known: Any, pattern: Any) -> dict[str, Any]:
        """The record of one paper; an error is its reason, so that the others are added."""
        from ..metadata.adding import look_up

        try:
            found = await look_up(self._services, identifier, known, pattern)
            if found.duplicate and not self._lacks_file(found):
                return _record(identifier, "duplicate", found, key=found.duplicate)
            if found.similar and not self._anyway and not found.duplicate:
                why = f"{found.similar} has the same title and authors; --anyway adds this version too"
                return _record(identifier, "similar", found, why=why)
            return await self._added(found)
        except CiteloomError as error:
            return _record(identifier, "refused", why=f"{error.message} {error.help}".strip())

    def _lacks_file(self, found: Found) -> bool:
        """Whether the library has only the abstract, and a PDF is wanted."""
        paper = self._session.library.paper(found.duplicate)
        abstract = self._session.home.added / f"{found.duplicate}.md"
        return bool(self._download) and Path(paper.source) == abstract.resolve()

    async def _added(self, found: Found) -> dict[str, Any]:
        import asyncio

        from ..metadata.adding import fetch_pdf, keep_entry, keep_file

        home = self._session.home
        why, pdf = "", None
        if found.pdfs and not self._offline and self._agreed(found):
            try:
                pdf = await fetch_pdf(self._services, found)
            except CiteloomError as error:
                why = f"{error.message} {error.help}".strip()
        await asyncio.to_thread(keep_entry, home, found, self._bib)
        file = await asyncio.to_thread(keep_file, home, found, pdf)
        if file is None:
            return _record(found.identifier, "entry", found, why=why)
        refused = await self._ingest(file)
        if refused:
            return _record(found.identifier, "refused", found, why=f"{file}: {refused}")
        return _record(found.identifier, "added" if file.suffix == ".pdf" else "abstract", found, why=why, file=file)

    async def _ingest(self, file: Path) -> str:
        """Index one file; the reason if it was refused."""
        from ..ingestion.ingest import ingest
        from ..metadata.adding import own_bib

        settings = self._settings
        with ingest_progress() as show:
            report = await ingest(
                self._session.library,
                [file],
                bib=own_bib(self._session.home),
                on_event=show,
                chunk_tokens=settings.chunk_tokens,
                chunk_overlap=settings.chunk_overlap,
                pdf_reader=settings.pdf_reader,
            )
        warnings_and_refusals(report)
        return "; ".join(refusal.reason for refusal in report.refused)

    def _agreed(self, found: Found) -> bool:
        if self._download is not None:
            return self._download
        pdf = found.pdfs[0]
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            notice(f"{found.identifier.shown}: {pdf.service} names a free PDF, {pdf.url}; --download fetches it.")
            return False
        return typer.confirm(one_line(f"Download {pdf.url} ({pdf.service})?"), default=True, err=True)


def _record(
    identifier: Identifier,
    outcome: str,
    found: Found | None = None,
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


def _lines(record: dict[str, Any]) -> list[str]:
    named = f"{record['identifier']} ({record['key']})" if record["key"] else record["identifier"]
    lines = [one_line(f"{named}: {_SAID[record['outcome']]}{': ' + record['why'] if record['why'] else ''}")]
    lines[0] += "" if lines[0].endswith((".", "?")) else "."
    lines += [one_line(f"  {line}") for line in record["notices"]]
    if record["outcome"] == "entry":
        lines.append(f"  Get its file and add it: {command('ingest FILE --bib')} with the .bib in the folder 'added'.")
    return lines + [one_line(f"  Failed: {failure}") for failure in record["failures"]]
