"""The tables of a register in a SQLite file."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import AbstractContextManager
from pathlib import Path

from ...sqlite import REGISTER_REMEDY, RegisterFile


class FileTables:
    """The tables of `schema` in the file at `path`, which is created with the first entry."""

    def __init__(self, path: Path, schema: str, remedy: str = REGISTER_REMEDY) -> None:
        self._path = path
        self._schema = schema
        self._remedy = remedy
        self._opening = threading.Lock()
        self._opened: RegisterFile | None = None

    def exist(self) -> bool:
        """Whether the file is there."""
        return self._path.is_file()

    def transaction(self) -> AbstractContextManager[sqlite3.Connection]:
        """A connection of its own."""
        with self._opening:
            if self._opened is None:
                self._opened = RegisterFile(self._path, self._schema, self._remedy)
        return self._opened.connection()
