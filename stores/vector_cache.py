"""A cache of vectors shared between libraries, by model and text.

A library already reuses its own vectors; this cache is for libraries that are created again and again from the same
papers, as in tests and benchmarks.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from ..models.embeddings.protocol import Vector
from ..sqlite import naming_damage, write_ahead


class VectorCache:
    """A SQLite file of vectors; may be shared between threads and processes."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=30)
        with naming_damage(path, "Delete it: vectors are computed again."):
            write_ahead(self._db)
            self._db.execute(
                "CREATE TABLE IF NOT EXISTS vectors (model TEXT, text_hash TEXT, vector BLOB NOT NULL,"
                " PRIMARY KEY (model, text_hash)) WITHOUT ROWID"
            )

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()

    def get(self, model: str, hashes: Sequence[str]) -> dict[str, Vector]:
        """The cached vectors, by text hash."""
        with self._lock:
            rows = self._db.execute(
                "SELECT text_hash, vector FROM vectors"
                " WHERE model = ? AND text_hash IN (SELECT value FROM json_each(?))",
                (model, json.dumps(list(hashes))),
            ).fetchall()
        return {name: np.frombuffer(blob, dtype="<f4").astype(np.float32) for name, blob in rows}

    def put(self, model: str, vectors: Mapping[str, Vector]) -> None:
        """Store vectors by text hash."""
        rows = [(model, name, vector.astype("<f4").tobytes()) for name, vector in vectors.items()]
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
