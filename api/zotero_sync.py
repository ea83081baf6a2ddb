"""Syncs Zotero items into a library, once or whenever Zotero changes."""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from ..graph.session import Session
from ..ingestion.ingest_events import IngestEvent
from ..models.http.limiter import Clock
from ..models.journal.budget import bill_to
from ..settings.config import Settings
from ..stores.home import Home
from ..zotero.syncing import SyncReport as SyncReport, sync_reading, watch_zotero
from ..zotero.zotero_source import ZoteroReading as ZoteroReading, ZoteroRequest as ZoteroRequest, read_zotero
from .arguments import one_or_more, require_writable, requires_open
from .blocking import blocking


@requires_open
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
    """Apply a Zotero reading to the library, billed to a separate run; raises as `async_zotero` does."""
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


async def awatch_zotero(
    settings: Settings,
    home: Home,
    request: ZoteroRequest,
    sync: Callable[[ZoteroReading], Awaitable[SyncReport]],
    on_notice: Callable[[str], None],
) -> None:
    """Call `sync` whenever Zotero or one of its files changes, until cancelled; raises as `async_zotero` does."""
    await watch_zotero(settings, home, request, sync, Clock(), on_notice)


sync_zotero = requires_open(blocking(async_zotero))
