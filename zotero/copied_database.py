"""Opens databases of a program that may be running: from a private copy with its journals, never in place."""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

from ..documents.safe_files import FileRefusedError, require_regular
from .zotero_records import ZoteroError, plain_text

JOURNALS: Final = ("", "-wal", "-journal")  # what is committed may still be in the write-ahead log
_MOST_BYTES: Final = 20_000_000_000
_TRIES: Final = 3

Row = dict[str, Any]


@contextmanager
def copied(file: Path) -> Iterator[sqlite3.Connection]:
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
            for ending in JOURNALS:
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
    paths = [Path(f"{file}{ending}") for ending in JOURNALS]
    return [(path.stat().st_size, path.stat().st_mtime_ns) if path.is_file() else (0, 0) for path in paths]


def tables_of(db: sqlite3.Connection, name: str) -> frozenset[str]:
    """The names of the tables, without views; raises `ZoteroError` that names the file."""
    rows = rows_of(db, "SELECT name FROM sqlite_master WHERE type = 'table'", (), name)
    return frozenset(stored_text(row["name"]) for row in rows)


def rows_of(db: sqlite3.Connection, query: str, parameters: Sequence[Any], name: str) -> list[Row]:
    """The rows of a query; raises `ZoteroError` that names the file."""
    try:
        return [dict(row) for row in db.execute(query, parameters)]
    except sqlite3.Error as error:
        raise _unreadable(name, error) from error


def _unreadable(name: str, error: sqlite3.Error) -> ZoteroError:
    remedy = "Start Zotero, which repairs or restores it, and run the same command again."
    return ZoteroError(f"{name}: cannot be read ({error}).", help=remedy)


def stored_text(value: Any) -> str:
    """A stored value as text: SQLite keeps any type in any column."""
    return "" if value is None or isinstance(value, bytes) else plain_text(str(value))
