"""sync zotero: sync Zotero's items into the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..api.messages import counted
from ..errors import DONE_WITH_REFUSALS, InputError
from .options import JsonOption, command_session, resolve
from .output import ingest_progress, notice, result, result_json, warnings_and_refusals
from .terminal_text import one_line

if TYPE_CHECKING:
    from ..api.zotero_sync import SyncReport, ZoteroReading

sync_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Keep the library in step with Zotero.")
_MAX_TITLES: Final = 5  # items without a file


@sync_app.callback()
def _sync() -> None:
    """Keep the library in step with a reference manager."""


@sync_app.command("zotero")
def sync_zotero(
    collection: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this collection and those below it, by name, path (Thesis/Methods) or key; may be repeated.",
            show_default="the whole library",
        ),
    ] = None,
    group: Annotated[
        str, typer.Option(help="The library of this group, by name or id.", show_default="your own library")
    ] = "",
    prune: Annotated[bool, "Also remove papers that came only from collections synced earlier."] = False,
    dry_run: Annotated[bool, "Only say what would change."] = False,
    watch: Annotated[bool, "Sync again whenever Zotero changes, until Ctrl-C (CITELOOM_ZOTERO_SECONDS)."] = False,
    as_json: JsonOption = False,
) -> None:
    """Bring Zotero's items with their files and notes into the library; remove what was deleted in Zotero.

    Reads the local API of a running Zotero, else its database in ~/Zotero; CITELOOM_ZOTERO names another address or
    folder. Nothing is ever written to Zotero. Keys are Better BibTeX's, else they follow CITELOOM_CITATION_KEY.
    Syncing again embeds nothing and reads no file again. Notes and annotations become your note on a paper, which
    is found but never cited. If an item has no readable file, its abstract is indexed. Only papers added by a sync
    are removed. Exit code 4 means that some items were refused, each named with its reason.

    Example: citeloom sync zotero --collection Thesis --watch
    """
    from ..api.blocking import run_async
    from ..api.zotero_sync import ZoteroRequest, aread_zotero, async_reading, awatch_zotero

    if watch and dry_run:
        raise InputError("--watch and --dry-run exclude each other.", help="Give one of them.")
    settings, found = resolve()
    request = ZoteroRequest(group, tuple(collection or ()), prune)
    in_progress = False

    async def sync(reading: ZoteroReading) -> SyncReport:
        nonlocal in_progress
        in_progress = True
        with command_session(settings, found) as session, ingest_progress() as show:
            report = await async_reading(session, reading, request, dry_run=dry_run, on_event=show, on_notice=notice)
        in_progress = False
        warnings_and_refusals(report.record)
        if as_json:
            result_json(report.record)
        else:
            for line in _sync_lines(report.record):
                result(one_line(line))
        return report

    async def sync_once() -> SyncReport:
        return await sync(await aread_zotero(settings, request, notice))

    if not watch:
        if run_async(sync_once()).record["refused"]:
            raise typer.Exit(DONE_WITH_REFUSALS)
        return
    notice(f"Watching Zotero every {settings.zotero_seconds:g} s; stop with Ctrl-C.")
    try:
        run_async(awatch_zotero(settings, found, request, sync, notice))
    except KeyboardInterrupt:  # a clean end unless a sync is in progress
        if in_progress:
            raise
        notice("Stopped watching.")


def _sync_lines(record: dict[str, Any]) -> Iterator[str]:
    would = " would be" if record["dry_run"] else ""
    for paper in record["renamed"]:
        yield f"Renamed {paper['from']} to {paper['to']}."
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
