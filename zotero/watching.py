"""Syncs again whenever Zotero or one of its files has changed, until it is interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from ..models.http.limiter import Clock
from ..settings.config import Settings
from ..stores.home import Home
from .sync import SyncReport
from .sync_state import read_state
from .zotero_records import ZoteroError
from .zotero_source import OnNotice, ZoteroReading, ZoteroRequest, read_zotero

Sync = Callable[[ZoteroReading], Awaitable[SyncReport]]


async def watch_zotero(
    settings: Settings, home: Home, request: ZoteroRequest, sync: Sync, clock: Clock, on_notice: OnNotice
) -> None:
    """Look at Zotero every `zotero_seconds`, and sync what changed; ends only by cancellation or an error.

    A Zotero that cannot be read, such as one that was closed, is named once, and looked at again.
    """
    known, problem = "", ""

    def notice_once(text: str) -> None:
        nonlocal problem
        if text != problem:
            on_notice(text)
        problem = text

    while True:
        try:
            changed = await asyncio.to_thread(_file_changed, home)
            known = "" if changed else known
            reading = await read_zotero(settings, request, known=known, on_notice=notice_once)
        except ZoteroError as error:
            notice_once(str(error))
            reading, known = None, ""
        if reading is not None:
            report = await sync(reading)
            # With a file missing, it may come without any change in Zotero.
            known = "" if report.plan.file_missing else reading.content.version
        await clock.sleep(settings.zotero_seconds)


def _file_changed(home: Home) -> bool:
    return read_state(home).file_changed()
