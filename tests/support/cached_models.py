"""The bundled models, asked once for each text in a test session, by whichever worker or command comes first.

Both give the same text the same result whatever it is asked with, and tests ask for the same papers, experiments and
questions hundreds of times. What the reranker says of most pairs is in `tests/data/reranker_scores.sqlite`, since it
took a third of the time of tests that write without a chat model; another reranker, or another version of onnxruntime,
is asked all of it. Tests of the models themselves ask them each time: `real_models`.

`python -m tests.support.cached_models SESSION/models.sqlite ...` adds the scores of sessions to that file; pytest keeps
the folders of the last three.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import sqlite3
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from citeloom.models.embeddings.bundled_models import RERANKER, LocalEmbedding, Reranker
from tests.support.forked_python import ROOT, SHARED

if TYPE_CHECKING:
    import pytest

_MOST = 20_000
_STORED = ROOT / "tests" / "data" / "reranker_scores.sqlite"
_TABLE = "CREATE TABLE IF NOT EXISTS answers (name BLOB PRIMARY KEY, answer) WITHOUT ROWID"
_CODE = hashlib.sha256(inspect.getsource(Reranker).encode()).hexdigest()
_RERANKER = f"{RERANKER.onnx_sha256} {RERANKER.tokenizer_sha256} {version('onnxruntime')} {_CODE}"
_EMBED, _SCORE = LocalEmbedding.embed_text, Reranker.score


def _stored() -> dict[bytes, bytes]:
    """The scores in the file, if they are of this reranker."""
    with closing(sqlite3.connect(f"{_STORED.as_uri()}?immutable=1", uri=True)) as db:
        if db.execute("SELECT reranker FROM asked").fetchone() != (_RERANKER,):
            return {}
        return dict(db.execute("SELECT name, answer FROM answers"))


def store_scores(sessions: Sequence[Path]) -> None:
    """Add the scores of these sessions to the file; those of another reranker are dropped."""
    known = _stored() if _STORED.exists() else {}
    for session in sessions:
        with closing(sqlite3.connect(session)) as db:
            known |= dict(db.execute("SELECT name, answer FROM answers WHERE length(answer) = 4"))  # not a vector
    _STORED.unlink(missing_ok=True)
    with closing(sqlite3.connect(_STORED)) as db, db:
        db.execute("CREATE TABLE asked (reranker)")
        db.execute("INSERT INTO asked VALUES (?)", (_RERANKER,))
        db.execute(_TABLE)
        db.executemany("INSERT INTO answers VALUES (?, ?)", sorted(known.items()))


class _Answers:
    """Vectors and scores by what was asked; new ones in a file that is opened when needed: forks must not share it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stored = _stored()
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None

    def get(self, ask: Callable[[], Any], *asked: str) -> Any:
        """The answer from a file, float32, or else that of the model, which is stored."""
        name = hashlib.sha256("\0".join(asked).encode()).digest()
        if (stored := self._stored.get(name)) is not None:
            return np.frombuffer(stored, dtype=np.float32)
        with self._lock:
            if self._db is None:
                self._db = sqlite3.connect(self._path, timeout=300, isolation_level=None, check_same_thread=False)
                self._db.execute("PRAGMA synchronous = OFF")
                self._db.execute(_TABLE)
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


if __name__ == "__main__":
    store_scores([Path(session) for session in sys.argv[1:]])
