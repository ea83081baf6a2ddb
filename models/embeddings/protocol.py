"""The protocol of embedding models."""

from __future__ import annotations

import base64
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:  # importing numpy takes as long as `--help`
    import numpy as np
    from numpy.typing import NDArray

Vector: TypeAlias = "NDArray[np.float32]"  # [d], length 1
Vectors: TypeAlias = "NDArray[np.float32]"  # [n, d], each row of length 1


class EmbeddingModel(Protocol):
    """Embeds chunks and queries as unit vectors, so that a dot product is the cosine."""

    @property
    def name(self) -> str:
        """The name of the model and its weights; models whose vectors must not be mixed have different names."""

    @property
    def dimensions(self) -> int | None:
        """The length of a vector; None until an endpoint has answered."""

    @property
    def at_once(self) -> int:
        """The number of texts worth batching in one call, across papers; 1 if batching gains nothing."""

    def count_tokens(self, text: str) -> int:
        """The number of tokens by the bundled tokenizer, so that chunks never depend on the model."""

    def count_tokens_each(self, texts: Sequence[str]) -> list[int]:
        """`count_tokens` of each text, at once."""

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        """Vectors of `texts`, [n, d], in order; `on_done(k)` is called when k more are finished."""

    async def embed_query(self, text: str) -> Vector:
        """The vector of a query, [d]."""


def normalise(rows: Vectors) -> Vectors:
    """`rows` scaled to length 1; zero rows stay unchanged."""
    import numpy as np

    lengths = np.linalg.norm(rows, axis=-1, keepdims=True)
    scaled: Vectors = (rows / np.where(lengths == 0, 1, lengths)).astype(np.float32)
    return scaled


def encode_vector(vector: Vector) -> str:
    """A vector as text."""
    import numpy as np

    return base64.b64encode(np.ascontiguousarray(vector, dtype="<f4").tobytes()).decode()


def decode_vector(written: str) -> Vector:
    """Decode a vector from text; empty if the text is not a vector."""
    import numpy as np

    try:
        return np.frombuffer(base64.b64decode(written, validate=True), dtype="<f4").astype(np.float32)
    except ValueError:
        return np.zeros(0, np.float32)
