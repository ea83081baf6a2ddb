"""BM25 in PostgreSQL: postings of the same terms as in a folder's full-text index, scored by the server.

A row of `postings` holds a term of a paper: the chunks with it, how often each has it, and the length of the field
there. Scores are computed over these rows for every chunk that holds a term, so results are exact, see the
transaction of the reader, and need no extension. k1, b and the idf are those of tantivy, whose lengths are rounded.
"""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final

from ...documents import Chunk, chunk_id, split_chunk_id, text_hash
from ..search_records import TextScope
from ..text_analysis import SECTION_WEIGHT, encodable, make_analyzer
from .database import Database

_K1: Final = 1.2
_B: Final = 0.75
_TEXT, _SECTION = 0, 1
_POSTING_TYPES: Final = "text int2 text int4[] int4[] int4[]".split()
_PAPERS_PER_COMMIT: Final = 50
# Sums are rounded: their last digits depend on the order in which the server adds. Constants are floats: plain literals
# would make it calculate in decimals.
_SEARCH: Final = f"""
WITH totals AS (
    SELECT sum(cardinality(hashes))::float8 AS chunks, sum(text_terms)::float8 AS text,
        sum(section_terms)::float8 AS section
    FROM word_totals
), held AS MATERIALIZED (
    SELECT field, term, sum(cardinality(places))::float8 AS chunks FROM postings
    WHERE term = ANY(%(terms)s) GROUP BY field, term
), rare AS MATERIALIZED (
    SELECT field, term, ln(1 + (totals.chunks - held.chunks + 0.5::float8) / (held.chunks + 0.5::float8))
            * CASE field WHEN {_TEXT} THEN 1 ELSE {SECTION_WEIGHT}::float8 END AS idf,
        CASE field WHEN {_TEXT} THEN totals.text ELSE totals.section END / totals.chunks AS mean
    FROM held, totals
), scored AS (
    SELECT key, place, sum(
        idf * {1 + _K1}::float8 * n::float8
        / (n::float8 + {_K1}::float8 * ({1 - _B}::float8 + {_B}::float8 * size::float8 / mean))
    ) AS score
    FROM postings JOIN rare USING (field, term), unnest(places, counts, lengths) AS u (place, n, size)
    WHERE term = ANY(%(terms)s) AND (%(keys)s::text[] IS NULL OR key = ANY(%(keys)s))
        AND (%(categories)s::int[] IS NULL OR EXISTS (
            SELECT 1 FROM chunks c WHERE c.key = postings.key AND c.idx = place AND c.category = ANY(%(categories)s)))
        AND (%(ids)s::text[] IS NULL
            OR (key, place) IN (SELECT * FROM unnest(%(id_keys)s::text[], %(id_places)s::int[])))
    GROUP BY key, place
)
SELECT key, place, round(score * 1e9::float8) / 1e9::float8 AS rounded
FROM scored ORDER BY rounded DESC, (key || ':') COLLATE "C", place LIMIT %(k)s
"""


class PostgresWords:
    """The words of all chunks; thread-safe."""

    def __init__(self, database: Database, pool: Any) -> None:
        self._database = database
        self._pool = pool

    def close(self) -> None:
        """Do nothing: every call sees what other processes wrote."""

    def exists(self) -> bool:
        """True: the tables exist with the library."""
        return True

    def analyze(self, text: str) -> list[str]:
        """The terms of a text as indexed: lowercased, ASCII-folded, stemmed, without English stop words."""
        return analyze(text)

    @contextmanager
    def _connection(self) -> Any:
        with self._database.named_errors(), self._pool.connection() as connection:
            yield connection

    def _rows(self, query: str, values: object = ()) -> list[tuple[Any, ...]]:
        with self._connection() as connection:
            return list(connection.execute(query, values).fetchall())

    def create(self) -> None:
        """Delete all words."""
        with self._connection() as connection, connection.transaction():
            connection.execute("TRUNCATE postings, word_totals")

    def put_all(self, chunks: Iterable[Chunk]) -> None:
        """Add the chunks of papers that are not indexed yet, which come in the order of their papers."""
        papers: dict[str, list[Chunk]] = {}
        for chunk in chunks:
            if chunk.key not in papers and len(papers) == _PAPERS_PER_COMMIT:
                self._put(papers)
                papers = {}
            papers.setdefault(chunk.key, []).append(chunk)
        self._put(papers)

    def _put(self, papers: Mapping[str, Sequence[Chunk]]) -> None:
        with self._connection() as connection, connection.transaction():
            write_postings(connection.cursor(), papers)

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """Text hashes by chunk id, for these papers or for all."""
        rows = self._rows(
            "SELECT key, hashes FROM word_totals WHERE %(keys)s::text[] IS NULL OR key = ANY(%(keys)s)",
            {"keys": None if keys is None else sorted(keys)},
        )
        return {chunk_id(key, index): text for key, hashes in rows for index, text in enumerate(hashes)}

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> list[tuple[str, float]]:
        """Ids and BM25 scores of the `k` best matching chunks, best first; ties by id."""
        if not terms or k < 1:
            return []
        pairs = None if scope.ids is None else [split_chunk_id(identifier) for identifier in sorted(scope.ids)]
        rows = self._rows(
            _SEARCH,
            {
                "terms": sorted(set(terms)),
                "k": k,
                "keys": None if scope.keys is None else sorted(scope.keys),
                "categories": None if scope.categories is None else sorted({int(kind) for kind in scope.categories}),
                "ids": None if scope.ids is None else sorted(scope.ids),
                "id_keys": [key for key, _ in pairs or ()],
                "id_places": [place for _, place in pairs or ()],
            },
        )
        return [(chunk_id(key, index), float(score)) for key, index, score in rows]

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        """How rare each term is: 1 if it occurs nowhere, near 0 if it occurs in every chunk."""
        (total,) = self._rows("SELECT coalesce(sum(cardinality(hashes)), 0) FROM word_totals")[0]
        query = "SELECT term, sum(cardinality(places)) FROM postings WHERE field = %s AND term = ANY(%s) GROUP BY term"
        found = dict(self._rows(query, (_TEXT, list(terms))))
        most = max(1, int(total))
        return {term: 1 - min(most, int(found.get(term, 0))) / (most + 1) for term in terms}


_analyzer: Any = None
_making: Final = threading.Lock()


def analyze(text: str) -> list[str]:
    """The terms of a text, by the analyzer of the full-text index."""
    global _analyzer
    with _making:
        if _analyzer is None:
            _analyzer = make_analyzer()
        terms: list[str] = _analyzer.analyze(encodable(text).replace("\x00", " "))
        return terms


def write_postings(cursor: Any, papers: Mapping[str, Sequence[Chunk]]) -> None:
    """Write the words of papers that have none yet."""
    with cursor.copy("COPY postings FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(_POSTING_TYPES)
        totals = []
        for key, chunks in papers.items():
            lengths = {_TEXT: 0, _SECTION: 0}
            for (term, field), found in _postings(chunks, lengths).items():
                copy.write_row((term, field, key, *map(list, zip(*found, strict=True))))
            totals.append((key, [text_hash(chunk.text) for chunk in chunks], lengths[_TEXT], lengths[_SECTION]))
    cursor.executemany("INSERT INTO word_totals VALUES (%s, %s, %s, %s)", totals)


def _postings(chunks: Sequence[Chunk], lengths: dict[int, int]) -> dict[tuple[str, int], list[tuple[int, int, int]]]:
    """Place, count and length of the field for each term and field; adds the lengths to `lengths`."""
    found: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)
    for chunk in chunks:
        for field, text in ((_TEXT, chunk.text), (_SECTION, f"{chunk.parent} {chunk.section}")):
            terms = analyze(text)
            lengths[field] += len(terms)
            for term, count in Counter(terms).items():
                found[term, field].append((chunk.index, count, len(terms)))
    return found
