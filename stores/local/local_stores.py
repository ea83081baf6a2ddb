"""The stores of a library in a folder."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, get_args

from ...documents import chunk_id
from ...models.embeddings.protocol import Vector
from ..folder_home import FolderHome
from ..home_tables import metadata_tables
from ..metadata_store import MetadataStore
from ..paper_catalog import Change, CurrentRecords
from ..store_protocols import LibraryStores, VectorKind
from .catalog import Catalog
from .chroma import VectorStore
from .fulltext import FullText

if TYPE_CHECKING:
    from .vector_search import Nearest


class LocalStores(LibraryStores):
    """Catalog (SQLite), vectors (Chroma) and words (tantivy) in a folder."""

    def __init__(self, home: FolderHome) -> None:
        self.catalog: Catalog = Catalog(home)
        self.vectors: VectorStore = VectorStore(home, self.catalog)
        self.words: FullText = FullText(home)
        self.metadata = MetadataStore(metadata_tables(home.metadata))

    def search(self, records: CurrentRecords) -> Nearest:
        from .vector_search import Nearest  # with numpy

        return Nearest(records, self.vectors, self.catalog)

    def carry_out(self, changes: Sequence[Change]) -> None:
        # In parallel, since each spends much of its time waiting for the disk.
        with ThreadPoolExecutor(1, thread_name_prefix="fulltext") as executor:
            words = executor.submit(self.words.put, {change.key: change.chunks for change in changes})
            _write_vectors(changes, self.catalog, self.vectors)
            words.result()
        self.catalog.commit(changes)

    def close(self) -> None:
        self.vectors.close()
        self.words.close()
        super().close()


def _write_vectors(changes: Sequence[Change], catalog: Catalog, store: VectorStore) -> None:
    """Write the vectors of these papers, and delete those that the changes no longer contain."""
    vectors: dict[VectorKind, dict[str, Vector]] = {kind: {} for kind in get_args(VectorKind)}
    stale: dict[VectorKind, list[str]] = {kind: [] for kind in vectors}
    for change in changes:
        key = change.key
        vectors["content"] |= {c.id: row for c, row in zip(change.chunks, change.vectors, strict=True)}
        vectors["notes"] |= {chunk_id(key, place): row for place, row in enumerate(change.note_vectors)}
        chunks, passages = catalog.listed_counts(key)
        stale["content"] += [chunk_id(key, index) for index in range(len(change.chunks), chunks)]
        stale["notes"] += [chunk_id(key, place) for place in range(len(change.note_vectors), passages)]
        if change.record is None:
            stale["summaries"].append(key)
        else:
            vectors["summaries"][key] = change.summary_vector
    for kind, rows in vectors.items():
        store.put(rows, kind)
    for kind, ids in stale.items():
        store.delete(ids, kind)
