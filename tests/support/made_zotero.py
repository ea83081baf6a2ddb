"""A Zotero data folder made for tests: `zotero.sqlite` in the tables and columns of Zotero 7, and `storage`.

The tables have the columns, types and constraints that Zotero's own database has (those that nothing here uses are left
out), so that a query that works here works there.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

SCHEMA = """
CREATE TABLE itemTypes (itemTypeID INTEGER PRIMARY KEY, typeName TEXT, templateItemTypeID INT, display INT DEFAULT 1);
CREATE TABLE fieldFormats (fieldFormatID INTEGER PRIMARY KEY, regex TEXT, isInteger INT);
CREATE TABLE fields (fieldID INTEGER PRIMARY KEY, fieldName TEXT, fieldFormatID INT);
CREATE TABLE fieldsCombined (fieldID INT NOT NULL, fieldName TEXT NOT NULL, label TEXT, fieldFormatID INT,
    custom INT NOT NULL, PRIMARY KEY (fieldID));
CREATE TABLE creatorTypes (creatorTypeID INTEGER PRIMARY KEY, creatorType TEXT);
CREATE TABLE version (schema TEXT PRIMARY KEY, version INT NOT NULL);
CREATE TABLE settings (setting TEXT, key TEXT, value, PRIMARY KEY (setting, key));
CREATE TABLE libraries (libraryID INTEGER PRIMARY KEY, type TEXT NOT NULL, editable INT NOT NULL,
    filesEditable INT NOT NULL, version INT NOT NULL DEFAULT 0, storageVersion INT NOT NULL DEFAULT 0,
    lastSync INT NOT NULL DEFAULT 0, archived INT NOT NULL DEFAULT 0);
CREATE TABLE users (userID INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE groups (groupID INTEGER PRIMARY KEY, libraryID INT NOT NULL UNIQUE, name TEXT NOT NULL,
    description TEXT NOT NULL, version INT NOT NULL,
    FOREIGN KEY (libraryID) REFERENCES libraries(libraryID) ON DELETE CASCADE);
CREATE TABLE items (itemID INTEGER PRIMARY KEY, itemTypeID INT NOT NULL,
    dateAdded TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, dateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    clientDateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP, libraryID INT NOT NULL, key TEXT NOT NULL,
    version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0, UNIQUE (libraryID, key),
    FOREIGN KEY (libraryID) REFERENCES libraries(libraryID) ON DELETE CASCADE);
CREATE TABLE itemDataValues (valueID INTEGER PRIMARY KEY, value UNIQUE);
CREATE TABLE itemData (itemID INT, fieldID INT, valueID, PRIMARY KEY (itemID, fieldID),
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
    FOREIGN KEY (fieldID) REFERENCES fieldsCombined(fieldID),
    FOREIGN KEY (valueID) REFERENCES itemDataValues(valueID));
CREATE TABLE itemNotes (itemID INTEGER PRIMARY KEY, parentItemID INT, note TEXT, title TEXT,
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
    FOREIGN KEY (parentItemID) REFERENCES items(itemID) ON DELETE CASCADE);
CREATE TABLE itemAttachments (itemID INTEGER PRIMARY KEY, parentItemID INT, linkMode INT, contentType TEXT,
    charsetID INT, path TEXT, syncState INT DEFAULT 0, storageModTime INT, storageHash TEXT,
    lastProcessedModificationTime INT,
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
    FOREIGN KEY (parentItemID) REFERENCES items(itemID) ON DELETE CASCADE);
CREATE TABLE itemAnnotations (itemID INTEGER PRIMARY KEY, parentItemID INT NOT NULL, type INTEGER NOT NULL,
    authorName TEXT, text TEXT, comment TEXT, color TEXT, pageLabel TEXT, sortIndex TEXT NOT NULL,
    position TEXT NOT NULL, isExternal INT NOT NULL,
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
    FOREIGN KEY (parentItemID) REFERENCES itemAttachments(itemID));
CREATE TABLE tags (tagID INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE itemTags (itemID INT NOT NULL, tagID INT NOT NULL, type INT NOT NULL, PRIMARY KEY (itemID, tagID),
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
    FOREIGN KEY (tagID) REFERENCES tags(tagID) ON DELETE CASCADE);
CREATE TABLE creators (creatorID INTEGER PRIMARY KEY, firstName TEXT, lastName TEXT, fieldMode INT,
    UNIQUE (lastName, firstName, fieldMode));
CREATE TABLE itemCreators (itemID INT NOT NULL, creatorID INT NOT NULL, creatorTypeID INT NOT NULL DEFAULT 1,
    orderIndex INT NOT NULL DEFAULT 0, PRIMARY KEY (itemID, creatorID, creatorTypeID, orderIndex),
    UNIQUE (itemID, orderIndex),
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE,
    FOREIGN KEY (creatorID) REFERENCES creators(creatorID) ON DELETE CASCADE);
CREATE TABLE collections (collectionID INTEGER PRIMARY KEY, collectionName TEXT NOT NULL,
    parentCollectionID INT DEFAULT NULL, clientDateModified TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    libraryID INT NOT NULL, key TEXT NOT NULL, version INT NOT NULL DEFAULT 0, synced INT NOT NULL DEFAULT 0,
    UNIQUE (libraryID, key), FOREIGN KEY (libraryID) REFERENCES libraries(libraryID) ON DELETE CASCADE,
    FOREIGN KEY (parentCollectionID) REFERENCES collections(collectionID) ON DELETE CASCADE);
CREATE TABLE collectionItems (collectionID INT NOT NULL, itemID INT NOT NULL, orderIndex INT NOT NULL DEFAULT 0,
    PRIMARY KEY (collectionID, itemID),
    FOREIGN KEY (collectionID) REFERENCES collections(collectionID) ON DELETE CASCADE,
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE);
CREATE TABLE deletedCollections (collectionID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP NOT NULL,
    FOREIGN KEY (collectionID) REFERENCES collections(collectionID) ON DELETE CASCADE);
CREATE TABLE deletedItems (itemID INTEGER PRIMARY KEY, dateDeleted DEFAULT CURRENT_TIMESTAMP NOT NULL,
    FOREIGN KEY (itemID) REFERENCES items(itemID) ON DELETE CASCADE);
"""
KEYS_SCHEMA = """
CREATE TABLE citationkey (itemID NOT NULL PRIMARY KEY, itemKey NOT NULL, libraryID NOT NULL,
    citationKey NOT NULL CHECK (citationKey <> ''), pinned CHECK (pinned in (0, 1)), UNIQUE (libraryID, itemKey));
"""
KINDS = (
    "journalArticle conferencePaper bookSection book thesis report preprint webpage attachment note annotation".split()
)
ROLES = "author editor contributor".split()
LINK_MODES = {"imported_file": 0, "imported_url": 1, "linked_file": 2, "linked_url": 3}
ANNOTATIONS = {"highlight": 1, "note": 2, "image": 3}
OWN, GROUP, GROUP_ID = 1, 2, 4711


class MadeZotero:
    """The data folder; every change is committed at once, as by a running Zotero."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._open: sqlite3.Connection | None = None
        (folder / "storage").mkdir(parents=True)
        with self.database() as db:
            db.executescript(SCHEMA)
            db.executemany("INSERT INTO itemTypes (itemTypeID, typeName) VALUES (?, ?)", enumerate(KINDS, 1))
            db.executemany("INSERT INTO creatorTypes VALUES (?, ?)", enumerate(ROLES, 1))
            db.execute("INSERT INTO version VALUES ('userdata', 125)")
            for number, kind in ((OWN, "user"), (GROUP, "group")):
                db.execute(
                    "INSERT INTO libraries (libraryID, type, editable, filesEditable) VALUES (?, ?, 1, 1)",
                    (number, kind),
                )
            db.execute("INSERT INTO groups VALUES (?, ?, 'Weavers', '', 1)", (GROUP_ID, GROUP))

    @contextmanager
    def database(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are committed at the end of the outermost block."""
        if self._open is not None:
            yield self._open
            return
        with closing(sqlite3.connect(self.folder / "zotero.sqlite")) as db:
            db.execute("PRAGMA synchronous = OFF")
            self._open = db
            try:
                with db:
                    yield db
            finally:
                self._open = None

    def item(
        self,
        key: str,
        kind: str = "journalArticle",
        *,
        authors: Sequence[tuple[str, str]] = (),
        editors: Sequence[tuple[str, str]] = (),
        collections: Sequence[str] = (),
        tags: Sequence[str] = (),
        library: int = OWN,
        **fields: str,
    ) -> None:
        """Add an item; authors are (given, family), with an empty given name for an institution."""
        with self.database() as db:
            number = _insert_item(db, key, kind, library)
            _set_fields(db, number, fields)
            people = [(1, author) for author in authors] + [(2, editor) for editor in editors]
            for place, (role, (given, family)) in enumerate(people):
                mode = 0 if given else 1
                db.execute(
                    "INSERT OR IGNORE INTO creators (firstName, lastName, fieldMode) VALUES (?, ?, ?)",
                    (given, family, mode),
                )
                (creator,) = db.execute(
                    "SELECT creatorID FROM creators WHERE firstName = ? AND lastName = ? AND fieldMode = ?",
                    (given, family, mode),
                ).fetchone()
                db.execute("INSERT INTO itemCreators VALUES (?, ?, ?, ?)", (number, creator, role, place))
            for collection in collections:
                _put(db, number, collection)
            for tag in tags:
                db.execute("INSERT OR IGNORE INTO tags (name) VALUES (?)", (tag,))
                db.execute("INSERT INTO itemTags SELECT ?, tagID, 1 FROM tags WHERE name = ?", (number, tag))

    def file(
        self,
        key: str,
        parent: str | None,
        name: str,
        content: bytes | str | None = b"",
        *,
        mode: str = "imported_file",
        title: str = "",
        library: int = OWN,
    ) -> Path:
        """Add an attachment; a stored one gets its file, unless `content` is None. The path of the file."""
        path = f"storage:{name}" if mode.startswith("imported") else name
        with self.database() as db:
            number = _insert_item(db, key, "attachment", library)
            _set_fields(db, number, {"title": title or name})
            above = _number(db, parent) if parent else None
            db.execute(
                "INSERT INTO itemAttachments (itemID, parentItemID, linkMode, path) VALUES (?, ?, ?, ?)",
                (number, above, LINK_MODES[mode], path),
            )
        stored = self.folder / "storage" / key / name
        if mode.startswith("imported") and content is not None and "/" not in name:
            stored.parent.mkdir()
            stored.write_bytes(content.encode() if isinstance(content, str) else content)
        return stored

    def note(self, key: str, parent: str | None, html: str) -> None:
        """Add a note to an item, or one of its own."""
        with self.database() as db:
            number = _insert_item(db, key, "note", OWN)
            above = _number(db, parent) if parent else None
            db.execute("INSERT INTO itemNotes VALUES (?, ?, ?, ?)", (number, above, html, ""))

    def annotation(self, key: str, attachment: str, text: str, comment: str = "", page: str = "1") -> None:
        """Mark words in a PDF."""
        with self.database() as db:
            number = _insert_item(db, key, "annotation", OWN)
            db.execute(
                "INSERT INTO itemAnnotations VALUES (?, ?, 1, '', ?, ?, '#ffd400', ?, ?, '{}', 0)",
                (number, _number(db, attachment), text, comment, page, f"{int(page):05d}|000000|00000"),
            )

    def collection(self, key: str, name: str, parent: str | None = None, library: int = OWN) -> None:
        """Add a collection."""
        with self.database() as db:
            above = db.execute("SELECT collectionID FROM collections WHERE key = ?", (parent,)).fetchone()
            db.execute(
                "INSERT INTO collections (collectionName, parentCollectionID, libraryID, key) VALUES (?, ?, ?, ?)",
                (name, above[0] if above else None, library, key),
            )

    def put(self, key: str, collection: str) -> None:
        """Put an item into a collection."""
        with self.database() as db:
            _put(db, _number(db, key), collection)

    def take_out(self, key: str, collection: str) -> None:
        """Take an item out of a collection."""
        with self.database() as db:
            db.execute(
                "DELETE FROM collectionItems WHERE itemID = ? AND collectionID = "
                "(SELECT collectionID FROM collections WHERE key = ?)",
                (_number(db, key), collection),
            )

    def change(self, key: str, **fields: str) -> None:
        """Set fields of an item."""
        with self.database() as db:
            _set_fields(db, _number(db, key), fields)

    def trash(self, key: str) -> None:
        """Move an item into the trash."""
        self.execute("INSERT INTO deletedItems (itemID) VALUES ((SELECT itemID FROM items WHERE key = ?))", key)

    def erase(self, key: str) -> None:
        """Delete an item for good, with all below it."""
        with self.database() as db:
            db.execute("PRAGMA foreign_keys = ON")
            below = [_number(db, key)]
            for number in below:
                for table in ("itemAttachments", "itemNotes", "itemAnnotations"):
                    below += [
                        row[0] for row in db.execute(f"SELECT itemID FROM {table} WHERE parentItemID = ?", (number,))
                    ]
            for number in reversed(below):
                db.execute("DELETE FROM itemAnnotations WHERE itemID = ?", (number,))
                db.execute("DELETE FROM items WHERE itemID = ?", (number,))

    def execute(self, statement: str, *parameters: Any) -> None:
        """Change the database in any other way."""
        with self.database() as db:
            db.execute("PRAGMA foreign_keys = ON")
            db.execute(statement, parameters)

    def better_bibtex(self, keys: Mapping[str, str]) -> None:
        """Let Better BibTeX have these keys by item, in its own database."""
        with closing(sqlite3.connect(self.folder / "better-bibtex.sqlite")) as db, db:
            db.executescript(f"DROP TABLE IF EXISTS citationkey; {KEYS_SCHEMA}")
            rows = [(number, item, OWN, key, 0) for number, (item, key) in enumerate(keys.items())]
            db.executemany("INSERT INTO citationkey VALUES (?, ?, ?, ?, ?)", rows)


def _insert_item(db: sqlite3.Connection, key: str, kind: str, library: int) -> int:
    (count,) = db.execute("SELECT count(*) FROM items").fetchone()
    added = f"2024-01-01 {count // 3600:02d}:{count // 60 % 60:02d}:{count % 60:02d}"
    values = (KINDS.index(kind) + 1, added, library, key)
    return int(
        db.execute("INSERT INTO items (itemTypeID, dateAdded, libraryID, key) VALUES (?, ?, ?, ?)", values).lastrowid
        or 0
    )


def _set_fields(db: sqlite3.Connection, item: int, fields: Mapping[str, str]) -> None:
    for name, value in fields.items():
        field = db.execute("SELECT fieldID FROM fieldsCombined WHERE fieldName = ?", (name,)).fetchone()
        if field is None:
            (field,) = (db.execute("SELECT count(*) + 1 FROM fieldsCombined").fetchone(),)
            db.execute("INSERT INTO fieldsCombined VALUES (?, ?, NULL, NULL, 0)", (field[0], name))
        db.execute("INSERT OR IGNORE INTO itemDataValues (value) VALUES (?)", (value,))
        db.execute(
            "INSERT OR REPLACE INTO itemData VALUES (?, ?, (SELECT valueID FROM itemDataValues WHERE value = ?))",
            (item, field[0], value),
        )


def _put(db: sqlite3.Connection, item: int, collection: str) -> None:
    (found,) = db.execute("SELECT collectionID FROM collections WHERE key = ?", (collection,)).fetchone()
    db.execute("INSERT INTO collectionItems (collectionID, itemID) VALUES (?, ?)", (found, item))


def _number(db: sqlite3.Connection, key: str) -> int:
    return int(db.execute("SELECT itemID FROM items WHERE key = ?", (key,)).fetchone()[0])


def filled(zotero: MadeZotero, count: int) -> None:
    """Add `count` items: most with a file, some with a note, an abstract only, nothing, or keys of their own."""
    with zotero.database():
        zotero.collection("COLLMAIN", "Thesis")
        zotero.collection("COLLPART", "Methods", "COLLMAIN")
        for number in range(count):
            key, topic = key_of(number), f"subject{number:04d}"
            fields = {
                "title": f"On the {topic} of looms",
                "date": f"{1990 + number % 30}-05-01 May {1990 + number % 30}",
            }
            if number % 5 == 1:
                fields["abstractNote"] = f"We report what the {topic} does to a loom that weaves at night."
            if number % 3 == 0:
                fields["extra"] = f"Citation Key: {topic}Pinned"
            collections = ["COLLMAIN"] if number % 10 == 0 else ["COLLPART"] if number % 10 == 1 else []
            zotero.item(key, authors=[("Ada", f"Weaver{number}")], collections=collections, **fields)
            if number % 10 not in (1, 9):
                zotero.file(key_of(number, "F"), key, f"{topic}.md", page_of(topic))
            if number % 7 == 0:
                zotero.note(key_of(number, "N"), key, f"<p>My thoughts about <b>{topic}</b></p>")


def page_of(topic: str) -> str:
    """The markdown of a paper."""
    return (
        f"# On the {topic} of looms\n\n## Introduction\n\nThe {topic} was measured in forty looms over three summers. "
        f"It grew by two units in each of them.\n"
    )


def key_of(number: int, letter: str = "A") -> str:
    """The Zotero key with this number."""
    return f"{letter}{number:07d}"
