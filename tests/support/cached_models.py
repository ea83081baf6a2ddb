"""The bundled models, asked once for each text in a test session, by whichever worker or command comes first.

Both give the same text the same result whatever it is asked with, and tests ask for the same papers, experiments and
questions hundreds of times. Tests of the models themselves ask them each time: `real_models`.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
import threading
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citeloom.models.embeddings.bundled_models import LocalEmbedding, Reranker
from tests.support.forked_python import SHARED

if TYPE_CHECKING:
    import pytest

_MOST = 20_000
_EMBED, _SCORE = LocalEmbedding.embed_text, Reranker.score


class _Answers:
    """Vectors and scores by what was asked, in a file that is opened when it is needed: forks must not share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def get(self, ask: Callable[[], Any], *asked: str) -> Any:
        """The answer from the file, float32, or else that of the model, which is stored."""
        name = hashlib.sha256("\0".join(asked).encode()).digest()
        with self._lock:
            if self._db is None:
                self._db = sqlite3.connect(self._path, timeout=300, isolation_level=None, check_same_thread=False)
                self._db.execute("PRAGMA synchronous = OFF")
                self._db.execute("CREATE TABLE IF NOT EXISTS answers (name BLOB PRIMARY KEY, answer) WITHOUT ROWID")
            row = self._db.execute("SELECT answer FROM answers WHERE name = ?", (name,)).fetchone()
        if row is None:
            row = [np.asarray(ask(), dtype=np.float32).tobytes()]
            with self._lock:
                self._db.execute("INSERT OR IGNORE INTO answers VALUES (?, ?)", (name, row[0]))
        return np.frombuffer(row[0], dtype=np.float32)


def cache_models(change: Callable[[Any, str, Any], None]) -> None:
    """Answer repeated texts and pairs from memory, or from the file that `SHARED` names; `change` is `setattr`."""
    models = LocalEmbedding(), Reranker()
    answers = _Answers(Path(os.environ[SHARED]))

    @lru_cache(_MOST)
    def embedded(text: str) -> Any:
        return answers.get(lambda: _EMBED(models[0], text), "vector", text)

    @lru_cache(_MOST)
    def scored(query: str, text: str) -> np.float32:
        return np.float32(answers.get(lambda: _SCORE(models[1], query, [text]), "score", query, text)[0])

    def embed_text(_: LocalEmbedding, text: str) -> Any:
        return embedded(text).copy()

    def score(_: Reranker, query: str, texts: Sequence[str]) -> Any:
        return np.array([scored(query, text) for text in texts], dtype=np.float32)

    change(LocalEmbedding, "embed_text", embed_text)
    change(Reranker, "score", score)


def real_models(patch: pytest.MonkeyPatch) -> None:
    """Ask the models each time."""
    patch.setattr(LocalEmbedding, "embed_text", _EMBED)
    patch.setattr(Reranker, "score", _SCORE)
