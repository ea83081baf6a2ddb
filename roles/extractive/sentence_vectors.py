"""Caches the vectors of sentences, so that each is embedded only once."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from ...models.embeddings.protocol import EmbeddingModel, Vector, Vectors

_KEPT = 20_000


class SentenceVectors:
    """Caches the latest vectors of an embedding model; shared by the extractive roles of a run."""

    def __init__(self, embedding: EmbeddingModel) -> None:
        self._embedding = embedding
        self._documents: OrderedDict[str, Vector] = OrderedDict()
        self._queries: OrderedDict[str, Vector] = OrderedDict()

    async def of(self, texts: Sequence[str]) -> Vectors:
        """Vectors of `texts` as documents, [n, d]."""
        missing = [text for text in dict.fromkeys(texts) if text not in self._documents]
        found = dict(zip(missing, await self._embedding.embed_documents(missing), strict=True)) if missing else {}
        rows = [found[text] if text in found else self._documents[text] for text in texts]
        self._documents.update(found)
        while len(self._documents) > _KEPT:
            self._documents.popitem(last=False)
        return np.array(rows, dtype=np.float32)

    async def of_query(self, text: str) -> Vector:
        """The vector of `text` as a query, [d]."""
        if text not in self._queries:
            self._queries[text] = await self._embedding.embed_query(text)
        return self._queries[text]
