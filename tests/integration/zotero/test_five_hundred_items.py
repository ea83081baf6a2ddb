"""A library of five hundred items: the first sync, one after it, changes, and a sync that is killed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from citeloom.errors import CiteloomError
from citeloom.ingestion.ingest_events import Stored
from citeloom.settings.config import Settings, load_settings
from citeloom.stores.library import Library
from citeloom.zotero import syncing as sync_module
from citeloom.zotero.zotero_source import ZoteroRequest, read_zotero
from tests.integration.zotero.conftest import synced
from tests.support.made_zotero import MadeZotero, filled, key_of, page_of
from tests.support.word_embedding import WordEmbedding
from tests.support.zotero_server import ZoteroServer

SIZES = [pytest.param(500, marks=pytest.mark.long), 30]
ALL = ZoteroRequest()


@pytest.fixture(params=SIZES)
def count(request: pytest.FixtureRequest, zotero: MadeZotero) -> int:
    filled(zotero, request.param)
    return int(request.param)


async def test_the_first_sync_takes_everything_the_second_nothing_and_the_third_the_changes(
    count: int,
    zotero: MadeZotero,
    settings: Settings,
    library: Library,
    embedding: WordEmbedding,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    first = await synced(library, settings, ALL)
    papers = {paper.key: paper for paper in library.papers()}
    assert (first["items"], len(first["added"]), len(first["without_file"])) == (count, count * 9 // 10, count // 10)
    assert len(first["abstract_only"]) == count // 10 and first["refused"] == []
    assert {"subject0000Pinned", "weaver21992subject0002"} <= papers.keys()
    embedded = len(embedding.embedded)

    with monkeypatch.context() as patch:
        patch.setattr(sync_module, "read_as", pytest.fail)
        second = await synced(library, settings, ALL)
    assert (second["unchanged"], second["added"], second["updated"]) == (count * 9 // 10, [], [])
    assert len(embedding.embedded) == embedded

    zotero.change(key_of(2), title="A new title")
    zotero.trash(key_of(3))
    (zotero.folder / "storage" / key_of(4, "F") / "subject0004.md").write_text(page_of("dobby"), encoding="utf-8")
    third = await synced(library, settings, ALL)
    assert (len(third["updated"]), len(third["removed"]), third["added"]) == (2, 1, [])
    assert third["chunks_embedded"] == 1 and len(library.papers()) == count * 9 // 10 - 1

    part = await synced(library, settings, ZoteroRequest(collections=("Thesis",), prune=True))
    assert part["items"] == count // 5 and len(library.papers()) == count // 5


class _KilledError(Exception):
    """Stands for the death of the process."""


async def test_a_killed_sync_resumes_without_embedding_twice(
    count: int, settings: Settings, library: Library, open_library: Callable[..., Library], zotero: MadeZotero
) -> None:
    reading = await read_zotero(settings, ALL)
    assert reading is not None
    stored = 0

    def die(event: object) -> None:
        nonlocal stored
        stored += isinstance(event, Stored)
        if stored == count // 3:
            raise _KilledError

    with pytest.raises(_KilledError):
        await sync_module.sync_reading(library, settings, reading, ALL, on_event=die)
    library.close()

    embedding = WordEmbedding()
    resumed = open_library(embedding)
    there = {paper.key for paper in resumed.papers()}
    assert there
    chunks = {chunk.text for key in there for chunk in resumed.paper_chunks(key)}
    report = await synced(resumed, settings, ALL)
    assert len(resumed.papers()) == count * 9 // 10 and not chunks.intersection(embedding.embedded)
    assert report["unchanged"] == len(there) and report["warnings"] == []  # it knows its papers
    zotero.erase(key_of(0))
    assert len((await synced(resumed, settings, ALL))["removed"]) == 1


async def test_a_failing_embedding_leaves_work_that_the_next_sync_completes(
    settings: Settings, zotero: MadeZotero, open_library: Callable[..., Library]
) -> None:
    filled(zotero, 10)

    class Failing(WordEmbedding):
        async def embed_documents(self, *given: object, **options: object) -> object:  # type: ignore[override]
            if len(self.embedded) >= 3:
                raise CiteloomError("The endpoint is gone.")
            return await super().embed_documents(*given, **options)  # type: ignore[arg-type]

    library = open_library(Failing())
    with pytest.raises(CiteloomError, match="endpoint is gone"):
        await synced(library, settings, ALL)
    library.close()
    again = open_library()
    await synced(again, settings, ALL)
    assert len(again.papers()) == 9


async def test_two_concurrent_syncs_take_turns(settings: Settings, zotero: MadeZotero, library: Library) -> None:
    filled(zotero, 10)
    reports = await asyncio.gather(*(synced(library, settings, ALL) for _ in range(2)))
    assert sorted(len(report["added"]) for report in reports) == [0, 9] and len(library.papers()) == 9


async def test_the_database_and_the_api_agree_on_everything(
    zotero: MadeZotero, library: Library, api: ZoteroServer
) -> None:
    filled(zotero, 30)
    await synced(library, load_settings(zotero=str(zotero.folder)), ALL)
    report = await synced(library, load_settings(zotero=api.url), ALL)
    assert (report["unchanged"], report["added"], report["updated"], report["removed"]) == (27, [], [], [])
