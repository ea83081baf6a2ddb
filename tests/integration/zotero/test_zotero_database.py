"""Zotero's database and storage: read from a copy while Zotero runs, and whatever state they are in."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from citeloom.errors import CiteloomError
from citeloom.settings.config import load_settings
from citeloom.stores.library import Library
from citeloom.zotero.zotero_database import ZoteroDatabase
from citeloom.zotero.zotero_records import ZoteroError, ZoteroLibrary
from citeloom.zotero.zotero_source import ZoteroRequest, open_source
from tests.integration.zotero.conftest import synced
from tests.support.made_zotero import MadeZotero, page_of

LIBRARY = ZoteroLibrary()


@pytest.fixture(autouse=True)
def looms(zotero: MadeZotero) -> None:
    zotero.item("AAAA1111", title="Looms", authors=[("Ada", "Lovelace")], abstractNote="An abstract of looms.")
    zotero.file("FILE1111", "AAAA1111", "looms.md", page_of("looms"))


async def test_a_database_that_zotero_has_locked_is_read(zotero: MadeZotero) -> None:
    with closing(sqlite3.connect(zotero.folder / "zotero.sqlite", isolation_level=None)) as running:
        running.execute("PRAGMA locking_mode = EXCLUSIVE")
        running.execute("BEGIN EXCLUSIVE")
        content = await ZoteroDatabase(zotero.folder).content(LIBRARY)
    assert content is not None and [item.title for item in content.items] == ["Looms"]


async def test_records_in_the_write_ahead_log_are_read(zotero: MadeZotero) -> None:
    with closing(sqlite3.connect(zotero.folder / "zotero.sqlite")) as running:
        running.execute("PRAGMA journal_mode = WAL")
        running.execute("PRAGMA wal_autocheckpoint = 0")
        running.execute("UPDATE itemDataValues SET value = 'New looms' WHERE value = 'Looms'")
        running.commit()
        content = await ZoteroDatabase(zotero.folder).content(LIBRARY)
    assert content is not None and content.items[0].title == "New looms"


async def test_an_unchanged_database_is_not_read(zotero: MadeZotero) -> None:
    database = ZoteroDatabase(zotero.folder)
    first = await database.content(LIBRARY)
    assert first is not None and await database.content(LIBRARY, first.version) is None
    zotero.change("AAAA1111", title="Other")
    assert await database.content(LIBRARY, first.version) is not None


async def test_databases_without_annotations_or_deleted_collections_are_read(zotero: MadeZotero) -> None:
    zotero.execute("DROP TABLE itemAnnotations")
    zotero.execute("DROP TABLE deletedCollections")
    assert await ZoteroDatabase(zotero.folder).content(LIBRARY) is not None


async def test_damaged_rows_are_reported_and_the_rest_is_read(zotero: MadeZotero) -> None:
    zotero.item("BBBB1111", title="Other")
    zotero.execute("UPDATE items SET key = x'ff00' WHERE key = 'BBBB1111'")
    zotero.execute("UPDATE itemDataValues SET value = x'fffe' WHERE value = 'Looms'")
    zotero.execute("INSERT INTO collections (collectionName, libraryID, key) VALUES (x'ff', 1, 'COLLODD1')")
    zotero.execute("UPDATE creators SET lastName = NULL")
    content = await ZoteroDatabase(zotero.folder).content(LIBRARY)
    assert content is not None and [item.key for item in content.items] == ["AAAA1111"]
    assert any("title of item AAAA1111 cannot be read" in line for line in content.damaged)
    assert any("has no valid key" in line for line in content.damaged)


def _no_database(folder: Path) -> None:
    (folder / "zotero.sqlite").unlink()


def _a_folder(folder: Path) -> None:
    _no_database(folder)
    (folder / "zotero.sqlite").mkdir()


def _a_pipe(folder: Path) -> None:
    _no_database(folder)
    os.mkfifo(folder / "zotero.sqlite")


def _no_storage(folder: Path) -> None:
    (folder / "storage").rename(folder / "unmounted")


def _another_program(folder: Path) -> None:
    _no_database(folder)
    with closing(sqlite3.connect(folder / "zotero.sqlite")) as db, db:
        db.execute("CREATE TABLE items (id)")


def _a_view(folder: Path) -> None:
    with closing(sqlite3.connect(folder / "zotero.sqlite")) as db, db:
        db.execute("DROP TABLE deletedItems")
        db.execute("CREATE VIEW deletedItems AS WITH RECURSIVE n(itemID) AS "
                   "(SELECT 1 UNION ALL SELECT itemID + 1 FROM n) SELECT itemID FROM n")  # fmt: skip


def _damaged(folder: Path) -> None:
    file = folder / "zotero.sqlite"
    data = bytearray(file.read_bytes())
    data[5000:-1000] = b"\xff" * len(data[5000:-1000])
    file.write_bytes(bytes(data))


BROKEN = {
    "no database": (_no_database, "zotero.sqlite"),
    "a folder": (_a_folder, "zotero.sqlite"),
    "a pipe": (_a_pipe, "zotero.sqlite"),
    "no storage": (_no_storage, "storage:"),
    "another program's": (_another_program, "collectionItems"),
    "a view that never ends": (_a_view, "deletedItems"),
    "damaged": (_damaged, "zotero.sqlite"),
}


@pytest.mark.parametrize(("breaks", "said"), BROKEN.values(), ids=BROKEN)
async def test_an_unreadable_database_is_reported_in_one_line(
    zotero: MadeZotero, breaks: Callable[[Path], None], said: str
) -> None:
    breaks(zotero.folder)
    with pytest.raises(ZoteroError, match=said) as raised:
        await ZoteroDatabase(zotero.folder).content(LIBRARY)
    assert "\n" not in str(raised.value) and raised.value.help


@pytest.mark.parametrize("name", ["nowhere", "Zotero/storage", "Zotero/missing/zotero.sqlite"])
async def test_a_folder_that_does_not_belong_to_zotero_is_reported(zotero: MadeZotero, name: str) -> None:
    with pytest.raises(CiteloomError, match="CITELOOM_ZOTERO"):
        await open_source(load_settings(zotero=str(zotero.folder.parent / name)), lambda _: None)


HOSTILE = ["../../secret.md", "..", "sub/secret.md", "..\\secret.md", "/etc/secret.md", "a\0b.md", "x" * 5000 + ".md"]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
async def test_a_file_name_that_leads_out_of_storage_is_not_followed(
    zotero: MadeZotero, open_library: Callable[..., Library], name: str
) -> None:
    (zotero.folder / "secret.md").write_text(page_of("secret"), encoding="utf-8")
    zotero.execute("UPDATE itemAttachments SET path = ?", f"storage:{name}")
    library = open_library()
    await synced(library, load_settings(zotero=str(zotero.folder)), ZoteroRequest())
    (paper,) = library.papers()
    assert paper.source.startswith(str(library.home.root.resolve()))  # the abstract, not the file


async def test_links_and_missing_or_oversized_files_are_not_read(
    zotero: MadeZotero, open_library: Callable[..., Library], tmp_path: Path
) -> None:
    library, settings = open_library(), load_settings(zotero=str(zotero.folder))
    (tmp_path / "secret.md").write_text(page_of("secret"), encoding="utf-8")
    for number, name in enumerate(["link", "folder", "missing", "huge", "pipe"]):
        zotero.item(
            f"BBBB000{number}", title=f"Of the {name}", abstractNote="" if name != "link" else "Abstract of it."
        )
        file = zotero.file(f"BFIL000{number}", f"BBBB000{number}", f"{name}.pdf", None)
        file.parent.mkdir()
        if name == "link":
            file.symlink_to(tmp_path / "secret.md")
        elif name == "folder":
            file.mkdir()
        elif name == "pipe":
            os.mkfifo(file)
        elif name == "huge":
            with file.open("wb") as sparse:
                sparse.truncate(2_000_000_000)
    record = await synced(library, settings, ZoteroRequest())
    reasons = {item["reason"] for item in record["refused"]}
    for said in (
        "link out of Zotero's storage",
        "not a regular file",
        "its file is missing",
        "2000 MB, more than the limit",
    ):
        assert any(said in reason for reason in reasons), (said, reasons)
    assert sorted(record["added"]) == ["link", "lovelacelooms"] and not any(
        "secret" in chunk.text for paper in library.papers() for chunk in library.paper_chunks(paper.key)
    )
    again = await synced(library, settings, ZoteroRequest())
    assert {item["reason"] for item in again["refused"]} == reasons and again["added"] == []


async def test_a_paper_whose_file_is_temporarily_missing_is_kept(
    zotero: MadeZotero, open_library: Callable[..., Library]
) -> None:
    library, settings = open_library(), load_settings(zotero=str(zotero.folder))
    await synced(library, settings, ZoteroRequest())
    file = zotero.folder / "storage" / "FILE1111" / "looms.md"
    file.rename(zotero.folder / "away.md")
    record = await synced(library, settings, ZoteroRequest())
    assert "its file is missing; the paper is left as it is" in record["refused"][0]["reason"]
    assert "looms was measured" in library.paper_chunks("lovelacelooms")[0].text
    (zotero.folder / "away.md").rename(file)
    assert (await synced(library, settings, ZoteroRequest()))["unchanged"] == 1


async def test_linked_files_need_a_folder_named_by_the_user(
    zotero: MadeZotero, open_library: Callable[..., Library], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    (tmp_path / "work" / ".env").write_text("CITELOOM_ZOTERO_LINKED=/\n", encoding="utf-8")
    with pytest.raises(CiteloomError, match=r"\.env"):
        await synced(open_library(), load_settings(zotero=str(zotero.folder)), ZoteroRequest())
