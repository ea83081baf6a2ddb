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

from ...documents.safe_files import hash_regular_file
from ...sqlite import RegisterFile

WRITTEN_SCHEMA: Final = (
    "CREATE TABLE IF NOT EXISTS written (hash TEXT PRIMARY KEY, noted_at REAL NOT NULL) WITHOUT ROWID;"
)


class WrittenFiles:
    """The hashes in the run registry at `path`; without a path none are known. Blocking and thread-safe."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = None if path is None else RegisterFile(path, WRITTEN_SCHEMA)

    def note(self, contents: Collection[bytes]) -> None:
        """Store the hashes of contents that are about to be written."""
        if self._file is None:
            return
        now = time.time()
        rows = [(hashlib.sha256(content).hexdigest(), now) for content in contents]
        with self._file.connection() as connection:
            connection.executemany("INSERT OR REPLACE INTO written VALUES (?, ?)", rows)

    def has(self, file: Path) -> bool:
        """Whether a file holds exactly what Citeloom wrote; false for a link or an unreadable file."""
        if self._file is None or (found := hash_regular_file(file)) is None:
            return False
        with self._file.connection() as connection:
            return connection.execute("SELECT 1 FROM written WHERE hash = ?", (found,)).fetchone() is not None
