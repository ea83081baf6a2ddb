"""ingest, add and sync: add papers from files (optionally on Ray), by DOI or arXiv id, or from Zotero."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from typer.core import TyperCommand

from .. import api
from ..api import blocking, run_options
from ..api.messages import command, counted
from ..api.run_options import Shown
from ..errors import DONE, DONE_WITH_REFUSALS, InputError, PausedError
from .options import JsonOption, command_group, command_on_home, resolve
from .output import (
    Printed,
    ingest_progress,
    name_refused_figures,
    notice,
    notice_command,
    one_line,
    print_warnings,
    result,
    result_json,
)

_LOCAL: Final = "local"
# Valid values of --ray; anything else is the next argument.
_ADDRESS: Final = re.compile(r"local|auto|ray://\S*|[^/\s]*:\d+")
_OUTCOMES: Final = {
    "added": "added with its PDF",
    "abstract": "added; only its abstract is indexed",
    "entry": "its entry was made, but there is nothing to index",
    "duplicate": "is in the library already",
    "similar": "not added",
    "refused": "not added",
}

OfflineOption = Annotated[bool, "Send nothing; use only cached answers, of any age."]


class RayCommand(TyperCommand):
    """A command whose `--ray` value is optional."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse arguments, after adding a local cluster's address to each `--ray` without one."""
        if "" in args:  # as a path, "" is the current folder
            raise InputError("An empty path was given.", help="Name the folder that holds your papers.")
        return super().parse_args(ctx, with_ray_address(args))


def with_ray_address(arguments: list[str]) -> list[str]:
    """Add a local cluster's address after each `--ray` without a value."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    whole: list[str] = []
    for place, argument in enumerate(options):
        whole.append(argument)
        following = options[place + 1] if place + 1 < len(options) else ""
        if argument == "--ray" and not _ADDRESS.fullmatch(following):
            whole.append(_LOCAL)
    return [*whole, *arguments[len(options) :]]


def ingest(
    paths: Annotated[list[Path], "Papers (PDF, markdown, docx, LaTeX, JATS, HTML, epub), or folders to walk."],
    options: run_options.IngestOptions,
    limits: run_options.BudgetOptions,
    ray: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help="Read, chunk and embed on a Ray cluster: host:port, ray://host:port, 'auto' for the cluster on this "
            "computer; without ADDRESS, one is started here. Needs the extra 'ray'.",
        ),
    ] = None,
    ray_workers: Annotated[
        int | None,
        typer.Option(min=1, help="Ray tasks that run at the same time.", show_default="the CPUs of the cluster"),
    ] = None,
) -> Printed:
    """Index papers and embed what is new.

    A second ingest embeds nothing; for an edited file only what changed is embedded. A paper is matched to its BibTeX
    entry by file name, 'file' field, DOI or title; without an entry it is indexed with a warning. Exit code 4 means
    that some files or entries were refused, each named with its reason; the others are indexed.
    KEY.notes.md beside a paper is your note on it, which 'find' searches and nothing cites.
    --ocr reads scanned pages with tesseract, in the languages of CITELOOM_OCR_LANGUAGES, and marks their text.
    The limits count the requests of this ingest, including embeddings; each further ingest starts a new count.
    With CITELOOM_VISION_MODEL, figures are described once the papers are ready; figures that cannot be described are
    named, and 'papers describe' continues with them.
    --ray spreads reading, chunking and embedding over a Ray cluster; the library is the same as without it.

    Example: citeloom ingest my-library/ --bib my-library/library.bib
    """
    if ray is None and ray_workers is not None:
        raise InputError("--ray-workers was given without --ray.")
    cluster = api.ingesting.ray_request(ray or False, ray_workers)
    settings, found = resolve(**limits.changes())
    sources = None
    if not found.exists():
        sources = blocking.run_async(api.ingesting.aread_for_new_home(settings, found, paths, options, cluster))
    if sources is not None and not sources.found:
        record, stopped = api.ingesting.refused_record(sources), None
        print_warnings(record)
    else:
        with api.homes.open_home(settings, found, notice) as session, ingest_progress() as show:
            given: dict[str, Any] = {"ray": cluster, "sources": sources, "on_report": print_warnings}
            outcome = blocking.run_async(api.ingesting.aingest_papers(session, paths, options, on_event=show, **given))
        record, stopped = outcome.as_dict(), outcome.stopped
    lines = [
        f"{counted(record['papers_added'], 'paper')} added, {record['papers_updated']} updated, "
        f"{record['papers_unchanged']} unchanged, {record['papers_removed']} removed; "
        f"{counted(record['chunks_embedded'], 'chunk')} embedded in {record['seconds']:.1f} s."
    ]
    figures = record.get("figures", {"refused": []})
    if "described" in figures:
        lines.append(f"{counted(figures['described'], 'figure')} described.")
    name_refused_figures(figures)
    if stopped is not None:
        notice(f"The papers are ingested, but not all figures are described: {stopped}")
        notice_command("Continue with:", command_on_home("papers describe"))
    failed = record["refused"] or stopped is not None or figures["refused"]
    refused = stopped.exit_code if isinstance(stopped, PausedError) else DONE_WITH_REFUSALS
    return Printed(record, lambda _: lines, refused if failed else DONE)


ingest.command_class = RayCommand  # type: ignore[attr-defined]  # read by `cli.py`


def add(
    identifiers: Annotated[list[str], "DOIs or arXiv ids, bare or as links."],
    download: Annotated[
        bool | None,
        "Download the free PDF where a service names one.",
        Shown("--download/--no-download", "asked on a terminal, else no"),
    ] = None,
    bib: Annotated[Path | None, "Also append the entries to this .bib file."] = None,
    anyway: Annotated[bool, "Also add a paper whose title and authors are in the library already."] = False,
    offline: OfflineOption = False,
) -> Printed:
    """Add papers by DOI or arXiv id: metadata, BibTeX entry and, if available, the free PDF.

    The entries go into a .bib in the folder 'added' of the home; your own .bib is only changed with --bib. Keys follow
    CITELOOM_CITATION_KEY, in Better BibTeX's syntax. Without a PDF the abstract is indexed, until you ingest the
    paper's file. Exit code 4 means that some were not added, each named with its reason.

    Example: citeloom add 10.1371/journal.pmed.0020124 arXiv:1706.03762 --download
    """

    def agreed(work: api.paper_lookup.NewPaper) -> bool:
        if download is not None:
            return download
        url, service = work.pdfs[0]
        if not (sys.stdin.isatty() and sys.stderr.isatty()):
            notice(f"{work.identifier.shown}: {service} names a free PDF, {url}; --download fetches it.")
            return False
        return typer.confirm(one_line(f"Download {url} ({service})?"), default=True, err=True)

    settings, found = resolve()
    wanted = api.paper_lookup.parse_identifiers(identifiers)
    with api.homes.open_home(settings, found, notice) as session, ingest_progress() as show:
        options = api.paper_lookup.Adding(
            agreed=agreed,
            wants_file=bool(download),
            anyway=anyway,
            offline=offline,
            bib=bib,
            on_open=lambda hosts, count: notice(f"Asking {hosts} about {counted(count, 'paper')}."),
            on_event=show,
            on_report=print_warnings,
            on_notice=notice,
        )
        records = blocking.run_async(api.paper_lookup.aadd_papers(session, wanted, options))
    failed = any(record["outcome"] in ("refused", "similar") or record["failures"] for record in records)
    return Printed({"papers": records}, _addition_lines, DONE_WITH_REFUSALS if failed else DONE)


def _addition_lines(added: dict[str, Any]) -> Iterator[str]:
    for record in added["papers"]:
        named = f"{record['identifier']} ({record['key']})" if record["key"] else record["identifier"]
        line = one_line(f"{named}: {_OUTCOMES[record['outcome']]}{': ' + record['why'] if record['why'] else ''}")
        yield line if line.endswith((".", "?")) else f"{line}."
        yield from (one_line(f"  {text}") for text in record["notices"])
        if record["outcome"] == "entry":
            yield f"  Get its file and add it: {command('ingest FILE --bib')} with the .bib in the folder 'added'."
        yield from (one_line(f"  Failed: {failure}") for failure in record["failures"])


sync_app = command_group("Keep the library in step with Zotero.")
sync_app.callback()(lambda: None)  # otherwise Typer merges a group with its only command
_MAX_TITLES: Final = 5  # shown titles of items without a file


@sync_app.command("zotero")
def sync_zotero(
    collection: Annotated[
        list[str] | None,
        "Only this collection and those below it, by name, path (Thesis/Methods) or key; may be repeated.",
        Shown(default="the whole library"),
    ] = None,
    group: Annotated[str, "The library of this group, by name or id.", Shown(default="your own library")] = "",
    prune: Annotated[bool, "Also remove papers that came only from collections synced earlier."] = False,
    dry_run: Annotated[bool, "Only say what would change."] = False,
    watch: Annotated[bool, "Sync again whenever Zotero changes, until Ctrl-C (CITELOOM_ZOTERO_SECONDS)."] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring Zotero's items with their files and notes into the library; remove what was deleted in Zotero.

    Reads the local API of a running Zotero, else its database in ~/Zotero; CITELOOM_ZOTERO names another address or
    folder. Nothing is ever written to Zotero. Keys are Better BibTeX's, else they follow CITELOOM_CITATION_KEY.
    Syncing again embeds nothing and reads no file again. Notes and annotations become your note on a paper, which
    is searched but never cited. If an item has no readable file, its abstract is indexed. Only papers added by a sync
    are removed. Exit code 4 means that some items were refused, each named with its reason.

    Example: citeloom sync zotero --collection Thesis --watch
    """
    if watch and dry_run:
        raise InputError("--watch and --dry-run cannot be combined.", help="Give one of them.")
    settings, found = resolve()
    lookup = api.paper_lookup
    request = lookup.ZoteroRequest(group, tuple(collection or ()), prune)
    in_progress = False

    async def sync(reading: api.paper_lookup.ZoteroReading) -> api.paper_lookup.SyncReport:
        nonlocal in_progress
        in_progress = True
        with api.homes.open_home(settings, found, notice) as session, ingest_progress() as show:
            listeners: dict[str, Any] = {"on_event": show, "on_notice": notice}
            report = await lookup.async_reading(session, reading, request, dry_run=dry_run, **listeners)
        in_progress = False
        print_warnings(report.record)
        if as_json:
            result_json(report.record)
        else:
            result(*(one_line(line) for line in _sync_lines(report.record)))
        return report

    async def sync_once() -> api.paper_lookup.SyncReport:
        return await sync(await lookup.aread_zotero(settings, request, notice))

    if not watch:
        if blocking.run_async(sync_once()).record["refused"]:
            raise typer.Exit(DONE_WITH_REFUSALS)
        return
    notice(f"Watching Zotero every {settings.zotero_seconds:g} s; stop with Ctrl-C.")
    try:
        blocking.run_async(lookup.watch_zotero(settings, found, request, sync, lookup.Clock(), notice))
    except KeyboardInterrupt:  # a clean end unless a sync is in progress
        if in_progress:
            raise
        notice("Stopped watching.")


def _sync_lines(record: dict[str, Any]) -> Iterator[str]:
    would = " would be" if record["dry_run"] else ""
    yield from (f"Renamed {paper['from']} to {paper['to']}." for paper in record["renamed"])
    for paper in record["removed"]:
        yield f"{'To remove:' if would else 'Removed'} {paper['key']}: {paper['why']}."
    if record["abstract_only"]:
        yield f"{counted(len(record['abstract_only']), 'paper')} without a readable file: only the abstract is indexed."
    if lacking := record["without_file"]:
        named = "; ".join(f"{item['title'] or 'untitled'} ({item['item']})" for item in lacking[:_MAX_TITLES])
        more = f"; and {len(lacking) - _MAX_TITLES} more" if len(lacking) > _MAX_TITLES else ""
        yield f"{counted(len(lacking), 'item')} with neither a file nor an abstract left out: {named}{more}."
    yield (
        f"{record['library']}, {counted(record['items'], 'item')}:{would} {counted(len(record['added']), 'paper')} "
        f"added, {len(record['updated'])} updated, {record['unchanged']} unchanged, {len(record['removed'])} removed; "
        f"{counted(record['chunks_embedded'], 'chunk')} embedded in {record['seconds']:.1f} s."
    )
