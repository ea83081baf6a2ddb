"""A nearest search loses nothing that the library has, however much the graph of neighbours leaves out."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pytest

from citeloom.models.embeddings.protocol import Vector
from citeloom.stores.local.vector_search import Reach
from citeloom.stores.store_protocols import Scored, VectorStoreError, cosines, sort_scores

RANDOM = np.random.default_rng(1)
ROWS = RANDOM.standard_normal((200, 8)).astype(np.float32)
ROWS /= np.linalg.norm(ROWS, axis=1, keepdims=True)
VECTORS = {f"p:{number:05d}": row for number, row in enumerate(ROWS)}
QUERY = ROWS[7]


@dataclass(frozen=True)
class Some:
    names: Collection[str]

    def ids(self) -> list[str]:
        return list(self.names)

    def holds(self, identifier: str) -> bool:
        return identifier in self.names


WHOLE = Some(VECTORS.keys())


@pytest.fixture(autouse=True, params=[0, 1000])
def whole_limit(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Through the graph, and as a collection so small that it is compared whole."""
    limit: int = request.param
    monkeypatch.setattr("citeloom.stores.local.vector_search.WHOLE_LIMIT", limit)
    return limit


class LossyGraph:
    """Finds only reachable records, and some of unready papers; `asked` lists the requested sizes."""

    def __init__(self, lost: Collection[str], strangers: int = 0) -> None:
        strange = {f"stranger:{number:05d}": QUERY for number in range(strangers)}
        self.reached = {name: row for name, row in {**VECTORS, **strange}.items() if name not in lost}
        self.asked: list[int] = []

    def near(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        self.asked.append(k)
        return sort_scores(cosines(self.reached, vector).items())[:k]

    def reach(self) -> Reach:
        return Reach(self.near, vectors)


def vectors(ids: Sequence[str]) -> dict[str, Vector]:
    return {name: VECTORS[name] for name in ids}


def same(found: Scored, wanted: Scored) -> bool:
    """The same ids in the same order, with the same cosines but for rounding."""
    return [name for name, _ in found] == [name for name, _ in wanted] and np.allclose(
        [score for _, score in found], [score for _, score in wanted], atol=1e-6
    )


@pytest.mark.parametrize("strangers", [0, 3, 900])
@pytest.mark.parametrize("k", [1, 5, 60, 199, 200])
@pytest.mark.parametrize("lost", [0, 1, 30, 199, 200])
def test_vectors_unreachable_in_the_graph_are_still_found(lost: int, k: int, strangers: int) -> None:
    gone = sort_scores(cosines(VECTORS, QUERY).items())[:lost]  # the nearest of all
    reach = LossyGraph({name for name, _ in gone}, strangers).reach()
    found = reach.search(QUERY, k, WHOLE, k, "state", WHOLE)
    assert same(found, sort_scores(cosines(VECTORS, QUERY).items())[:k])


@pytest.mark.parametrize("k", [1, 10, 50])
def test_within_a_scope_the_nearest_are_found_whichever_are_lost(k: int) -> None:
    scope = Some([name for place, name in enumerate(VECTORS) if place % 4 == 0])
    for place in range(20):
        lost = {name for name in VECTORS if RANDOM.random() < place / 20}
        found = LossyGraph(lost).reach().search(QUERY, k, scope, k, "state", WHOLE)
        assert same(found, sort_scores(cosines(vectors(scope.ids()), QUERY).items())[:k])


def test_the_graph_is_examined_once_per_state_of_the_library(whole_limit: int) -> None:
    graph = LossyGraph({"p:00007"})
    reach = graph.reach()
    for state in ("one", "one", "two", "two"):
        assert reach.search(QUERY, 3, WHOLE, 3, state, WHOLE)[0][0] == "p:00007"
    assert graph.asked == ([] if whole_limit else [201, 3, 3, 201, 3, 3])


@pytest.mark.parametrize("k", [1, 5, 60])
def test_a_graph_that_has_lost_much_is_not_used_for_a_few_results(k: int) -> None:
    """It reaches some records only when all are requested; a walk for a few ends before them."""
    nearest = [name for name, _ in sort_scores(cosines(VECTORS, QUERY).items())]

    class Astray(LossyGraph):
        def near(self, vector: Vector, k: int) -> list[tuple[str, float]]:
            found = super().near(vector, len(VECTORS))
            return found if k > len(VECTORS) else [item for item in found if item[0] not in nearest[:40]][:k]

    graph = Astray({nearest[0], nearest[100], nearest[150]})
    found = graph.reach().search(QUERY, k, WHOLE, k, "state", WHOLE)
    assert same(found, sort_scores(cosines(VECTORS, QUERY).items())[:k])


@pytest.mark.parametrize("wrong", [VECTORS.keys(), {"p:00007"}], ids=["all", "one"])
def test_stored_vectors_of_another_length_than_the_query_are_reported(wrong: Collection[str]) -> None:
    def stored(ids: Sequence[str]) -> dict[str, Vector]:
        return {name: VECTORS[name][:3] if name in wrong else VECTORS[name] for name in ids}

    reach = Reach(LossyGraph({"p:00007"}).near, stored)
    with pytest.raises(VectorStoreError, match="table vectors, column size, row key='p': expected 8, not 3"):
        reach.search(QUERY, 3, WHOLE, 3, "state", WHOLE)
    with pytest.raises(VectorStoreError, match="expected 8, not 3"):
        reach.cosines(QUERY, ["p:00007"], "state")
