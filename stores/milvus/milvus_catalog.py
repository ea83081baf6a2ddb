"""The catalog of a library that is searched in Milvus, and its BM25 as inner products of sparse vectors.

Each change gives its paper a version, a number that is used once. Readers use only Milvus rows of the versions listed
in `searched`, so a change becomes visible atomically when it is committed here.

Milvus only multiplies and adds; the factors of BM25 are calculated here. A chunk's vector holds for each term the
factor that depends on the chunk, a query's vector the idf. So a score depends neither on how Milvus divides its rows
into segments nor on rows that it has yet to delete. Section titles use separate dimensions, so one search scores both.
"""

from __future__ import annotations

import json
import math
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any, Final

from ...documents import text_hash
from ..paper_catalog import Change, serialize_change
from ..postgres.database import increment_revision
from ..postgres.postgres_catalog import STAGED_IMAGE, PostgresCatalog, drop_images, write_images
from ..text_analysis import K1, SECTION_WEIGHT, B, analyze
from .milvus_rows import CHUNKS, PAPERS, MilvusRows, Sparse, index_chunk, index_texts

FIELDS = TEXT, SECTION = 0, 1
Terms = Mapping[int, Counter[str]]  # how often a chunk has each term, by field
_FIELD_WEIGHTS: Final = {TEXT: 1.0, SECTION: SECTION_WEIGHT}
_DIMENSIONS: Final = 2**32 - 2  # the last one below Milvus's limit is for chunks without a term
_NO_TERM: Final = {_DIMENSIONS: 1.0}


@dataclass(frozen=True, slots=True)
class FieldSum:
    """The number of chunks in a library, and the total number of terms in one field."""

    chunks: int = 0
    terms: int = 0

    @property
    def mean(self) -> float:
        """The mean number of terms, at least 1."""
        return max(1.0, self.terms / max(1, self.chunks))


@lru_cache(maxsize=200_000)
def dimension(term: str, field: int) -> int:
    """The dimension of a term in a field; a few in a million collide."""
    return zlib.crc32(f"{field}{term}".encode()) % _DIMENSIONS


def count_terms(text: str, parent: str, section: str) -> Terms:
    """Count how often each term occurs in a chunk."""
    return {TEXT: Counter(analyze(text)), SECTION: Counter(analyze(f"{parent} {section}"))}


def chunk_vector(terms: Terms, means: Mapping[int, float]) -> Sparse:
    """The weights of a chunk's terms; `means` are the mean lengths of the fields."""
    vector: Sparse = {}
    for field, counts in terms.items():
        length = K1 * (1 - B + B * counts.total() / means[field])
        vector |= {dimension(term, field): (1 + K1) * count / (count + length) for term, count in counts.items()}
    return vector or dict(_NO_TERM)


def query_vector(counts: Mapping[tuple[str, int], int], sums: Mapping[int, FieldSum]) -> Sparse:
    """The idf of each term and field, from the number of chunks that have it."""
    vector: Sparse = {}
    for (term, field), count in sorted(counts.items()):
        total = sums[field].chunks
        idf = math.log(1 + (max(0, total - count) + 0.5) / (count + 0.5))
        place = dimension(term, field)
        vector[place] = vector.get(place, 0.0) + _FIELD_WEIGHTS[field] * idf
    return vector


def sum_fields(chunks: Sequence[Terms]) -> dict[int, FieldSum]:
    """The numbers of these chunks and of their terms, by field."""
    return {field: FieldSum(len(chunks), sum(terms[field].total() for terms in chunks)) for field in FIELDS}


def write_papers(
    changes: Iterable[Change],
    versions: Mapping[str, int],
    rows: MilvusRows,
    means_of: Callable[[Mapping[int, FieldSum]], Mapping[int, float]],
) -> dict[str, list[Terms]]:
    """Write the rows of added papers, replacing rows with the same ids; returns the terms of their chunks by key.

    A change without a version is skipped; `means_of` gives the mean lengths.
    """
    added = [change for change in changes if change.record is not None and change.key in versions]
    terms = {
        change.key: [count_terms(chunk.text, chunk.parent, chunk.section) for chunk in change.chunks]
        for change in added
    }
    if not added:
        return terms
    means = means_of(sum_fields([*chain.from_iterable(terms.values())]))
    rows.create(len(added[0].summary_vector))
    rows.put(
        CHUNKS,
        [
            index_chunk(versions[change.key], chunk, text_hash(chunk.text), row, chunk_vector(words, means))
            for change in added
            for chunk, row, words in zip(change.chunks, change.vectors, terms[change.key], strict=True)
        ],
    )
    texts = (index_texts(versions[change.key], change.summary_vector, change.note_vectors) for change in added)
    rows.put(PAPERS, [row for of_paper in texts for row in of_paper])
    return terms


_USED: Final = "milvus"  # the fact with the library's name in Milvus
_MEANS: Final = "word means"


class MilvusCatalog(PostgresCatalog):
    """Papers, sections, texts and vectors, plus staged changes and library-wide statistics for BM25."""

    def name_in_milvus(self) -> str | None:
        """The library's name in Milvus; None before its rows were first written."""
        return self.meta(_USED)

    def use_milvus(self, name: str) -> None:
        """Record that the library is searched in Milvus, and drop PostgreSQL's search indexes."""
        with self.database.transaction() as connection:
            connection.execute("TRUNCATE postings, word_totals")
            connection.execute("DROP INDEX IF EXISTS chunks_by_vector")
            connection.execute("INSERT INTO facts VALUES (%s, %s) ON CONFLICT DO NOTHING", (_USED, name))

    def stage(self, changes: Iterable[Change]) -> None:
        changes = list(changes)
        rows = [serialize_change(change) for change in changes]
        keys = [row[0] for row in rows]
        with self.database.transaction() as connection:
            self.require_dimension(connection, changes)
            connection.execute("INSERT INTO outdated SELECT version FROM staged WHERE key = ANY(%s)", (keys,))
            found = connection.execute(f"SELECT DISTINCT {STAGED_IMAGE} AND s.key = ANY(%s)", (keys,))
            images = [name for (name,) in found.fetchall()]
            connection.execute("DELETE FROM staged WHERE key = ANY(%s)", (keys,))
            write_images(connection.cursor(), changes)
            connection.cursor().executemany("INSERT INTO staged VALUES (%s, nextval('paper_versions'), %s, %s)", rows)
            drop_images(connection, images)

    def staged_versions(self, keys: Collection[str]) -> dict[str, int]:
        return dict(self.rows("SELECT key, version FROM staged WHERE key = ANY(%s)", (sorted(keys),)))

    def commit(
        self, changes: Sequence[Change], versions: Mapping[str, int], terms: Mapping[str, Sequence[Terms]]
    ) -> None:
        """Make staged changes visible in one transaction, given the versions of their rows in Milvus and their terms.

        Skips changes that another process has committed while this one was disconnected.
        """
        keys = [change.key for change in changes]
        query = "DELETE FROM staged WHERE key = ANY(%s) AND version = ANY(%s) RETURNING key"
        with self.database.transaction() as connection:
            increment_revision(connection)
            still = sorted(row[0] for row in connection.execute(query, (keys, list(versions.values()))).fetchall())
            query = "SELECT text, parent, section FROM chunks WHERE key = ANY(%s)"
            add_counts(connection, [count_terms(*row) for row in connection.execute(query, (still,)).fetchall()], -1)
            connection.execute("INSERT INTO outdated SELECT version FROM searched WHERE key = ANY(%s)", (still,))
            connection.execute("DELETE FROM searched WHERE key = ANY(%s)", (still,))
            added = self._replace(connection, [change for change in changes if change.key in still])
            new = [(change.key, versions[change.key]) for change in added]
            connection.cursor().executemany("INSERT INTO searched VALUES (%s, %s)", new)
            add_counts(connection, [words for key, _ in new for words in terms[key]], 1)

    def outdated_versions(self) -> list[int]:
        """The versions whose rows should be deleted from Milvus."""
        return [int(row[0]) for row in self.rows("SELECT version FROM outdated ORDER BY version")]

    def forget_outdated(self, versions: Sequence[int]) -> None:
        with self.database.connection() as connection:
            connection.execute("DELETE FROM outdated WHERE version = ANY(%s)", (list(versions),))

    def searched_versions(self) -> dict[str, int]:
        """The version of each paper that readers use."""
        return dict(self.rows("SELECT key, version FROM searched"))

    def number(self, keys: Iterable[str]) -> None:
        """Assign a version to each paper that has none."""
        with self.database.transaction() as connection:
            connection.execute(
                "INSERT INTO searched SELECT key, nextval('paper_versions') FROM unnest(%s::text[]) AS new (key)"
                " ON CONFLICT DO NOTHING",
                (list(keys),),
            )
            increment_revision(connection)

    def counts(self, terms: Collection[str]) -> dict[tuple[str, int], int]:
        """The number of chunks that contain each term, by term and field; omits terms that occur nowhere."""
        query = "SELECT term, field, chunks FROM word_counts WHERE term = ANY(%s) AND chunks > 0"
        return {(term, field): int(count) for term, field, count in self.rows(query, (sorted(terms),))}

    def sums(self) -> dict[int, FieldSum]:
        """The number of chunks and terms in the library, by field."""
        rows = self.rows("SELECT field, chunks, terms FROM word_sums")
        return {TEXT: FieldSum(), SECTION: FieldSum()} | {row[0]: FieldSum(int(row[1]), int(row[2])) for row in rows}

    def add_words(self, chunks: Iterable[Terms]) -> None:
        """Count the words of chunks that were not counted yet."""
        with self.database.transaction() as connection:
            add_counts(connection, list(chunks), 1)

    def clear_words(self) -> None:
        """Reset the word counts, and make the current mean lengths the ones that weights assume."""
        sums = self.sums()
        if not sums[TEXT].chunks:
            counted = "coalesce(sum(cardinality(hashes)), 0), coalesce(sum({}), 0)"
            chunks, text = self.rows(f"SELECT {counted.format('text_terms')} FROM word_totals")[0]
            _, section = self.rows(f"SELECT {counted.format('section_terms')} FROM word_totals")[0]
            sums = {TEXT: FieldSum(int(chunks), int(text)), SECTION: FieldSum(int(chunks), int(section))}
        with self.database.transaction() as connection:
            connection.execute("TRUNCATE word_counts, word_sums")
            connection.execute("DELETE FROM facts WHERE name = %s", (_MEANS,))
        if sums[TEXT].chunks:
            self.set_meta(_MEANS, _means(sums))

    def means(self, first: Mapping[int, FieldSum]) -> dict[int, float]:
        """The mean lengths that weights assume; if none are stored, the means of the `first` papers."""
        known = self.meta(_MEANS)
        if known is None:
            known = _means(first)
            self.set_meta(_MEANS, known)
        text, section = json.loads(known)
        return {TEXT: text, SECTION: section}


def _means(sums: Mapping[int, FieldSum]) -> str:
    return json.dumps([sums[TEXT].mean, sums[SECTION].mean])


def add_counts(connection: Any, chunks: Sequence[Terms], sign: int) -> None:
    """Add the words of chunks to the counts of the library, or subtract them."""
    for field, total in sum_fields(chunks).items():
        counts = sorted(Counter(term for terms in chunks for term in terms[field]).items())
        connection.execute(
            "INSERT INTO word_counts SELECT term, %s, chunks"
            " FROM unnest(%s::text[], %s::bigint[]) AS new (term, chunks)"
            " ON CONFLICT (term, field) DO UPDATE SET chunks = word_counts.chunks + excluded.chunks",
            (field, [term for term, _ in counts], [sign * count for _, count in counts]),
        )
        connection.execute(
            "INSERT INTO word_sums VALUES (%s, %s, %s) ON CONFLICT (field) DO UPDATE"
            " SET chunks = word_sums.chunks + excluded.chunks, terms = word_sums.terms + excluded.terms",
            (field, sign * total.chunks, sign * total.terms),
        )
