"""What turns text into vectors, as a protocol."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]  # [d], length 1
Vectors = NDArray[np.float32]  # [n, d], each row of length 1


class EmbeddingModel(Protocol):
    """Embeds chunks and queries; all vectors have length 1, so that a dot product is the cosine."""

    @property
    def name(self) -> str:
        """Names model and weights; two models whose vectors must not be mixed have different names."""
        ...

    @property
    def dimensions(self) -> int | None:
        """Length of a vector; None while an endpoint has not answered yet."""
        ...

    @property
    def at_once(self) -> int:
        """Texts that are worth gathering for one call, over several papers; 1 where there is nothing to gain."""
        ...

    def count_tokens(self, text: str) -> int:
        """Tokens by the bundled tokenizer, without special tokens: chunks never depend on the model."""
        ...

    def count_tokens_each(self, texts: Sequence[str]) -> list[int]:
        """`count_tokens` of each text, at once."""
        ...

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        """Vectors of `texts`, [n, d] in their order; `on_done(k)` is called as k more are finished."""
        ...

    async def embed_query(self, text: str) -> Vector:
        """The vector of a query, [d]."""
        ...


def normalised(rows: Vectors) -> Vectors:
    """`rows` scaled to length 1; a row of zeros stays as it is."""
    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled
