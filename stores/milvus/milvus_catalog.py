"""The catalog of a library that is searched in Milvus: a change is staged, and committed once Milvus has it.

Each change gives its paper a version, a number that is used once. Readers use only Milvus rows of the versions listed
in `searched`, so a change becomes visible all at once when it is committed here.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

from ..paper_change import Change, serialize_change
from ..postgres.database import increment_revision
from ..postgres.postgres_catalog import (
    PostgresCatalog,
    drop_images,
    require_dimension,
    staged_images,
    write_images,
)
from ..text_analysis import analyze
from .word_weights import FIELDS, SECTION, TEXT, FieldSum, WordCounts

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
            for dimension in {len(change.summary_vector) for change in changes if change.record is not None}:
                require_dimension(connection, dimension, self.database)
            connection.execute("INSERT INTO outdated SELECT version FROM staged WHERE key = ANY(%s)", (keys,))
            images = staged_images(connection, keys)
            connection.execute("DELETE FROM staged WHERE key = ANY(%s)", (keys,))
            write_images(connection.cursor(), changes)
            connection.cursor().executemany("INSERT INTO staged VALUES (%s, nextval('paper_versions'), %s, %s)", rows)
            drop_images(connection, images)

    def staged_versions(self, keys: Collection[str]) -> dict[str, int]:
        return dict(self.rows("SELECT key, version FROM staged WHERE key = ANY(%s)", (sorted(keys),)))

    def commit(self, changes: Sequence[Change], versions: Mapping[str, int], words: WordCounts) -> None:
        """Make staged changes visible in one transaction, given the versions of their rows in Milvus and their words.

        Those that another process has committed while this one was disconnected are left out.
        """
        keys = [change.key for change in changes]
        query = "DELETE FROM staged WHERE key = ANY(%s) AND version = ANY(%s) RETURNING key"
        with self.database.transaction() as connection:
            increment_revision(connection)
            still = sorted(row[0] for row in connection.execute(query, (keys, list(versions.values()))).fetchall())
            stored = WordCounts()
            query = "SELECT key, text, parent, section FROM chunks WHERE key = ANY(%s)"
            for key, text, parent, section in connection.execute(query, (still,)).fetchall():
                stored.add(key, {TEXT: Counter(analyze(text)), SECTION: Counter(analyze(f"{parent} {section}"))})
            add_counts(connection, stored, -1)
            connection.execute("INSERT INTO outdated SELECT version FROM searched WHERE key = ANY(%s)", (still,))
            connection.execute("DELETE FROM searched WHERE key = ANY(%s)", (still,))
            added = self._replace(connection, [change for change in changes if change.key in still])
            new = [(change.key, versions[change.key]) for change in added]
            connection.cursor().executemany("INSERT INTO searched VALUES (%s, %s)", new)
            add_counts(connection, words.of(key for key, _ in new), 1)

    def outdated(self) -> list[int]:
        """The versions whose rows should be deleted from Milvus."""
        return [int(row[0]) for row in self.rows("SELECT version FROM outdated ORDER BY version")]

    def forget_outdated(self, versions: Sequence[int]) -> None:
        with self.database.connection() as connection:
            connection.execute("DELETE FROM outdated WHERE version = ANY(%s)", (list(versions),))

    def searched(self) -> dict[str, int]:
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

    def add_words(self, words: WordCounts) -> None:
        """Add the words of papers that were not counted yet."""
        with self.database.transaction() as connection:
            add_counts(connection, words, 1)

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
        """The mean lengths that weights assume; those of the `first` papers if none were stored."""
        known = self.meta(_MEANS)
        if known is None:
            known = _means(first)
            self.set_meta(_MEANS, known)
        text, section = json.loads(known)
        return {TEXT: text, SECTION: section}


def _means(sums: Mapping[int, FieldSum]) -> str:
    return json.dumps([sums[TEXT].mean, sums[SECTION].mean])


def add_counts(connection: Any, words: WordCounts, sign: int) -> None:
    """Add word counts to those of the library, or subtract them."""
    counts = [(term, field, count) for field in FIELDS for term, count in sorted(words.chunks_with(field).items())]
    connection.execute(
        "INSERT INTO word_counts SELECT * FROM unnest(%s::text[], %s::int2[], %s::bigint[])"
        " ON CONFLICT (term, field) DO UPDATE SET chunks = word_counts.chunks + excluded.chunks",
        ([term for term, _, _ in counts], [field for _, field, _ in counts], [sign * each for _, _, each in counts]),
    )
    for field, total in words.sums().items():
        connection.execute(
            "INSERT INTO word_sums VALUES (%s, %s, %s) ON CONFLICT (field) DO UPDATE"
            " SET chunks = word_sums.chunks + excluded.chunks, terms = word_sums.terms + excluded.terms",
            (field, sign * total.chunks, sign * total.terms),
        )
