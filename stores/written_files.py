"""What Citeloom has written into files outside of its home, by hash: anything else in them is somebody's own.

A hash is kept before its file is written, so that what a killed process left half done is known as well. It says
nothing of the place: a folder that was moved or copied keeps its files known, as long as the home is the same.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from pathlib import Path

from ..sqlite import RegisterFile

_SCHEMA = "CREATE TABLE IF NOT EXISTS written (hash TEXT PRIMARY KEY, noted_at REAL NOT NULL) WITHOUT ROWID;"


class WrittenFiles:
    """The hashes in the register of runs at `path`; without a path nothing is known. Blocks, and any thread may ask."""

    def __init__(self, path: Path | None = None) -> None:
        self._file = None if path is None else RegisterFile(path, _SCHEMA)

    def note(self, contents: Collection[bytes]) -> None:
        """Keep the hashes of what is about to be written."""
        if self._file is None:
            return
        now = time.time()
        rows = [(hashlib.sha256(content).hexdigest(), now) for content in contents]
        with self._file.connection() as connection:
            connection.executemany("INSERT OR REPLACE INTO written VALUES (?, ?)", rows)

    def has(self, file: Path) -> bool:
        """Whether a file holds just what Citeloom wrote; a link, or what cannot be read, is not its own."""
        if self._file is None or file.is_symlink() or not file.is_file():
            return False
        try:
            with file.open("rb") as opened:
                found = hashlib.file_digest(opened, "sha256").hexdigest()
        except OSError:
            return False
        with self._file.connection() as connection:
            return connection.execute("SELECT 1 FROM written WHERE hash = ?", (found,)).fetchone() is not None
