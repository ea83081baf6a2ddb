"""A tiny embedding for tests: words hashed into 32 dimensions, so that texts with common words are near."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

DIMENSIONS = 32


class WordEmbedding:
    """Implements `EmbeddingModel` without weights; `embedded` lists every document text it received."""

    def __init__(self, name: str = "test:words") -> None:
        self.name = name
        self.dimensions = DIMENSIONS
        self.at_once = 1
        self.embedded: list[str] = []

    def count_tokens(self, text: str) -> int:
        """Words and punctuation marks."""
        return len(re.findall(r"\w+|[^\w\s]", text))

    def count_tokens_each(self, texts: Sequence[str]) -> list[int]:
        """`count_tokens` of each text."""
        return [self.count_tokens(text) for text in texts]

    def vector(self, text: str) -> NDArray[np.float32]:
        """The vector of a text, [32]."""
        total = np.full(DIMENSIONS, 1e-3, dtype=np.float32)
        for word in re.findall(r"\w{3,}", text.lower()):
            digest = hashlib.sha256(word.encode()).digest()
            total[digest[0] % DIMENSIONS] += 1.0 if digest[1] % 2 else -1.0
        return (total / np.linalg.norm(total)).astype(np.float32)

    async def embed_documents(
        self, texts: Sequence[str], on_done: Callable[[int], None] | None = None
    ) -> NDArray[np.float32]:
        """Vectors of `texts`, [n, 32]."""
        rows = []
        for text in texts:
            self.embedded.append(text)
            rows.append(self.vector(text))
            if on_done is not None:
                on_done(1)
        return np.stack(rows) if rows else np.zeros((0, DIMENSIONS), dtype=np.float32)

    async def embed_query(self, text: str) -> NDArray[np.float32]:
        """The vector of a query, [32]."""
        return self.vector(text)
