"""Vectors by model and text in a file, for libraries that are created again and again from the same papers."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from citeloom.documents import text_hash
from citeloom.models.embeddings.protocol import EmbeddingModel, Vector, Vectors
from citeloom.sqlite import naming_damage, write_ahead


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


class CachedEmbedding:
    """An embedding model that embeds only the documents that are not in the file at `path`."""

    def __init__(self, model: EmbeddingModel, path: Path) -> None:
        self._model = model
        self._cache = VectorCache(path)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        by_hash = {text_hash(text): text for text in texts}
        known = self._cache.get(self._model.name, list(by_hash))
        if missing := [name for name in by_hash if name not in known]:
            rows = await self._model.embed_documents([by_hash[name] for name in missing])
            new = dict(zip(missing, rows, strict=True))
            self._cache.put(self._model.name, new)
            known |= new
        if on_done is not None:
            on_done(len(texts))
        return np.stack([known[text_hash(text)] for text in texts])
