"""A Zotero made by the test, a library, and syncs of the one into the other, by both ways into Zotero."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.settings.config import Settings, load_settings
from citeloom.stores.library import Library
from citeloom.zotero.syncing import sync_reading
from citeloom.zotero.zotero_source import ZoteroRequest, read_zotero
from tests.support.library_fixtures import home, open_library
from tests.support.made_zotero import MadeZotero
from tests.support.word_embedding import WordEmbedding
from tests.support.zotero_server import ZoteroServer

__all__ = ["home", "open_library"]

Sync = Callable[..., Awaitable[dict[str, Any]]]


@pytest.fixture
def zotero(tmp_path: Path) -> MadeZotero:
    return MadeZotero(tmp_path / "Zotero")


@pytest.fixture
def api(zotero: MadeZotero) -> Iterator[ZoteroServer]:
    with ZoteroServer(zotero) as running:
        yield running


@pytest.fixture(params=["database", "api"])
def settings(request: pytest.FixtureRequest, zotero: MadeZotero) -> Settings:
    """Settings that name the database, or the API over it."""
    if request.param == "database":
        return load_settings(zotero=str(zotero.folder))
    return load_settings(zotero=request.getfixturevalue("api").url)


@pytest.fixture
def embedding() -> WordEmbedding:
    return WordEmbedding()


@pytest.fixture
def library(open_library: Callable[..., Library], embedding: WordEmbedding) -> Library:
    return open_library(embedding)


@pytest.fixture
def sync(library: Library, settings: Settings) -> Sync:
    """One sync; options are those of the request, `dry_run`, and other settings. Returns its JSON."""

    async def give(
        *collections: str, dry_run: bool = False, group: str = "", prune: bool = False, **changed: Any
    ) -> dict[str, Any]:
        used = load_settings(**{"zotero": settings.zotero, **changed})
        return await synced(library, used, ZoteroRequest(group, collections, prune), dry_run=dry_run)

    return give


async def synced(
    library: Library, settings: Settings, request: ZoteroRequest, *, dry_run: bool = False
) -> dict[str, Any]:
    """Read Zotero and sync once."""
    reading = await read_zotero(settings, request)
    assert reading is not None
    return (await sync_reading(library, settings, reading, request, dry_run=dry_run)).record
