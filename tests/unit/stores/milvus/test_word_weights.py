"""BM25 as an inner product equals its formula, and searches with equal scores are ordered by id."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pytest

from citeloom.documents import Category
from citeloom.stores.milvus.milvus_catalog import (
    SECTION,
    TEXT,
    FieldSum,
    chunk_vector,
    query_vector,
    sum_fields,
)
from citeloom.stores.milvus.milvus_rows import Found, fingerprint, row_id
from citeloom.stores.milvus.milvus_search import Versions, best_results, scope_filters
from citeloom.stores.store_protocols import TextScope

DOCUMENTS = {"a": ["red", "red", "blue"], "b": ["red", "green", "green", "green", "green"], "c": ["yellow"]}
MEANS = {TEXT: 3.0, SECTION: 1.0}
SCOPE = Versions({"a": 3, "b": 1}, {3: "a", 1: "b"})


def score(query: dict[int, float], document: dict[int, float]) -> float:
    return sum(weight * document.get(place, 0.0) for place, weight in query.items())


def test_the_inner_product_of_the_vectors_is_bm25() -> None:
    sums = sum_fields([{TEXT: Counter(terms), SECTION: Counter(["title"])} for terms in DOCUMENTS.values()])
    assert sums == {TEXT: FieldSum(3, 9), SECTION: FieldSum(3, 3)}
    query = query_vector({("red", TEXT): 2, ("green", TEXT): 1}, sums)
    idf = {"red": math.log(1 + 1.5 / 2.5), "green": math.log(1 + 2.5 / 1.5)}
    for terms in DOCUMENTS.values():
        expected = sum(
            idf[term] * 2.2 * terms.count(term) / (terms.count(term) + 1.2 * (0.25 + 0.75 * len(terms) / 3))
            for term in ("red", "green")
        )
        vector = chunk_vector({TEXT: Counter(terms), SECTION: Counter(["title"])}, MEANS)
        assert score(query, vector) == pytest.approx(expected)


def test_a_word_in_a_title_counts_half_and_a_chunk_without_words_matches_nothing() -> None:
    sums = {TEXT: FieldSum(9, 9), SECTION: FieldSum(9, 9)}
    in_text, in_title = (query_vector({("loom", field): 2}, sums) for field in (TEXT, SECTION))
    assert sum(in_title.values()) == sum(in_text.values()) / 2
    assert not in_text.keys() & in_title.keys()
    empty = chunk_vector({TEXT: Counter(), SECTION: Counter()}, MEANS)
    assert len(empty) == 1 and score(in_text, empty) == 0


def test_a_row_id_encodes_version_and_position() -> None:
    assert divmod(row_id(17, 1234), 1 << 20) == (17, 1234)
    assert fingerprint("f" * 64) == -1
    assert fingerprint("0" * 15 + "1" + "f" * 48) == 1


def test_ties_and_rows_of_other_versions_are_resolved_by_asking_for_more() -> None:
    rows = [Found(9, place, 0.9) for place in range(20)]  # of a change that is being written
    rows += [Found(1, 39 - place, 0.5) for place in range(40)] + [Found(1, 99, 0.1)]
    limits = []

    def search(limit: int, _: str) -> Sequence[Found]:
        limits.append(limit)
        return rows[:limit]

    found = best_results(search, 3, iter([""]), lambda row: f"b:{row.place:05d}" if row.version == 1 else None, 7)
    assert found == [("b:00000", 0.5), ("b:00001", 0.5), ("b:00002", 0.5)]
    assert limits == [11, 44, 176]


def test_a_scope_becomes_filters_of_versions() -> None:
    assert list(scope_filters(SCOPE, TextScope())) == [""]
    assert list(scope_filters(SCOPE, TextScope(categories=[Category.METHOD]))) == [
        f"category in [{int(Category.METHOD)}]"
    ]
    assert list(scope_filters(SCOPE, TextScope(keys=["a", "b", "gone"]))) == ["paper in [1, 3]"]
    assert list(scope_filters(SCOPE, TextScope(keys=[]))) == list(scope_filters(SCOPE, TextScope(categories=[]))) == []
    ids = TextScope(ids=["a:00002", "gone:00001", "nonsense"], keys=["a"])
    assert list(scope_filters(SCOPE, ids)) == [f"id in [{row_id(3, 2)}]"]
    many = Versions({f"p{n}": n for n in range(12_000)}, {})
    filters = list(scope_filters(many, TextScope(keys=many.by_key.keys())))
    assert len(filters) == 3 and sum(text.count(",") + 1 for text in filters) == 12_000
