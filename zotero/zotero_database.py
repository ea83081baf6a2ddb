"""Reads a private copy of Zotero's database, so that Zotero can keep running and nothing is locked or written."""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from ..documents.safe_files import FileRefusedError, require_regular
from .zotero_records import (
    ANNOTATION_KINDS,
    ITEM_KEY,
    LINK_MODES,
    Annotation,
    Attachment,
    Creator,
    ItemNote,
    ZoteroCollection,
    ZoteroContent,
    ZoteroError,
    ZoteroItem,
    ZoteroLibrary,
    plain_text,
)

DATABASE: Final = "zotero.sqlite"
STORAGE: Final = "storage"
_KEYS_DATABASE: Final = "better-bibtex.sqlite"
_NEEDED: Final = frozenset(
    "items itemTypes itemData itemDataValues fieldsCombined creators itemCreators creatorTypes collections "
    "collectionItems itemAttachments itemNotes deletedItems libraries groups".split()
)
_LIVE: Final = "items.libraryID = ? AND items.itemID NOT IN (SELECT itemID FROM deletedItems)"
_OTHERS: Final = ("attachment", "note", "annotation")
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
        """The path of the database file, as messages name it."""
        return str(self.folder / DATABASE)

    async def groups(self) -> list[ZoteroLibrary]:
        """The libraries of the user's groups; raises `ZoteroError`."""

        def read() -> list[ZoteroLibrary]:
            with _open_copy(self.folder / DATABASE) as db:
                _require_tables(db, self.name)
                rows = _query(db, "SELECT groupID, name FROM groups ORDER BY groupID", (), self.name)
            return [
                ZoteroLibrary(row["groupID"], _text(row["name"])) for row in rows if isinstance(row["groupID"], int)
            ]

        return await asyncio.to_thread(read)

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        """The content of a library; None if its files are unchanged since version `known`. Raises `ZoteroError`."""
        version = self._version()
        if version and version == known:
            return None
        return await asyncio.to_thread(self._read, library, version)

    def _version(self) -> str:
        """Sizes and times of the database's files; empty if they cannot be read."""
        stamps = []
        for name in (DATABASE, _KEYS_DATABASE):
            for ending in _JOURNALS:
                try:
                    state = (self.folder / f"{name}{ending}").stat()
                except OSError:
                    continue
                stamps.append(f"{name}{ending}:{state.st_size}:{state.st_mtime_ns}")
        return f"{self.folder.resolve()} {' '.join(stamps)}" if stamps else ""

    def _read(self, library: ZoteroLibrary, version: str) -> ZoteroContent:
        storage = self.folder / STORAGE
        if not storage.is_dir():
            raise ZoteroError(f"{storage}: no such folder.", help="Connect the disk that holds Zotero's files.")
        with _open_copy(self.folder / DATABASE) as db:
            _require_tables(db, self.name)
            number = _library_number(db, library, self.name)
            reading = _Reading(db, number, self.name)
            content = reading.content()
        return replace(
            content,
            storage=storage,
            citation_keys=_citation_keys(self.folder / _KEYS_DATABASE, number),
            damaged=tuple(reading.damaged),
            version=version,
        )


class _Reading:
    """One pass over a library; unreadable rows are listed in `damaged`."""

    def __init__(self, db: sqlite3.Connection, library: int, name: str) -> None:
        self._db = db
        self._library = library
        self._name = name
        self.damaged: list[str] = []
        self._keys: dict[int, str] = {}
        self._added: dict[int, str] = {}
        self._fields: dict[int, dict[str, str]] = {}

    def content(self) -> ZoteroContent:
        """Items, attachments, notes, annotations and collections."""
        query = "SELECT items.itemID, items.key, typeName, dateAdded FROM items JOIN itemTypes USING (itemTypeID)"
        named = [row for row in self._live(query) if self._has_name(row)]
        self._keys = {row["itemID"]: row["key"] for row in named}
        self._added = {row["itemID"]: _text(row["dateAdded"]) for row in named}
        self._fields = self._read_fields()
        return ZoteroContent(
            tuple(self._items([row for row in named if row["typeName"] not in _OTHERS])),
            tuple(self._attachments()),
            tuple(self._notes()),
            tuple(self._annotations()),
            tuple(self._collections()),
        )

    def _has_name(self, row: Row) -> bool:
        good = isinstance(row["key"], str) and ITEM_KEY.fullmatch(row["key"]) is not None
        if not good or not isinstance(row["typeName"], str):
            self.damaged.append(f"{self._name}: item {row['itemID']} has no valid key or type and was left out.")
            return False
        return True

    def _read_fields(self) -> dict[int, dict[str, str]]:
        """The non-empty fields of each item and attachment, by name."""
        fields: dict[int, dict[str, str]] = {}
        for row in self._live(
            "SELECT items.itemID, fieldName, value FROM items JOIN itemData USING (itemID) "
            "JOIN fieldsCombined USING (fieldID) JOIN itemDataValues USING (valueID)"
        ):
            if isinstance(row["value"], bytes):
                key = self._keys.get(row["itemID"], row["itemID"])
                self.damaged.append(f"{self._name}: {row['fieldName']} of item {key} cannot be read and was left out.")
            elif value := _text(row["value"]):
                fields.setdefault(row["itemID"], {})[_text(row["fieldName"])] = value
        return fields

    def _items(self, rows: Sequence[Row]) -> Iterator[ZoteroItem]:
        creators: dict[int, list[Creator]] = {}
        for row in self._live(
            "SELECT items.itemID, creatorType, firstName, lastName, orderIndex FROM items "
            "JOIN itemCreators USING (itemID) JOIN creators USING (creatorID) JOIN creatorTypes USING (creatorTypeID)",
            "ORDER BY items.itemID, orderIndex",
        ):
            made = Creator.of(_text(row["creatorType"]), _text(row["lastName"]), _text(row["firstName"]))
            if made:
                creators.setdefault(row["itemID"], []).append(made)
        collections: dict[int, set[str]] = {}
        for row in self._live(
            "SELECT items.itemID, collections.key AS name FROM items JOIN collectionItems USING (itemID) "
            "JOIN collections USING (collectionID)"
        ):
            collections.setdefault(row["itemID"], set()).add(_text(row["name"]))
        for row in rows:
            number = row["itemID"]
            yield ZoteroItem(
                row["key"],
                row["typeName"],
                self._fields.get(number, {}),
                tuple(creators.get(number, ())),
                frozenset(collections.get(number, ())),
                self._added[number],
            )

    def _attachments(self) -> Iterator[Attachment]:
        for row in self._live(
            "SELECT items.itemID, parentItemID, linkMode, path FROM items JOIN itemAttachments USING (itemID)"
        ):
            number = row["itemID"]
            parent = self._parent(row["parentItemID"])
            if number in self._keys and parent is not None:
                mode = LINK_MODES.get(row["linkMode"], "other")
                path = _text(row["path"])
                name = path.removeprefix("storage:") if mode == "stored" else path
                title = self._fields.get(number, {}).get("title", "")
                yield Attachment(self._keys[number], parent, mode, name, title, self._added[number])

    def _notes(self) -> Iterator[ItemNote]:
        for row in self._live("SELECT items.itemID, parentItemID, note FROM items JOIN itemNotes USING (itemID)"):
            number, parent = row["itemID"], self._parent(row["parentItemID"])
            if number in self._keys and parent is not None:
                yield ItemNote(self._keys[number], parent, _text(row["note"]), self._added[number])

    def _annotations(self) -> Iterator[Annotation]:
        if not self._has("itemAnnotations"):
            return  # before Zotero 6
        for row in self._live(
            "SELECT items.itemID, parentItemID, type, text, comment, pageLabel, sortIndex FROM items "
            "JOIN itemAnnotations USING (itemID)"
        ):
            parent = self._parent(row["parentItemID"])
            if row["itemID"] in self._keys and parent:
                kind = ANNOTATION_KINDS.get(row["type"], "")
                text, comment = _text(row["text"]), _text(row["comment"])
                page, place = _text(row["pageLabel"]), _text(row["sortIndex"])
                yield Annotation(self._keys[row["itemID"]], parent, kind, text, comment, page, place)

    def _collections(self) -> Iterator[ZoteroCollection]:
        deleted = " AND child.collectionID NOT IN (SELECT collectionID FROM deletedCollections)"
        query = (
            "SELECT child.key, child.collectionName, parent.key AS parent FROM collections AS child "
            "LEFT JOIN collections AS parent ON parent.collectionID = child.parentCollectionID "
            f"WHERE child.libraryID = ?{deleted if self._has('deletedCollections') else ''}"
        )
        for row in _query(self._db, query, (self._library,), self._name):
            yield ZoteroCollection(_text(row["key"]), _text(row["collectionName"]), _text(row["parent"]))

    def _parent(self, number: Any) -> str | None:
        """The key of a parent: empty if there is none, None if it is in the trash or damaged."""
        return "" if number is None else self._keys.get(number)

    def _has(self, table: str) -> bool:
        return table in _table_names(self._db, self._name)

    def _live(self, query: str, more: str = "") -> list[Row]:
        return _query(self._db, f"{query} WHERE {_LIVE} {more}", (self._library,), self._name)


def _library_number(db: sqlite3.Connection, library: ZoteroLibrary, name: str) -> int:
    query = "SELECT libraryID FROM libraries WHERE type = 'user'"
    if library.group:
        query = "SELECT libraryID FROM groups WHERE groupID = ?"
    rows = _query(db, query, (library.group,) if library.group else (), name)
    if not rows or not isinstance(rows[0]["libraryID"], int):
        raise ZoteroError(f"{name}: holds no library {library.name!r}.", help="Open it in Zotero once.")
    return int(rows[0]["libraryID"])


def _citation_keys(file: Path, library: int) -> dict[str, str]:
    """Better BibTeX's keys by item; empty if its database is missing or has an unknown schema."""
    if not file.is_file():
        return {}
    query = "SELECT itemKey, citationKey FROM citationkey WHERE libraryID = ?"
    with _open_copy(file) as db:
        known = "citationkey" in _table_names(db, str(file))
        rows = _query(db, query, (library,), str(file)) if known else []
    return {_text(row["itemKey"]): _text(row["citationKey"]) for row in rows}


def _require_tables(db: sqlite3.Connection, name: str) -> None:
    """Raise `ZoteroError` for another program's database; a view in place of a table could hide anything."""
    missing = sorted(_NEEDED - _table_names(db, name))
    if missing:
        raise ZoteroError(
            f"{name}: is not a database of Zotero 5 or later (no table {missing[0]}).",
            help="Name Zotero's data folder in CITELOOM_ZOTERO, and open it in a current Zotero once.",
        )


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
            raise _unreadable(str(file), error) from error


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


def _states(file: Path) -> list[tuple[int, int]]:
    paths = [Path(f"{file}{ending}") for ending in _JOURNALS]
    return [(path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else (0, 0) for path in paths]


def _table_names(db: sqlite3.Connection, name: str) -> frozenset[str]:
    """The names of the tables, without views; raises `ZoteroError` that names the file."""
    rows = _query(db, "SELECT name FROM sqlite_master WHERE type = 'table'", (), name)
    return frozenset(_text(row["name"]) for row in rows)


def _query(db: sqlite3.Connection, query: str, parameters: Sequence[Any], name: str) -> list[Row]:
    """The rows of a query; raises `ZoteroError` that names the file."""
    try:
        return [dict(row) for row in db.execute(query, parameters)]
    except sqlite3.Error as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: sqlite3.Error) -> ZoteroError:
    remedy = "Start Zotero, which repairs or restores it, and run the same command again."
    return ZoteroError(f"{name}: cannot be read ({error}).", help=remedy)


def _text(value: Any) -> str:
    """A stored value as text: SQLite keeps any type in any column."""
    return "" if value is None or isinstance(value, bytes) else plain_text(str(value))
