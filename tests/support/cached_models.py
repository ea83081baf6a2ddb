"""The bundled models, asked once for each text in a test session.

Both give the same text the same result whatever it is asked with, and tests ask for the same papers, experiments and
questions hundreds of times. Tests of the models themselves ask them each time: `real_models`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding, Reranker

_MOST = 20_000
_EMBED, _SCORE = LocalEmbedding.embed_text, Reranker.score


def cache_models(patch: pytest.MonkeyPatch) -> None:
    """Answer repeated texts and pairs from memory."""
    models = LocalEmbedding(), Reranker()

    @lru_cache(_MOST)
    def embedded(text: str) -> Any:
        return _EMBED(models[0], text)

    @lru_cache(_MOST)
    def scored(query: str, text: str) -> np.float32:
        return np.float32(_SCORE(models[1], query, [text])[0])

    def embed_text(_: LocalEmbedding, text: str) -> Any:
        return embedded(text).copy()

    def score(_: Reranker, query: str, texts: Sequence[str]) -> Any:
        return np.array([scored(query, text) for text in texts], dtype=np.float32)

    patch.setattr(LocalEmbedding, "embed_text", embed_text)
    patch.setattr(Reranker, "score", score)


def real_models(patch: pytest.MonkeyPatch) -> None:
    """Ask the models each time."""
    patch.setattr(LocalEmbedding, "embed_text", _EMBED)
    patch.setattr(Reranker, "score", _SCORE)
