"""The full-text index: BM25 search on tantivy, one record per chunk.

A record holds the fields that a search matches and filters by (key, category, analysed text and section title), but
not the text itself, which is stored once, in the catalog. Year and venue are not indexed, since a corrected
`.bib` changes them without touching a chunk; a search filters by the keys of the papers that match them.

Each change is one commit: after a crash a paper is indexed completely or not at all.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

from ...documents import Chunk, split_chunk_id, text_hash
from ..folder_home import FolderHome
from ..store_protocols import FullTextError, TextScope, sort_scores
from ..text_analysis import SECTION_WEIGHT, encodable, make_analyzer

if TYPE_CHECKING:
    from tantivy import Index, Query, Schema, Searcher

_ANALYZER = "prose"
_WRITER_MEMORY = 50_000_000  # bytes; tantivy requires at least 15 million


class FullText:
    """The index of a home; thread-safe, with one writer at a time (the library's lock)."""

    def __init__(self, home: FolderHome) -> None:
        self._path = home.fulltext
        self._lock = threading.RLock()
        self._index: Index | None = None

    def close(self) -> None:
        with self._lock:
            self._index = None

    def exists(self) -> bool:
        return (self._path / "meta.json").is_file()

    def create(self) -> None:
        with self._lock:
            self._index = None
            if self._path.exists():
                shutil.rmtree(self._path)
            self._path.mkdir(parents=True)
            self._open(make=True)

    def put(self, papers: Mapping[str, Sequence[Chunk]]) -> None:
        """Set the chunks of papers in one commit; an empty sequence removes a paper. Idempotent.

        Unchanged papers are not rewritten: tombstones shift scores a little until tantivy merges them away, and a
        library must give the same answers after a crash as without one. Raises `FullTextError`.
        """
        with self._lock:
            indexed: dict[str, dict[str, str]] = {key: {} for key in papers}
            for identifier, text in self.entries(papers).items():
                indexed[split_chunk_id(identifier)[0]][identifier] = text
            changed = [
                key for key in papers if indexed[key] != {chunk.id: text_hash(chunk.text) for chunk in papers[key]}
            ]
            if changed:
                chunks = (chunk for key in changed for chunk in papers[key])
                self._write([key for key in changed if indexed[key]], chunks)

    def put_all(self, papers: Iterator[tuple[str, Sequence[Chunk]]]) -> None:
        with self._lock:
            self._write([], (chunk for _, chunks in papers for chunk in chunks))

    def _write(self, cleared: Sequence[str], chunks: Iterable[Chunk]) -> None:
        from tantivy import Document

        index = self._open()
        # One thread writes one segment per commit; a new writer for each change holds no lock in between.
        writer = index.writer(_WRITER_MEMORY, 1)
        try:
            for key in cleared:
                writer.delete_documents_by_term("key", key)
            for chunk in chunks:
                place = {"id": chunk.id, "key": chunk.key, "category": int(chunk.category)}
                texts = {"text": encodable(chunk.text), "section": encodable(f"{chunk.parent} {chunk.section}")}
                writer.add_document(Document(hash=text_hash(chunk.text), **place, **texts))
            writer.commit()
        finally:
            writer.wait_merging_threads()
        index.reload()

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        from tantivy import Query

        searcher = self._searcher()
        query = Query.all_query() if keys is None else Query.term_set_query(_schema(), "key", sorted(keys))
        if not searcher.num_docs:
            return {}
        with self._naming_damage():
            hits = searcher.search(query, searcher.num_docs, count=False).hits
            records = [searcher.doc(address) for _, address in hits]
        return {str(record.get_first("id")): str(record.get_first("hash")) for record in records}

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> list[tuple[str, float]]:
        searcher = self._searcher()
        if not terms or k < 1 or not searcher.num_docs:
            return []
        query = self._query(list(dict.fromkeys(terms)), scope)
        with self._naming_damage():
            found = searcher.search(query, min(k, searcher.num_docs), count=False).hits
            scored = [(str(searcher.doc(address).get_first("id")), float(score)) for score, address in found]
        return sort_scores(scored)

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        searcher = self._searcher()
        total = max(1, searcher.num_docs)
        return {term: 1 - min(total, searcher.doc_freq("text", term)) / (total + 1) for term in terms}

    def _query(self, terms: Sequence[str], scope: TextScope) -> Query:
        from tantivy import Occur, Query

        schema = _schema()

        def words(field: str) -> Query:
            return Query.boolean_query(
                [(Occur.Should, Query.term_query(schema, field, term, "freq")) for term in terms]
            )

        in_section = Query.boost_query(words("section"), SECTION_WEIGHT)
        parts = [(Occur.Must, Query.boolean_query([(Occur.Should, words("text")), (Occur.Should, in_section)]))]
        limits: tuple[tuple[str, list[Any] | None], ...] = (
            ("key", None if scope.keys is None else sorted(scope.keys)),
            ("category", None if scope.categories is None else sorted({int(item) for item in scope.categories})),
            ("id", None if scope.ids is None else sorted(scope.ids)),
        )
        for field, values in limits:
            if values is not None:
                only = Query.term_set_query(schema, field, values)
                parts.append((Occur.Must, Query.const_score_query(only, 0.0)))
        return Query.boolean_query(parts)

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        """Raise `FullTextError` for tantivy's errors and panics on a damaged file."""
        try:
            yield
        except BaseException as error:
            if not isinstance(error, ValueError) and type(error).__name__ != "PanicException":
                raise
            reason = str(error).splitlines()[0][:160]
            raise FullTextError(f"{self._path}: the full-text index cannot be read ({reason}).") from error

    def _searcher(self) -> Searcher:
        with self._lock:
            return self._open().searcher()

    def _open(self, *, make: bool = False) -> Index:
        with self._lock:
            if self._index is not None:
                return self._index
            # Imported lazily, like Chroma, to keep `--help` fast.
            from tantivy import Index

            if not make and not self.exists():
                raise FullTextError(f"{self._path}: there is no full-text index.")
            with self._naming_damage():
                index = Index(_schema(), path=str(self._path))
            # Reloaded manually: the library knows when something was written, and a watcher thread would keep polling.
            index.config_reader(reload_policy="manual")
            index.register_tokenizer(_ANALYZER, make_analyzer())
            index.reload()
            self._index = index
            return index


@cache
def _schema() -> Schema:
    from tantivy import SchemaBuilder

    builder = SchemaBuilder()
    builder.add_text_field("id", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_text_field("key", tokenizer_name="raw", index_option="basic")
    builder.add_text_field("hash", stored=True, tokenizer_name="raw", index_option="basic")
    builder.add_integer_field("category", indexed=True)
    builder.add_text_field("text", tokenizer_name=_ANALYZER, index_option="freq")
    builder.add_text_field("section", tokenizer_name=_ANALYZER, index_option="freq")
    return builder.build()
