"""add: papers by DOI or arXiv id."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..errors import DONE_WITH_REFUSALS
from ..models.concurrency import run_async
from ..plurals import counted
from ..program import command
from .enrich import OfflineOption
from .escaping import one_line
from .options import HomeOption, JsonOption, command_session, resolve
from .output import ingest_progress, notice, result, result_json, warnings_and_refusals

if TYPE_CHECKING:
    from ..documents.paper_names import Identifier
    from ..metadata.adding import NewPaper
    from ..settings.config import Settings

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
    from ..api.paper_lookup import identifiers_of

    settings, found = resolve(home)
    asked = identifiers_of(identifiers)
    records = run_async(_add(settings, asked, found, bib, download, anyway=anyway, offline=offline))
    if as_json:
        result_json({"papers": records})
    else:
        for record in records:
            for line in _lines(record):
                result(line)
    if any(record["outcome"] in ("refused", "similar") or record["failures"] for record in records):
        raise typer.Exit(DONE_WITH_REFUSALS)


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
    from ..api.paper_lookup import Adding, add_each
    from ..metadata.services import service_hosts

    def opened() -> None:
        if not offline:
            notice(f"Asking {service_hosts(settings)} about {counted(len(identifiers), 'paper')}.")

    with command_session(settings, home) as session, ingest_progress() as show:
        how = Adding(
            agreed=lambda found: _agreed(found, download),
            wants_file=bool(download),
            anyway=anyway,
            offline=offline,
            bib=bib,
            on_open=opened,
            on_event=show,
            on_report=warnings_and_refusals,
            on_notice=notice,
        )
        return [record async for record in add_each(session, identifiers, how)]


def _agreed(found: NewPaper, download: bool | None) -> bool:
    if download is not None:
        return download
    pdf = found.pdfs[0]
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        notice(f"{found.identifier.shown}: {pdf.service} names a free PDF, {pdf.url}; --download fetches it.")
        return False
    return typer.confirm(one_line(f"Download {pdf.url} ({pdf.service})?"), default=True, err=True)


def _lines(record: dict[str, Any]) -> list[str]:
    named = f"{record['identifier']} ({record['key']})" if record["key"] else record["identifier"]
    lines = [one_line(f"{named}: {_SAID[record['outcome']]}{': ' + record['why'] if record['why'] else ''}")]
    lines[0] += "" if lines[0].endswith((".", "?")) else "."
    lines += [one_line(f"  {line}") for line in record["notices"]]
    if record["outcome"] == "entry":
        lines.append(f"  Get its file and add it: {command('ingest FILE --bib')} with the .bib in the folder 'added'.")
    return lines + [one_line(f"  Failed: {failure}") for failure in record["failures"]]
