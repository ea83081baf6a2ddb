"""Write-ahead logging for the SQLite files of a home, which several processes may make at once."""

from __future__ import annotations

import sqlite3
import time
from contextlib import closing
from pathlib import Path

_PATIENCE = 30.0  # seconds


def write_ahead(db: sqlite3.Connection, patience: float = _PATIENCE) -> None:
    """Switch a file to WAL. SQLite waits for no lock here: of several that make the file at once, all but one are told
    that it is locked (seen with four processes), so they try again for `patience` seconds; raises sqlite3.Error."""
    until = time.monotonic() + patience
    while True:
        try:
            db.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY or time.monotonic() > until:
                raise
            time.sleep(0.01)
        else:
            return


def make_write_ahead(path: Path) -> None:
    """The file at `path` in WAL mode, which it keeps; raises sqlite3.Error."""
    with closing(sqlite3.connect(path, timeout=_PATIENCE)) as db:
        write_ahead(db)
