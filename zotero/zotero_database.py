"""Reads Zotero's database from a private copy, so that Zotero may run, and nothing of it is ever locked or written."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from .copied_database import JOURNALS, Row, copied, rows_of, stored_text, tables_of
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


@dataclass(frozen=True, slots=True)
class ZoteroDatabase:
    """The data folder of Zotero, with its database and the folder of stored files."""

    folder: Path

    @property
    def name(self) -> str:
        """The database's file."""
        return str(self.folder / DATABASE)

    async def groups(self) -> list[ZoteroLibrary]:
        """The libraries of the user's groups; raises `ZoteroError`."""
        return await asyncio.to_thread(self._groups)

    async def content(self, library: ZoteroLibrary, known: str = "") -> ZoteroContent | None:
        """All that a library holds; None if its files are as they were at the version `known`. Raises `ZoteroError`."""
        version = self._version()
        if version and version == known:
            return None
        return await asyncio.to_thread(self._content, library, version)

    def _version(self) -> str:
        """Sizes and times of the database's files; empty if they cannot be seen."""
        stamps = []
        for name in (DATABASE, _KEYS_DATABASE):
            for ending in JOURNALS:
                try:
                    state = (self.folder / f"{name}{ending}").stat()
                except OSError:
                    continue
                stamps.append(f"{name}{ending}:{state.st_size}:{state.st_mtime_ns}")
        return f"{self.folder.resolve()} {' '.join(stamps)}" if stamps else ""

    def _groups(self) -> list[ZoteroLibrary]:
        with copied(self.folder / DATABASE) as db:
            _require_tables(db, self.name)
            rows = rows_of(db, "SELECT groupID, name FROM groups ORDER BY groupID", (), self.name)
        return [
            ZoteroLibrary(row["groupID"], stored_text(row["name"])) for row in rows if isinstance(row["groupID"], int)
        ]

    def _content(self, library: ZoteroLibrary, version: str) -> ZoteroContent:
        storage = self.folder / STORAGE
        if not storage.is_dir():
            raise ZoteroError(f"{storage}: no such folder.", help="Connect the disk that holds Zotero's files.")
        with copied(self.folder / DATABASE) as db:
            _require_tables(db, self.name)
            number = _library_number(db, library, self.name)
            reading = _Reading(db, number, self.name)
            content = reading.content()
        keys = _citation_keys(self.folder / _KEYS_DATABASE, number)
        damaged = tuple(reading.damaged)
        return replace(content, storage=storage, citation_keys=keys, damaged=damaged, version=version)


class _Reading:
    """One pass over a library; rows that cannot be read are named in `damaged`."""

    def __init__(self, db: sqlite3.Connection, library: int, name: str) -> None:
        self._db = db
        self._library = library
        self._name = name
        self.damaged: list[str] = []
        self._keys: dict[int, str] = {}

    def content(self) -> ZoteroContent:
        """Items, attachments, notes, annotations and collections."""
        rows = self._live(
            "SELECT items.itemID, items.key, typeName, dateAdded FROM items JOIN itemTypes USING (itemTypeID)"
        )
        named = [row for row in rows if self._named(row)]
        self._keys = {row["itemID"]: row["key"] for row in named}
        added = {row["itemID"]: stored_text(row["dateAdded"]) for row in named}
        return ZoteroContent(
            tuple(self._items([row for row in named if row["typeName"] not in _OTHERS])),
            tuple(self._attachments(added)),
            tuple(self._notes(added)),
            tuple(self._annotations()),
            tuple(self._collections()),
        )

    def _named(self, row: Row) -> bool:
        good = isinstance(row["key"], str) and ITEM_KEY.fullmatch(row["key"]) is not None
        if not good or not isinstance(row["typeName"], str):
            self.damaged.append(f"{self._name}: item {row['itemID']} has no valid key or type and was left out.")
            return False
        return True

    def _items(self, rows: Sequence[Row]) -> Iterator[ZoteroItem]:
        fields: dict[int, dict[str, str]] = {}
        for row in self._live(
            "SELECT items.itemID, fieldName, value FROM items JOIN itemData USING (itemID) "
            "JOIN fieldsCombined USING (fieldID) JOIN itemDataValues USING (valueID)"
        ):
            if isinstance(row["value"], bytes):
                key = self._keys.get(row["itemID"], row["itemID"])
                self.damaged.append(f"{self._name}: {row['fieldName']} of item {key} cannot be read and was left out.")
            elif value := stored_text(row["value"]):
                fields.setdefault(row["itemID"], {})[stored_text(row["fieldName"])] = value
        creators: dict[int, list[Creator]] = {}
        for row in self._live(
            "SELECT items.itemID, creatorType, firstName, lastName, orderIndex FROM items "
            "JOIN itemCreators USING (itemID) JOIN creators USING (creatorID) JOIN creatorTypes USING (creatorTypeID)",
            "ORDER BY items.itemID, orderIndex",
        ):
            family, given = stored_text(row["lastName"]), stored_text(row["firstName"])
            if family or given:
                made = Creator(stored_text(row["creatorType"]), family or given, given if family else "")
                creators.setdefault(row["itemID"], []).append(made)
        collections: dict[int, set[str]] = {}
        for row in self._live(
            "SELECT items.itemID, collections.key AS name FROM items JOIN collectionItems USING (itemID) "
            "JOIN collections USING (collectionID)"
        ):
            collections.setdefault(row["itemID"], set()).add(stored_text(row["name"]))
        for row in rows:
            number = row["itemID"]
            yield ZoteroItem(
                row["key"],
                row["typeName"],
                fields.get(number, {}),
                tuple(creators.get(number, ())),
                frozenset(collections.get(number, ())),
                stored_text(row["dateAdded"]),
            )

    def _attachments(self, added: dict[int, str]) -> Iterator[Attachment]:
        titles = {
            row["itemID"]: stored_text(row["value"])
            for row in self._live(
                "SELECT items.itemID, value FROM items JOIN itemData USING (itemID) "
                "JOIN fieldsCombined USING (fieldID) JOIN itemDataValues USING (valueID)",
                "AND fieldName = 'title'",
            )
        }
        for row in self._live(
            "SELECT items.itemID, parentItemID, linkMode, path FROM items JOIN itemAttachments USING (itemID)"
        ):
            number = row["itemID"]
            parent = self._parent(row["parentItemID"])
            if number in self._keys and parent is not None:
                mode = LINK_MODES.get(row["linkMode"], "other")
                name = (
                    stored_text(row["path"]).removeprefix("storage:") if mode == "stored" else stored_text(row["path"])
                )
                yield Attachment(self._keys[number], parent, mode, name, titles.get(number, ""), added[number])

    def _notes(self, added: dict[int, str]) -> Iterator[ItemNote]:
        for row in self._live("SELECT items.itemID, parentItemID, note FROM items JOIN itemNotes USING (itemID)"):
            number, parent = row["itemID"], self._parent(row["parentItemID"])
            if number in self._keys and parent is not None:
                yield ItemNote(self._keys[number], parent, stored_text(row["note"]), added[number])

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
                text, comment = stored_text(row["text"]), stored_text(row["comment"])
                page, place = stored_text(row["pageLabel"]), stored_text(row["sortIndex"])
                yield Annotation(self._keys[row["itemID"]], parent, kind, text, comment, page, place)

    def _collections(self) -> Iterator[ZoteroCollection]:
        kept = (
            ""
            if not self._has("deletedCollections")
            else (" AND child.collectionID NOT IN (SELECT collectionID FROM deletedCollections)")
        )
        for row in rows_of(
            self._db,
            "SELECT child.key, child.collectionName, parent.key AS parent FROM collections AS child "
            f"LEFT JOIN collections AS parent ON parent.collectionID = child.parentCollectionID "
            f"WHERE child.libraryID = ?{kept}",
            (self._library,),
            self._name,
        ):
            yield ZoteroCollection(
                stored_text(row["key"]), stored_text(row["collectionName"]), stored_text(row["parent"])
            )

    def _parent(self, number: Any) -> str | None:
        """The key of a parent: empty if there is none, None if it is in the trash or damaged."""
        return "" if number is None else self._keys.get(number)

    def _has(self, table: str) -> bool:
        return table in tables_of(self._db, self._name)

    def _live(self, query: str, more: str = "") -> list[Row]:
        return rows_of(self._db, f"{query} WHERE {_LIVE} {more}", (self._library,), self._name)


def _library_number(db: sqlite3.Connection, library: ZoteroLibrary, name: str) -> int:
    query = (
        "SELECT libraryID FROM groups WHERE groupID = ?"
        if library.group
        else ("SELECT libraryID FROM libraries WHERE type = 'user'")
    )
    rows = rows_of(db, query, (library.group,) if library.group else (), name)
    if not rows or not isinstance(rows[0]["libraryID"], int):
        raise ZoteroError(f"{name}: holds no library {library.name!r}.", help="Open it in Zotero once.")
    return int(rows[0]["libraryID"])


def _citation_keys(file: Path, library: int) -> dict[str, str]:
    """Better BibTeX's keys by item; none without its database, or if that is in another form."""
    if not file.is_file():
        return {}
    query = "SELECT itemKey, citationKey FROM citationkey WHERE libraryID = ?"
    with copied(file) as db:
        if "citationkey" not in tables_of(db, str(file)):
            return {}
        return {
            stored_text(row["itemKey"]): stored_text(row["citationKey"])
            for row in rows_of(db, query, (library,), str(file))
        }


def _require_tables(db: sqlite3.Connection, name: str) -> None:
    """Raise `ZoteroError` for a database of another program: a view in the place of a table could be anything."""
    missing = sorted(_NEEDED - tables_of(db, name))
    if missing:
        raise ZoteroError(
            f"{name}: is not a database of Zotero 5 or later (no table {missing[0]}).",
            help="Name Zotero's data folder in CITELOOM_ZOTERO, and open it in a current Zotero once.",
        )
