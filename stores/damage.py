"""SQLite files of a home that cannot be read, or that hold what no Citeloom made: each is named, with the remedy."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from citeloom.errors import InputError

# Errors of the moment, which say nothing of the file: another process, the disk, rights.
_PASSING: Final = ("SQLITE_BUSY", "SQLITE_LOCKED", "SQLITE_FULL", "SQLITE_IOERR", "SQLITE_READONLY", "SQLITE_PERM")


CHECKPOINTS_REMEDY: Final = (
    "Move it away: runs under way begin anew, and answers that were paid for are taken from the journal."
)


class DamagedFileError(InputError):
    """A file of the home cannot be read; nothing was changed."""


@contextmanager
def naming_damage(path: Path, remedy: str) -> Iterator[None]:
    """Raise `DamagedFileError` with the remedy where SQLite cannot read the file at `path`."""
    try:
        yield
    except sqlite3.DatabaseError as error:
        if (getattr(error, "sqlite_errorname", None) or "").startswith(_PASSING):
            raise
        raise DamagedFileError(f"{path}: cannot be read ({' '.join(str(error).split())}).", help=remedy) from error


def require_plain_schema(db: sqlite3.Connection, path: Path, remedy: str) -> None:
    """Raise `DamagedFileError` for a view or trigger, which would run what another wrote, perhaps without an end."""
    row = db.execute("SELECT type, name FROM sqlite_master WHERE type IN ('view', 'trigger') LIMIT 1").fetchone()
    if row is not None:
        raise DamagedFileError(f"{path}: holds a {row[0]} ({row[1]!r}), which Citeloom does not make.", help=remedy)
