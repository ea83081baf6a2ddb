"""Vectors from an endpoint: in order, of length 1, paid once each."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from langchain_core.embeddings import Embeddings

from citeloom.errors import ConfigurationError
from citeloom.models.embeddings.remote import BATCH, embedding_for, endpoint_embedding
from citeloom.models.http.failures import EndpointLostError, EndpointRefusedError
from citeloom.models.http.limiter import Limiter
from citeloom.models.journal.budget import Budget, BudgetLimits, BudgetReachedError, bill_to
from citeloom.models.journal.journal import Journal
from citeloom.models.journal.records import RunScope, Usage
from citeloom.settings.config import Settings
from tests.support.fake_clock import FakeClock
from tests.support.openai_server import FakeOpenAI, Raw, Status
from tests.support.protocol_answers import EMBEDDING_DIMENSIONS, embedding

RUN = RunScope("ingest")
TEXTS = [f"chunk number {number} about ducks" for number in range(2 * BATCH + 5)]


def settings(server: FakeOpenAI, **given: Any) -> Settings:
    return Settings(embedding_model="some-embedder", embedding_base_url=server.base_url, **given)


async def test_vectors_are_in_order_and_have_length_one(journal: Journal) -> None:
    done: list[int] = []
    with FakeOpenAI(model="some-embedder", api_key="k") as server:
        model = endpoint_embedding(settings(server, embedding_api_key="k"), journal=journal, scope=RUN)
        assert model.dimensions is None
        vectors = await model.embed_documents(TEXTS, done.append)
        query = await model.embed_query(TEXTS[7])
    expected = np.array([embedding(text) for text in TEXTS], dtype=np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    np.testing.assert_allclose(query, expected[7], atol=1e-6)
    assert vectors.dtype == np.float32
    assert model.dimensions == EMBEDDING_DIMENSIONS
    assert sorted(done) == [5, BATCH, BATCH]
    assert sorted(len(body["input"]) for body in server.requests) == [1, 5, BATCH, BATCH]
    assert model.name == f"some-embedder at {server.base_url}"


async def test_no_text_is_paid_for_twice_however_it_is_batched(journal: Journal) -> None:
    with FakeOpenAI() as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        first = await model.embed_documents([*TEXTS[:10], TEXTS[0]])
        second = await model.embed_documents(TEXTS[5:15])
    assert [len(body["input"]) for body in server.requests] == [10, 5]
    np.testing.assert_array_equal(first[5:10], second[:5])
    np.testing.assert_array_equal(first[0], first[10])
    counted = sum(len(text.split()) for text in TEXTS[:15])
    assert await journal.usage(RUN) == Usage(embedded_texts=15, input_tokens=counted)


async def test_blank_texts_are_not_sent(journal: Journal) -> None:
    with FakeOpenAI() as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        assert (await model.embed_documents([])).shape[0] == 0
        assert (await model.embed_documents(["", "  "])).shape == (2, EMBEDDING_DIMENSIONS)
    assert all(text.strip() for body in server.requests for text in body["input"])


async def test_answers_before_a_failure_are_kept(journal: Journal) -> None:
    with FakeOpenAI() as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        await model.embed_documents(TEXTS[:BATCH])
        server.failures = [Status(401, "no more")]
        with pytest.raises(EndpointLostError, match="CITELOOM_EMBEDDING_API_KEY"):
            await model.embed_documents(TEXTS)
        paid = (await journal.usage(RUN)).embedded_texts
        server.failures = []
        await model.embed_documents(TEXTS)
    assert paid >= BATCH
    assert (await journal.usage(RUN)).embedded_texts == len(TEXTS)


def vectors(*rows: list[float]) -> dict[str, Any]:
    return {"data": [{"index": place, "embedding": row} for place, row in enumerate(rows)]}


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (vectors([1.0, 2.0]), "2 texts were sent"),
        (vectors([1.0, 2.0], [1.0]), "cannot be read"),
        (vectors([], []), "2 texts were sent"),
        (vectors([1.0, float("nan")], [1.0, 2.0]), "not finite"),
        ({"data": []}, "no data"),
        ({"data": [{"index": 0}, {"index": 1}]}, "cannot be read"),
        ({"data": ["one", "two"]}, "cannot be read"),
        ({"data": [{"index": "first", "embedding": [1.0]}, {"index": 1, "embedding": [1.0]}]}, "cannot be read"),
    ],
    ids=["one less", "ragged", "empty", "not a number", "no data", "no vectors", "words", "mixed places"],
)
async def test_invalid_vectors_are_refused(
    journal: Journal, clock: FakeClock, body: dict[str, Any], words: str
) -> None:
    with FakeOpenAI(behaviour=lambda _: Raw(json.dumps(body))) as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        model._limiter = Limiter(max_concurrency=2, max_retries=3, timeout=60, clock=clock)
        with pytest.raises(EndpointRefusedError, match=words):
            await model.embed_documents(["a text", "another"])
    assert server.calls() == 3
    assert await journal.usage(RUN) == Usage()


class HandedIn(Embeddings):
    """A LangChain embedding of some other provider."""

    model = "other"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.asked += texts
        return [[float(len(text)), 1.0] for text in texts]

    def embed_query(self, text: str) -> list[float]:
        self.asked.append(f"query {text}")
        return [1.0, float(len(text))]


async def test_any_langchain_embeddings_object_is_accepted(journal: Journal) -> None:
    given = HandedIn()
    model = embedding_for(given, Settings(), journal=journal, scope=RUN)
    rows = await model.embed_documents(["one", "three"])
    query = await model.embed_query("one")
    await model.embed_documents(["three", "one"])
    assert given.asked == ["one", "three", "query one"]
    np.testing.assert_allclose(rows[0], np.array([3, 1]) / np.sqrt(10), atol=1e-6)
    np.testing.assert_allclose(query, np.array([1, 3]) / np.sqrt(10), atol=1e-6)
    assert model.name.startswith("other at ")


async def test_a_budget_limits_what_a_run_embeds(journal: Journal) -> None:
    with FakeOpenAI() as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        with bill_to("section", Budget(BudgetLimits(calls=3), {}, journal, "section")):
            outcomes = await asyncio.gather(*(model.embed_query(text) for text in TEXTS[:9]), return_exceptions=True)
        assert server.calls() == 3
        assert sum(isinstance(outcome, BudgetReachedError) for outcome in outcomes) == 6
        # Outside of the run nothing is limited, and what it embedded is there for all.
        await asyncio.gather(*(model.embed_query(text) for text in TEXTS[:9]))
        assert server.calls() == 9
    assert (await journal.usage(RunScope("section"))).embedded_texts == 3
    assert (await journal.usage(RUN)).embedded_texts == 6


async def test_tokens_of_embeddings_count_too(journal: Journal) -> None:
    with FakeOpenAI() as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        with bill_to("section", Budget(BudgetLimits(tokens=100), {}, journal, "section")):
            await asyncio.gather(*(model.embed_query(text) for text in TEXTS), return_exceptions=True)
    used = await journal.usage(RunScope("section"))
    assert 0 < used.input_tokens <= 100
    assert used.embedded_texts == server.calls()


async def test_a_cost_limit_needs_the_price_of_the_embedding(journal: Journal) -> None:
    with FakeOpenAI() as server:
        model = endpoint_embedding(settings(server), journal=journal, scope=RUN)
        with (
            bill_to("section", Budget(BudgetLimits(cost=1.0), {}, journal, "section")),
            pytest.raises(ConfigurationError, match=r"CITELOOM_PRICES.*some-embedder"),
        ):
            await model.embed_query("ducks")
    assert server.calls() == 0
