"""A SQLite file that registers keep their rows in: a connection for each call, so that any thread may ask."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from citeloom.models.write_ahead import write_ahead
from citeloom.stores.damage import DamagedFileError, naming_damage, require_plain_schema

_REMEDY = (
    "Move it away: the list of runs and conversations begins anew, and answers that were paid for stay in the journal."
)
_LATEST = 1e11  # seconds, about the year 5100


class RegisterFile:
    """The file at `path` with the tables of `schema`, made where they are not there; blocks."""

    def __init__(self, path: Path, schema: str) -> None:
        self._path = path
        with self.connection() as connection:
            connection.executescript(schema)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """A connection whose changes are on disk when the block ends without an error, and undone otherwise.

        Raises `DamagedFileError` when the file cannot be read.
        """
        with naming_damage(self._path, _REMEDY), closing(sqlite3.connect(self._path, timeout=30)) as connection:
            connection.row_factory = sqlite3.Row
            write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            require_plain_schema(connection, self._path, _REMEDY)
            with connection:
                yield connection

    def checked(self, row: sqlite3.Row, moments: Sequence[str], texts: Sequence[str]) -> None:
        """Raise `DamagedFileError` where a column holds no moment, or no text; SQLite keeps any value in any column."""
        bad = [name for name in moments if not (isinstance(row[name], float) and 0 <= row[name] < _LATEST)]
        bad += [name for name in texts if not isinstance(row[name], str)]
        if bad:
            raise DamagedFileError(f"{self._path}: {bad[0]} of {row['thread_id']!r} cannot be read.", help=_REMEDY)

    def parsed(self, row: sqlite3.Row, name: str) -> dict[str, Any]:
        """The JSON object in a column; raises `DamagedFileError`."""
        try:
            value = json.loads(row[name])
        except (ValueError, TypeError, RecursionError):
            value = None
        if not isinstance(value, dict):
            raise DamagedFileError(f"{self._path}: {name} of {row['thread_id']!r} is no JSON object.", help=_REMEDY)
        return value
