"""The bundled embedding model: bge-small-en-v1.5 in int8, 384 dimensions, no key and no network.

Each text is a run of its own, without padding, with as many concurrent runs as cores. The int8 model scales its
activations over the whole batch, so batching would change a vector with its neighbours; alone, a text always has the
same vector.
"""

from __future__ import annotations

import asyncio
import os
from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final

from ..singleton import thread_safe_cache
from .bundled_weights import EMBEDDER, MAX_TOKENS, count_tokens, count_tokens_each, load_session, load_tokenizer
from .protocol import Vector, Vectors, normalised

QUERY_PREFIX: Final = "Represent this sentence for searching relevant passages: "
DIMENSIONS: Final = 384
_LATEST_QUERIES: Final = 64


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@thread_safe_cache
def _workers() -> ThreadPoolExecutor:
    # One pool for all callers: more concurrent runs than cores would only slow each other down.
    return ThreadPoolExecutor(cores(), thread_name_prefix="embed")


class LocalEmbedding:
    """Implements `EmbeddingModel` on onnxruntime; loads on first use; may be shared by threads and event loops."""

    name: Final = f"local:{EMBEDDER.name}"
    dimensions: Final = DIMENSIONS
    at_once: Final = 1

    def __init__(self) -> None:
        # The same question is searched in summaries, in chunks, then more widely, but is embedded only once.
        self.latest_queries: OrderedDict[str, Vector] = OrderedDict()

    def count_tokens(self, text: str) -> int:
        """Tokens without special tokens; raises `WeightsError`."""
        return count_tokens(text)

    def count_tokens_each(self, texts: Sequence[str]) -> list[int]:
        """`count_tokens` of each text; raises `WeightsError`."""
        return count_tokens_each(texts)

    def embed_text(self, text: str) -> Vector:
        """The vector of `text` without a prefix, [384], truncated at 512 tokens; blocks. Raises `WeightsError`."""
        import numpy as np  # lists of papers open a library without it

        ids = load_tokenizer(EMBEDDER).encode(text).ids
        if len(ids) > MAX_TOKENS:
            ids = [*ids[: MAX_TOKENS - 1], ids[-1]]
        row = np.array([ids], dtype=np.int64)
        inputs = {
            "input_ids": row,
            "attention_mask": np.ones_like(row),
            "token_type_ids": np.zeros_like(row),
        }
        hidden = np.asarray(load_session(EMBEDDER).run(None, inputs)[0], dtype=np.float32)
        return normalised(hidden[0, 0])

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        """Vectors of `texts`, [n, 384]; raises `WeightsError`."""
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        waiting = iter(range(len(texts)))
        loop = asyncio.get_running_loop()

        # Each worker takes the next text when it is free, so that a query from another task never
        # queues behind a whole library.
        async def work() -> None:
            for index in waiting:
                vectors[index] = await loop.run_in_executor(_workers(), self.embed_text, texts[index])
                if on_done is not None:
                    on_done(1)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(cores(), len(texts))):
                group.create_task(work())
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """The vector of a query, [384], with the prefix that the model was trained with."""
        vector = self.latest_queries.get(text)
        if vector is None:
            loop = asyncio.get_running_loop()
            vector = await loop.run_in_executor(_workers(), self.embed_text, QUERY_PREFIX + text)
            vector.setflags(write=False)
            self.latest_queries[text] = vector
            while len(self.latest_queries) > _LATEST_QUERIES:
                self.latest_queries.popitem(last=False)
        return vector
