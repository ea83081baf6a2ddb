"""BM25 in Milvus: weights of terms in its rows, counts of terms in PostgreSQL."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from ...documents import Chunk, chunk_id
from ..postgres.postgres_vectors import PostgresVectors
from ..search_records import FullTextError, Scored, TextScope
from .milvus_catalog import MilvusCatalog
from .milvus_connection import MilvusUnavailableError
from .milvus_rows import CHUNKS, MilvusRows
from .milvus_search import WORD_DIGITS, CurrentVersions, best, scopes
from .paper_rows import stored_papers, write_papers
from .row_records import Found, fingerprint
from .word_weights import TEXT, query_vector

_PAPERS_AT_ONCE: Final = 50


class MilvusWords:
    """The words of all chunks; thread-safe."""

    def __init__(
        self,
        catalog: MilvusCatalog,
        vectors: PostgresVectors,
        rows: Callable[[], MilvusRows],
        versions: CurrentVersions,
    ) -> None:
        self._catalog = catalog
        self._vectors = vectors
        self._rows = rows
        self._versions = versions

    def close(self) -> None:
        """Do nothing: every call sees what other processes wrote."""

    def exists(self) -> bool:
        """Whether the library's rows were ever written to Milvus; whether they still are, a search or `state` tells."""
        return self._catalog.name_in_milvus() is not None

    def create(self) -> None:
        self._catalog.clear_words()
        self._catalog.use_milvus(secrets.token_hex(6))
        rows = self._rows()
        rows.drop()
        if dimension := self._catalog.meta("dimension"):
            rows.create(int(dimension))

    def put_all(self, chunks: Iterable[Chunk]) -> None:
        """Write the papers of these chunks, which are not in Milvus yet, from what PostgreSQL holds."""
        self.put_papers(list(dict.fromkeys(chunk.key for chunk in chunks)))

    def put_papers(self, every: Sequence[str]) -> None:
        """Write papers that are not in Milvus yet, from what PostgreSQL holds."""
        records = self._catalog.records()
        for start in range(0, len(every), _PAPERS_AT_ONCE):
            keys = every[start : start + _PAPERS_AT_ONCE]
            self._catalog.number(keys)
            papers = stored_papers(keys, records, self._versions.now().by_key, self._vectors)
            self._catalog.add_words(write_papers(papers, self._rows(), self._catalog.means))

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        try:
            return self._entries(keys)
        except MilvusUnavailableError as error:
            raise FullTextError(error.message, help=error.help) from error

    def _entries(self, keys: Collection[str] | None) -> dict[str, str]:
        versions = self._versions.now()
        wanted = None if keys is None else sorted(versions.by_key[key] for key in versions.by_key.keys() & keys)
        listed = {
            row.id: row.text_hash for row in self._catalog.chunk_rows(keys=None if keys is None else sorted(keys))
        }
        entries = {}
        for version, place, found in self._rows().stored(CHUNKS, wanted):
            if version in versions.keys:
                name = chunk_id(versions.keys[version], place)
                same = name in listed and fingerprint(listed[name]) == found
                entries[name] = listed[name] if same else f"{found:x}"
        return entries

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        counts = self._catalog.counts(set(terms)) if terms and k > 0 else {}
        if not counts:
            return []
        query, versions, rows = query_vector(counts, self._catalog.sums()), self._versions.now(), self._rows()

        def name(found: Found) -> str | None:
            key = versions.keys.get(found.version)
            return None if key is None else chunk_id(key, found.place)

        return best(
            lambda limit, expr: rows.matching(query, limit, expr), k, scopes(versions, scope), name, WORD_DIGITS
        )

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        counts, total = self._catalog.counts(set(terms)), max(1, self._catalog.sums()[TEXT].chunks)
        return {term: 1 - min(total, counts.get((term, TEXT), 0)) / (total + 1) for term in terms}
