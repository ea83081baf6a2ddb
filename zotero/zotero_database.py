"""Reads a private copy of Zotero's database, so that Zotero can keep running and nothing is locked or written."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Collection, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..documents.safe_files import FileRefusedError, require_regular
from .zotero_records import (
    ITEM_KEY,
    Record,
    ZoteroCollection,
    ZoteroContent,
    ZoteroError,
    ZoteroLibrary,
    build_content,
    text_value,
)

DATABASE: Final = "zotero.sqlite"
STORAGE: Final = "storage"
_KEYS_DATABASE: Final = "better-bibtex.sqlite"
_NEEDED: Final = frozenset(
    "items itemTypes itemData itemDataValues fieldsCombined creators itemCreators creatorTypes collections "
    "collectionItems itemAttachments itemNotes itemTags tags deletedItems libraries groups".split()
)
_ITEMS: Final = """
SELECT items.itemID, {columns} FROM items {joins}
WHERE items.libraryID = ? AND items.itemID NOT IN (SELECT itemID FROM deletedItems) {order}
"""
# The fields of each kind of child record, under the API's names, by the table that holds them.
_CHILDREN: Final = {
    "itemAttachments": "linkMode, path",
    "itemNotes": "note",
    "itemAnnotations": "text AS annotationText, comment AS annotationComment, pageLabel AS annotationPageLabel, "
    "sortIndex AS annotationSortIndex",  # since Zotero 6
}
_JOURNALS: Final = ("", "-wal", "-journal")  # commits may still be in the write-ahead log
_MOST_BYTES: Final = 20_000_000_000
_TRIES: Final = 3

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class ZoteroDatabase:
    """The data folder of Zotero, with its database and the folder of stored files."""

    folder: Path

    @property
    def name(self) -> str:
        return str(self.folder / DATABASE)

    async def groups(self) -> list[ZoteroLibrary]:
        def read() -> list[Row]:
            with _open_copy(self.folder / DATABASE) as db:
                _require_tables(db, self.name)
                return _query(db, "SELECT groupID, name FROM groups ORDER BY groupID")

        rows = [row for row in await asyncio.to_thread(read) if isinstance(row["groupID"], int)]
        return [ZoteroLibrary(row["groupID"], text_value(row["name"])) for row in rows]

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        states = [_states(self.folder / name) for name in (DATABASE, _KEYS_DATABASE)]
        version = f"{self.folder.resolve()} {' '.join(states)}" if any(states) else ""
        if version and version == known:
            return None
        return await asyncio.to_thread(self._read, library, version)

    def _read(self, library: ZoteroLibrary, version: str) -> ZoteroContent:
        storage, keys_file = self.folder / STORAGE, self.folder / _KEYS_DATABASE
        if not storage.is_dir():
            raise ZoteroError(f"{storage}: no such folder.", help="Connect the disk that holds Zotero's files.")
        with _open_copy(self.folder / DATABASE) as db:
            tables = _require_tables(db, self.name)
            query = "SELECT libraryID FROM libraries WHERE type = 'user' AND ?1 = 0"
            rows = _query(db, f"{query} UNION SELECT libraryID FROM groups WHERE groupID = ?1", library.group)
            number = rows[0]["libraryID"] if rows else None
            if not isinstance(number, int):
                raise ZoteroError(f"{self.name}: holds no library {library.name!r}.", help="Open it in Zotero once.")
            records, damaged = _read_records(db, number, tables, self.name)
            live = "child.collectionID NOT IN (SELECT collectionID FROM deletedCollections)"
            query = (
                "SELECT child.key, child.collectionName, parent.key AS parent FROM collections AS child "
                "LEFT JOIN collections AS parent ON parent.collectionID = child.parentCollectionID "
                f"WHERE child.libraryID = ? AND {live if 'deletedCollections' in tables else 'true'}"
            )
            collections = [ZoteroCollection(*map(text_value, row.values())) for row in _query(db, query, number)]
        citation_keys: dict[str, str] = {}
        if keys_file.is_file():
            with _open_copy(keys_file) as db:
                if "citationkey" in _table_names(db):
                    rows = _query(db, "SELECT itemKey, citationKey FROM citationkey WHERE libraryID = ?", number)
                    citation_keys = {text_value(row["itemKey"]): text_value(row["citationKey"]) for row in rows}
        return replace(
            build_content(records),
            collections=tuple(collections),
            storage=storage,
            citation_keys=citation_keys,
            damaged=tuple(damaged),
            version=version,
        )


def _read_records(
    db: sqlite3.Connection, library: int, tables: Collection[str], name: str
) -> tuple[dict[str, Record], list[str]]:
    """The items of a library by key, in the form of the API, and a line for each row that was left out."""
    damaged: list[str] = []
    records: dict[int, Row] = {}

    def select(columns: str, joins: str, order: str = "") -> Iterator[tuple[int, Row]]:
        """The rows of live items that are in `records`, without their number."""
        for row in _query(db, _ITEMS.format(columns=columns, joins=joins, order=order), library):
            number = row.pop("itemID")
            if number in records:
                yield number, row

    items = _ITEMS.format(columns="items.key, typeName, dateAdded", joins="JOIN itemTypes USING (itemTypeID)", order="")
    for row in _query(db, items, library):
        key, kind = row["key"], row["typeName"]
        if isinstance(key, str) and ITEM_KEY.fullmatch(key) and isinstance(kind, str):
            record = {"key": key, "itemType": kind, "dateAdded": row["dateAdded"]}
            records[row["itemID"]] = {**record, "creators": [], "collections": [], "tags": []}
        else:
            damaged.append(f"{name}: item {row['itemID']} has no valid key or type and was left out.")
    joins = "JOIN itemData USING (itemID) JOIN fieldsCombined USING (fieldID) JOIN itemDataValues USING (valueID)"
    for number, row in select("fieldName, value", joins):
        if isinstance(row["value"], bytes):
            key = records[number]["key"]
            damaged.append(f"{name}: {row['fieldName']} of item {key} cannot be read and was left out.")
        else:
            records[number].setdefault(text_value(row["fieldName"]), row["value"])
    joins = "JOIN itemCreators USING (itemID) JOIN creators USING (creatorID) JOIN creatorTypes USING (creatorTypeID)"
    for number, row in select("creatorType, firstName, lastName", joins, "ORDER BY items.itemID, orderIndex"):
        records[number]["creators"].append(row)
    joins = "JOIN collectionItems USING (itemID) JOIN collections USING (collectionID)"
    for number, row in select("collections.key AS collection", joins):
        records[number]["collections"].append(row["collection"])
    for number, row in select("tags.name AS tag", "JOIN itemTags USING (itemID) JOIN tags USING (tagID)"):
        records[number]["tags"].append(row)
    for table, columns in _CHILDREN.items():
        for number, row in (
            select(f"parentItemID, {columns}", f"JOIN {table} USING (itemID)") if table in tables else ()
        ):
            parent = row.pop("parentItemID")
            # A parent that is in the trash or damaged is named by a key that no item has.
            above = {} if parent is None else {"parentItem": records.get(parent, {"key": "?"})["key"]}
            records[number] |= row | above
    return {record["key"]: record for record in records.values()}, damaged


def _require_tables(db: sqlite3.Connection, name: str) -> frozenset[str]:
    """The names of the tables; raises `ZoteroError` for another program's database, or a view in place of a table."""
    tables = _table_names(db)
    missing = sorted(_NEEDED - tables)
    if missing:
        raise ZoteroError(
            f"{name}: is not a database of Zotero 5 or later (no table {missing[0]}).",
            help="Name Zotero's data folder in CITELOOM_ZOTERO, and open it in a current Zotero once.",
        )
    return tables


@contextmanager
def _open_copy(file: Path) -> Iterator[sqlite3.Connection]:
    """A connection to a private copy of a database with its journals; raises `ZoteroError`."""
    with tempfile.TemporaryDirectory(prefix="citeloom-zotero-") as folder:
        copy = _copy(file, Path(folder))
        try:
            with closing(sqlite3.connect(copy)) as db:
                db.row_factory = sqlite3.Row
                db.text_factory = lambda data: data.decode("utf-8", "replace")
                db.execute("PRAGMA trusted_schema = OFF")
                db.execute("PRAGMA query_only = ON")
                yield db
        except sqlite3.Error as error:
            remedy = "Start Zotero, which repairs or restores it, and run the same command again."
            raise ZoteroError(f"{file}: cannot be read ({error}).", help=remedy) from error


def _copy(file: Path, folder: Path) -> Path:
    try:
        require_regular(file, _MOST_BYTES)
        for _ in range(_TRIES):
            before = _states(file)
            for ending in _JOURNALS:
                (folder / f"{file.name}{ending}").unlink(missing_ok=True)
                if Path(f"{file}{ending}").is_file():
                    shutil.copyfile(f"{file}{ending}", folder / f"{file.name}{ending}")
            if _states(file) == before:
                return folder / file.name
    except (OSError, FileRefusedError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        remedy = "Name Zotero's data folder in CITELOOM_ZOTERO (Zotero: Settings, Advanced, Files and Folders)."
        raise ZoteroError(f"{file}: cannot be read ({why}).", help=remedy) from error
    raise ZoteroError(f"{file}: Zotero is writing it.", help="Run the same command again in a moment.")


def _states(file: Path) -> str:
    """Sizes and times of a database and its journals; empty if there is none."""
    states = []
    for ending in _JOURNALS:
        with suppress(OSError):
            state = Path(f"{file}{ending}").stat()
            states.append(f"{file.name}{ending}:{state.st_size}:{state.st_mtime_ns}")
    return " ".join(states)


def _table_names(db: sqlite3.Connection) -> frozenset[str]:
    rows = _query(db, "SELECT name FROM sqlite_master WHERE type = 'table'")
    return frozenset(text_value(row["name"]) for row in rows)


def _query(db: sqlite3.Connection, query: str, *parameters: Any) -> list[Row]:
    return [dict(row) for row in db.execute(query, parameters)]
