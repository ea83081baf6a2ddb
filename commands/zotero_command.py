"""sync zotero: sync Zotero's items into the library."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ..api.messages import counted
from ..errors import DONE_WITH_REFUSALS, InputError
from .options import HomeOption, JsonOption, command_session, resolve
from .output import ingest_progress, notice, result, result_json, warnings_and_refusals
from .terminal_text import one_line

if TYPE_CHECKING:
    from ..api.homes import Home
    from ..api.zotero_sync import SyncReport, ZoteroReading, ZoteroRequest
    from ..settings.config import Settings

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
            "--collection",
            help="Only this collection and those below it, by name, path (Thesis/Methods) or key; may be repeated.",
            show_default="the whole library",
        ),
    ] = None,
    group: Annotated[
        str, typer.Option("--group", help="The library of this group, by name or id.", show_default="your own library")
    ] = "",
    prune: Annotated[
        bool, typer.Option("--prune", help="Also remove papers that came only from collections synced earlier.")
    ] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would change.")] = False,
    watch: Annotated[
        bool,
        typer.Option("--watch", help="Sync again whenever Zotero changes, until Ctrl-C (CITELOOM_ZOTERO_SECONDS)."),
    ] = False,
    as_json: JsonOption = False,
    home: HomeOption = None,
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
    from ..api.zotero_sync import ZoteroRequest

    if watch and dry_run:
        raise InputError("--watch and --dry-run exclude each other.", help="Give one of them.")
    settings, found = resolve(home)
    request = ZoteroRequest(group, tuple(collection or ()), prune)
    syncing = _PrintedSync(settings, found, request, as_json=as_json, dry_run=dry_run)
    if not watch:
        report = run_async(syncing.run_once())
        if report.refused:
            raise typer.Exit(DONE_WITH_REFUSALS)
        return
    notice(f"Watching Zotero every {settings.zotero_seconds:g} s; stop with Ctrl-C.")
    try:
        run_async(syncing.watch())
    except KeyboardInterrupt:  # a clean end unless a sync is in progress
        if syncing.in_progress:
            raise
        notice("Stopped watching.")


class _PrintedSync:
    """Syncs and prints each result."""

    def __init__(self, settings: Settings, home: Home, request: ZoteroRequest, *, as_json: bool, dry_run: bool) -> None:
        self.in_progress = False
        self._settings = settings
        self._home = home
        self._request = request
        self._json = as_json
        self._dry_run = dry_run

    async def run_once(self) -> SyncReport:
        """Read Zotero and sync."""
        from ..api.zotero_sync import aread_zotero

        return await self._sync(await aread_zotero(self._settings, self._request, notice))

    async def watch(self) -> None:
        """Sync whenever something changed, forever."""
        from ..api.zotero_sync import awatch_zotero

        await awatch_zotero(self._settings, self._home, self._request, self._sync, notice)

    async def _sync(self, reading: ZoteroReading) -> SyncReport:
        from ..api.zotero_sync import async_reading

        self.in_progress = True
        with command_session(self._settings, self._home) as session, ingest_progress() as show:
            report = await async_reading(
                session, reading, self._request, dry_run=self._dry_run, on_event=show, on_notice=notice
            )
        self.in_progress = False
        record = report.as_dict()
        warnings_and_refusals(record)
        if self._json:
            result_json(record)
        else:
            for line in _sync_lines(record):
                result(one_line(line))
        return report


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
