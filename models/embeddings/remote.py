"""Embeddings from an endpoint or any LangChain `Embeddings`, batched; journaled by text, each paid for once."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Final, Literal

import numpy as np

from ...settings.config import Settings
from ...settings.key_trust import endpoint_name
from ..concurrency import gather_all
from ..http.endpoints import ModelIdentity, check_url, hash_key
from ..http.failures import BrokenAnswerError
from ..http.limiter import limiter_for
from ..http.responses import read_usage
from ..journal.budget import Budget, BudgetLimits, Payer, current_payer
from ..journal.journal import Journal
from ..journal.records import CallRecord, CallResult, Reservation, RunScope
from ..paid_call import PaidRequest, get_or_request
from .bundled_models import count_tokens, count_tokens_each
from .protocol import Vector, Vectors, decode_vector, encode_vector, normalise

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings

BATCH: Final = 64  # texts per request
BATCHES_AT_ONCE: Final = 8
_OF_TEXT: Final = 8  # tokens that a server may add to each text
_CHARACTERS_OF_TOKEN: Final = 4  # roughly, if a server does not count tokens

TextKind = Literal["document", "query"]


# Vectors of texts as received, and their tokens as counted by the server, if it counts them.
VectorSource = Callable[[Sequence[str], TextKind], Awaitable[tuple[Sequence[Sequence[float]], int | None]]]


class JournaledEmbedding:
    """Implements `EmbeddingModel` on a remote or expensive source of vectors."""

    at_once: Final = BATCH * BATCHES_AT_ONCE
    count_tokens = staticmethod(count_tokens)
    count_tokens_each = staticmethod(count_tokens_each)

    def __init__(
        self, source: VectorSource, settings: Settings, *, identity: ModelIdentity, journal: Journal, scope: RunScope
    ) -> None:
        self.name: Final = f"{identity.model} at {identity.endpoint}"
        self._source = source
        self._identity = identity
        self._journal = journal
        self._scope = scope
        self._limiter = limiter_for(settings, identity)
        self.dimensions: int | None = None
        self._unlimited = Budget(BudgetLimits(), {}, journal)

    async def embed_documents(self, texts: Sequence[str], on_done: Callable[[int], None] | None = None) -> Vectors:
        """Vectors of `texts`, [n, d]; raises the endpoint's errors, `BudgetReachedError`, `JournalPausedError`."""

        async def embed(batch: Sequence[str]) -> list[Vector]:
            vectors = await self._embed(batch, "document")
            if on_done is not None:
                on_done(len(batch))
            return vectors

        rows: list[Vector] = []
        for first in range(0, len(texts), self.at_once):  # batches in flight finish; after a failure none is started
            wave = texts[first : first + self.at_once]
            done = await gather_all(embed(wave[start : start + BATCH]) for start in range(0, len(wave), BATCH))
            rows += [vector for vectors in done for vector in vectors]
        return np.stack(rows) if rows else np.zeros((0, self.dimensions or 0), dtype=np.float32)

    async def embed_query(self, text: str) -> Vector:
        return (await self._embed([text], "query"))[0]

    async def _embed(self, texts: Sequence[str], kind: TextKind) -> list[Vector]:
        identity = self._identity
        records = [
            CallRecord(
                hash_key(["embedding", identity.endpoint, identity.model, identity.parameters, kind, text]),
                "embedding",
                identity.endpoint,
                identity.model,
            )
            for text in texts
        ]

        payer = current_payer() or Payer(self._scope.run_id, self._unlimited)
        scope = RunScope(payer.run)

        async def ask(request: PaidRequest, positions: Sequence[int]) -> list[CallResult]:
            # Servers refuse an empty text.
            wanted = [texts[position] if texts[position].strip() else "-" for position in positions]
            most = Reservation(payer.run, records[positions[0]], len(wanted), 0, 0)
            admission = await request.admission(most, lambda: "".join(wanted), _OF_TEXT * len(wanted))
            rows, tokens = await self._limiter.run(lambda: self._ask(wanted, kind), admission)
            if tokens is None:  # counting 0 would bypass any budget
                tokens = 1 + sum(map(len, wanted)) // _CHARACTERS_OF_TOKEN
            # A request is billed as a whole; its tokens are counted with its first text.
            first = request.result(_payload(rows[0]), (tokens, 0))
            return [first, *(CallResult(_payload(row)) for row in rows[1:])]

        own = self._scope.run_id
        replays = await get_or_request(records, ask, self._journal, scope, payer.budget, identity, own)
        vectors = [_vector(replay.payload) for replay in replays]
        if self.dimensions is None:
            lengths = Counter(len(vector) for vector in vectors if vector is not None)
            self.dimensions = max(lengths, key=lengths.__getitem__, default=None)
        good = [vector for vector in vectors if vector is not None and len(vector) == self.dimensions]
        if len(good) < len(vectors):
            read = zip(records, vectors, strict=True)
            bad = [record.key for record, vector in read if vector is None or len(vector) != self.dimensions]
            await self._journal.discard(bad, scope)
            return await self._embed(texts, kind)
        return good

    async def _ask(self, texts: Sequence[str], kind: TextKind) -> tuple[Vectors, int | None]:
        try:
            received, tokens = await self._source(texts, kind)
            with np.errstate(over="ignore"):  # overflow becomes infinite, and is refused below
                rows = np.asarray(received, dtype=np.float32)
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise BrokenAnswerError(f"vectors that cannot be read: {error}") from error
        if rows.ndim != 2 or len(rows) != len(texts) or rows.shape[1] == 0:
            raise BrokenAnswerError(f"{len(texts)} texts were sent, but vectors of shape {rows.shape} came back")
        if self.dimensions not in (None, rows.shape[1]):
            raise BrokenAnswerError(f"vectors of {rows.shape[1]} numbers instead of {self.dimensions}")
        if not np.isfinite(rows).all():
            raise BrokenAnswerError("a vector with a number that is not finite")
        return normalise(rows), tokens


def endpoint_embedding(settings: Settings, *, journal: Journal, scope: RunScope) -> JournaledEmbedding:
    """The embedding model at the configured endpoint; raises `ConfigurationError`."""
    model, url, key = settings.embedding_endpoint()
    identity = ModelIdentity(
        endpoint=endpoint_name(url),
        model=model,
        url_setting="CITELOOM_EMBEDDING_BASE_URL",
        model_setting="CITELOOM_EMBEDDING_MODEL",
        key_setting="CITELOOM_EMBEDDING_API_KEY",
        secret=key,
    )
    check_url(url, identity.url_setting)

    async def source(texts: Sequence[str], _: TextKind) -> tuple[Sequence[Sequence[float]], int | None]:
        from ..http.client import Endpoint

        body = {"model": model, "input": list(texts), "encoding_format": "float"}
        answer = await Endpoint(url, key, settings.request_timeout).ask("/embeddings", body)
        usage = read_usage(answer.get("usage"), given="")
        data = answer["data"]
        places = [item.get("index", 0) for item in data]
        if any(place != places[0] for place in places):  # otherwise, or without indices, in the order of the texts
            if sorted(places) != list(range(len(places))):
                raise ValueError("their indices do not match the texts")
            data = sorted(data, key=lambda item: item["index"])
        return [item["embedding"] for item in data], usage["input_tokens"] if usage else None

    return JournaledEmbedding(source, settings, identity=identity, journal=journal, scope=scope)


def embedding_for(
    embeddings: Embeddings, settings: Settings, *, journal: Journal, scope: RunScope
) -> JournaledEmbedding:
    """A custom LangChain `Embeddings`, identified by its class and model name."""
    kind = f"{type(embeddings).__module__}.{type(embeddings).__qualname__}"
    names = (getattr(embeddings, name, None) for name in ("model", "model_name", "model_id"))
    identity = ModelIdentity(kind, next((name for name in names if isinstance(name, str)), "unnamed"))

    async def source(texts: Sequence[str], kind: TextKind) -> tuple[Sequence[Sequence[float]], int | None]:
        if kind == "query":
            return [await embeddings.aembed_query(text) for text in texts], 0
        return await embeddings.aembed_documents(list(texts)), 0

    return JournaledEmbedding(source, settings, identity=identity, journal=journal, scope=scope)


def _payload(row: Vector) -> str:
    return json.dumps({"float32": encode_vector(row)})


def _vector(payload: str) -> Vector | None:
    try:
        vector = decode_vector(json.loads(payload)["float32"])
    except (ValueError, TypeError, LookupError, RecursionError):
        return None
    return vector if len(vector) and np.isfinite(vector).all() else None
