"""Applies staged changes to the vector store and the full-text index, several papers at once.

Every step is idempotent (it states what should exist, not what to add), so after a crash the next process can
simply start over.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from ...documents import chunk_id
from ..paper_change import Change
from .catalog import Catalog
from .fulltext import FullText
from .vectors import VectorStore


def apply_changes(changes: Sequence[Change], catalog: Catalog, store: VectorStore, fulltext: FullText) -> None:
    """Write the changes that the catalog has staged to both stores; raises `FullTextError` and Chroma's errors.

    The two are written in parallel: each spends much of its time waiting for the disk.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="fulltext") as executor:
        fulltext_write = executor.submit(fulltext.put, {change.key: change.chunks for change in changes})
        _put_vectors(changes, store)
        _delete_stale(changes, catalog, store)
        fulltext_write.result()


def _put_vectors(changes: Sequence[Change], store: VectorStore) -> None:
    """Write chunks, summaries and passages of notes with their vectors."""
    store.put_chunks(
        [chunk for change in changes for chunk in change.chunks],
        [row for change in changes for row in change.vectors],
    )
    store.put_summaries({change.key: change.summary_vector for change in changes if change.record})
    store.put_passages(
        {chunk_id(change.key, place): vector for change in changes for place, vector in enumerate(change.note_vectors)}
    )


def _delete_stale(changes: Sequence[Change], catalog: Catalog, store: VectorStore) -> None:
    """Delete what the catalog lists for these papers and the changes no longer contain."""
    chunks: list[str] = []
    passages: list[str] = []
    for change in changes:
        key = change.key
        chunks += [chunk_id(key, index) for index in range(len(change.chunks), catalog.indexed_count(key))]
        passages += [chunk_id(key, place) for place in range(len(change.passages), catalog.noted_count(key))]
    store.delete_chunks(chunks)
    store.delete_passages(passages)
    store.delete_summaries([change.key for change in changes if change.record is None])
