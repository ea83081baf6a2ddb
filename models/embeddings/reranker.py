"""The bundled cross-encoder (ms-marco-MiniLM-L-12-v2 in int8), which scores how well a text answers a query."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from .bundled_weights import MAX_TOKENS, RERANKER, load_session, load_tokenizer
from .local import cores

CLS: Final = "[CLS]"
SEP: Final = "[SEP]"
# More runs at once than cores save no time, and each takes up to 60 MB that the session keeps for good.
_RUNS: Final = threading.Semaphore(cores())


class Reranker:
    """Scores pairs of query and text; loads on first use; may be shared by threads."""

    name: Final = f"local:{RERANKER.name}"

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Scores in 0-1, [n] in the order of `texts`; blocks.

        A pair longer than 512 tokens is truncated at the end of its text, and a query to at most half of them.
        Raises `WeightsError`.
        """
        tokenizer = load_tokenizer(RERANKER)
        session = load_session(RERANKER)
        start, separator = tokenizer.token_to_id(CLS), tokenizer.token_to_id(SEP)
        asked = tokenizer.encode(query, add_special_tokens=False).ids[: MAX_TOKENS // 2]
        head = [start, *asked, separator]
        logits = np.zeros(len(texts), dtype=np.float32)
        for position, text in enumerate(texts):
            # One pair per run: the same pair has the same score whatever it is scored with.
            body = tokenizer.encode(text, add_special_tokens=False).ids[: MAX_TOKENS - len(head) - 1]
            ids = np.array([[*head, *body, separator]], dtype=np.int64)
            kinds = np.array([[0] * len(head) + [1] * (len(body) + 1)], dtype=np.int64)
            inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": kinds}
            with _RUNS:
                logits[position] = np.asarray(session.run(None, inputs)[0])[0, 0]
        scores: NDArray[np.float32] = (1 / (1 + np.exp(-logits))).astype(np.float32)
        return scores
