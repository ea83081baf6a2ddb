"""SQLite helpers: connections that hold valid text, WAL mode, and errors for damaged files."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from .errors import InputError
from .table_columns import WrongValueError, strip_nul, text_or_bytes

REGISTER_REMEDY: Final = (
    "Move it away: the list of runs and conversations starts empty, and paid answers stay in the journal."
)


class TextConnection(sqlite3.Connection):
    """A connection that writes only text that every backend can store, and reads invalid text as bytes."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.text_factory = text_or_bytes

    def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
        """Execute a statement, with NUL and lone surrogates in its parameters replaced (`strip_nul`)."""
        return super().execute(sql, _strip_parameters(parameters))

    def executemany(self, sql: str, rows: Iterable[Any], /) -> sqlite3.Cursor:
        """Execute a statement for each row of parameters, like `execute`."""
        return super().executemany(sql, map(_strip_parameters, rows))


def _strip_parameters(parameters: Any) -> Any:
    if isinstance(parameters, dict):
        return {name: strip_nul(value) if isinstance(value, str) else value for name, value in parameters.items()}
    return [strip_nul(value) if isinstance(value, str) else value for value in parameters]


MEMORY_REMEDY: Final = "Move it away: the memory starts empty ('memory add')."
_LOCK_TIMEOUT = 30.0  # seconds


def write_ahead(db: sqlite3.Connection, timeout: float = _LOCK_TIMEOUT) -> None:
    """Switch a file to WAL mode; raises sqlite3.Error.

    SQLite does not wait for locks here, so processes that create the file at once retry for `timeout` seconds.
    """
    until = time.monotonic() + timeout
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


# Transient errors that do not mean damage: another process, the disk, permissions.
_PASSING: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_PERM")
CHECKPOINTS_REMEDY: Final = "Move it away: unfinished runs restart, and paid answers are taken from the journal."


class DamagedFileError(InputError):
    """A file of the home cannot be read; nothing was changed."""


@contextmanager
def naming_damage(path: Path, remedy: str) -> Iterator[None]:
    """Raise `DamagedFileError` with the remedy if SQLite cannot read the file at `path`, or a value is wrong."""
    try:
        yield
    except WrongValueError as error:
        raise DamagedFileError(f"{path}: {error}", help=remedy) from None
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorname", None) or "").startswith(_PASSING):
            raise
        raise DamagedFileError(f"{path}: cannot be read ({' '.join(str(error).split())}).", help=remedy) from error


def require_plain_schema(db: sqlite3.Connection, path: Path, remedy: str) -> None:
    """Raise `DamagedFileError` for a view or trigger, which could run somebody else's code, possibly forever."""
    row = db.execute("SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger') LIMIT 1").fetchone()
    if row is not None:
        raise DamagedFileError(f"{path}: holds a {row[0]} ({row[1]!r}), which Citeloom does not make.", help=remedy)
