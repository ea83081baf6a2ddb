"""Records hashes of the files that Citeloom wrote outside its home; any other content belongs to the user.

A hash is stored before its file is written, so that files of a killed process are recognized too. It does not depend
on the path: the files of a moved or copied folder are still recognized as long as the home is the same.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

from ..documents.safe_files import hash_of_own_file
from ..table_columns import MOMENT, TEXT, TypedTable
from .tables import Tables

WRITTEN: Final = TypedTable("written", ("hash",), {"hash": TEXT, "noted_at": MOMENT})


class WrittenFiles:
    """The hashes of a home; without its tables none are known. Blocking and thread-safe."""

    def __init__(self, tables: Tables | None = None) -> None:
        self._tables = tables

    def note(self, contents: Collection[bytes]) -> None:
        """Store the hashes of contents that are about to be written."""
        if self._tables is None:
            return
        rows = [(hashlib.sha256(content).hexdigest(), time.time()) for content in contents]
        with self._tables.transaction() as connection:
            connection.executemany(WRITTEN.insert("ignore"), rows)

    def has(self, file: Path) -> bool:
        """Whether a file holds exactly what Citeloom wrote; false for a link or an unreadable file."""
        if self._tables is None or not self._tables.exist() or (found := hash_of_own_file(file)) is None:
            return False
        with self._tables.transaction() as connection:
            return connection.execute("SELECT 1 FROM written WHERE hash = ?", (found,)).fetchone() is not None
