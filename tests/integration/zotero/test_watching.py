"""`--watch`: syncs when something changed, names a Zotero that cannot be read once, and ends when it is interrupted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from citeloom.models.http.limiter import Clock
from citeloom.settings.config import Settings, load_settings
from citeloom.stores.library import Library
from citeloom.zotero.syncing import SyncReport, sync_reading, watch_zotero
from citeloom.zotero.zotero_source import ZoteroReading, ZoteroRequest
from tests.support.made_zotero import MadeZotero, filled, key_of, page_of
from tests.support.zotero_server import ApiFault, ZoteroServer

REQUEST = ZoteroRequest()
Step = Callable[[], object]


class _Steps(Clock):
    """A clock on which a step is taken in each pause; the watch is interrupted after the last."""

    def __init__(self, *steps: Step) -> None:
        self.steps = list(steps)
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        if not self.steps:
            raise asyncio.CancelledError
        self.steps.pop(0)()


async def _watched(library: Library, settings: Settings, *steps: Step) -> tuple[list[SyncReport], list[str]]:
    reports: list[SyncReport] = []
    said: list[str] = []

    async def sync(reading: ZoteroReading) -> SyncReport:
        reports.append(await sync_reading(library, settings, reading, REQUEST))
        return reports[-1]

    clock = _Steps(*steps)
    with pytest.raises(asyncio.CancelledError):
        await watch_zotero(settings, library.home, REQUEST, sync, clock, said.append)
    assert clock.pauses == [settings.zotero_seconds] * (len(steps) + 1)
    return reports, said


def _nothing() -> None:
    """A pause in which nothing happens."""


async def test_watching_syncs_only_changes(zotero: MadeZotero, library: Library, settings: Settings) -> None:
    filled(zotero, 9)
    file = zotero.folder / "storage" / key_of(4, "F") / "subject0004.md"
    reports, said = await _watched(
        library,
        settings,
        _nothing,
        lambda: zotero.change(key_of(2), title="A new title"),
        _nothing,
        lambda: file.write_text(page_of("dobby"), encoding="utf-8"),
        lambda: zotero.erase(key_of(0)),
    )
    counts = [[len(one.record[name]) for name in ("added", "updated", "removed")] for one in reports]
    assert counts == [[9, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1]]
    assert said == []


async def test_watching_survives_closing_and_reopening_zotero(
    zotero: MadeZotero, library: Library, api: ZoteroServer
) -> None:
    filled(zotero, 2)
    closed = ApiFault(403, b"Local API is not enabled")
    reports, said = await _watched(
        library,
        load_settings(zotero=api.url, zotero_seconds=7),
        lambda: api.faults.append(closed),
        lambda: api.faults.append(closed),
        lambda: zotero.change(key_of(1), title="Other"),
    )
    assert [len([*one.record["added"], *one.record["updated"]]) for one in reports] == [2, 1] and len(said) == 1
    assert "does not allow its local API (403). In Zotero's settings" in said[0]


async def test_a_missing_file_is_looked_for_again(zotero: MadeZotero, library: Library, settings: Settings) -> None:
    filled(zotero, 1)
    file = zotero.folder / "storage" / key_of(0, "F") / "subject0000.md"
    away = zotero.folder.parent / "away.md"
    file.rename(away)
    reports, _ = await _watched(library, settings, _nothing, lambda: away.rename(file))
    assert [len(one.record["added"]) for one in reports] == [0, 0, 1]
