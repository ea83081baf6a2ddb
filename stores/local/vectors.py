"""The vector store: Chroma on disk, with our own embeddings instead of Chroma's.

Collection `content` holds one record per chunk (with its text as the document), `summaries` one per paper, `notes`
one per passage of the user's notes. Lookups are by id: their cost stays flat as the library grows, unlike metadata
filters (docs/decisions).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...documents import Category, Chunk, split_chunk_id, text_hash
from ...models.embeddings.protocol import Vector
from ..home import Home
from ..search_records import StoredChunk, VectorStoreError
from .chroma import MAX_PAGE, ChromaFolder

_NAMES = ("content", "summaries", "notes")


@dataclass(frozen=True, slots=True)
class _Record:
    """The content of a Chroma record."""

    text: str
    vector: Vector
    metadata: Mapping[str, str | int] = field(default_factory=dict)

    def same_as(self, other: _Record | None) -> bool:
        """Whether text and vector are equal, up to the rounding of Chroma's normalization."""
        return other is not None and self.text == other.text and np.allclose(self.vector, other.vector, atol=1e-6)


class VectorStore(ChromaFolder):
    """The three collections of a home."""

    def __init__(self, home: Home) -> None:
        super().__init__(home.chroma, home.locks / "chroma.lock", _NAMES)

    def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        """Write chunks with one vector each, [d], replacing existing records."""
        pairs = zip(chunks, vectors, strict=True)
        self._put("content", {chunk.id: _Record(chunk.text, vector, _metadata(chunk)) for chunk, vector in pairs})

    def put_summaries(self, summaries: Mapping[str, tuple[str, Vector]]) -> None:
        """Write summaries of papers with their vectors, [d], by key."""
        self._put("summaries", {key: _Record(*summary) for key, summary in summaries.items()})

    def put_passages(self, passages: Mapping[str, tuple[str, Vector]]) -> None:
        """Write passages of notes with their vectors, [d], by id."""
        self._put("notes", {identifier: _Record(*passage) for identifier, passage in passages.items()})

    def _put(self, name: str, records: Mapping[str, _Record]) -> None:
        """Write records; each page of them becomes visible to other processes all at once.

        No vector is replaced in place, since that can make its neighbours unreachable (see
        `stores/local/exact_search.py`).
        """
        with self.held():
            self._put_held(name, records)

    def _put_held(self, name: str, records: Mapping[str, _Record]) -> None:
        old = self._records_of(name, list(records))
        same = {identifier: record for identifier, record in records.items() if record.same_as(old.get(identifier))}
        self._set_metadata(
            name,
            {  # Chroma keeps what an update does not name
                identifier: {**dict.fromkeys(old[identifier].metadata), **record.metadata}
                for identifier, record in same.items()
                if record.metadata != old[identifier].metadata
            },
        )
        new = [identifier for identifier in records if identifier not in same]
        self._delete(name, [identifier for identifier in new if identifier in old])
        collection = self.collection(name)
        for page in self.pages(new):
            rows = [records[new[i]] for i in page]
            collection.upsert(
                ids=[new[i] for i in page],
                embeddings=_rows([row.vector for row in rows]),
                documents=[row.text for row in rows],
                metadatas=[row.metadata for row in rows] if rows[0].metadata else None,
            )

    def _records_of(self, name: str, ids: Sequence[str]) -> dict[str, _Record]:
        """The existing records, by id."""
        collection = self.collection(name)
        include = ["documents", "metadatas", "embeddings"]
        found: dict[str, _Record] = {}
        for page in self.pages(ids):
            got: Any = collection.get(ids=[ids[i] for i in page], include=include)
            rows = zip(got["ids"], got["documents"], got["embeddings"], got["metadatas"], strict=True)
            found |= {identifier: _Record(text, vector, metadata or {}) for identifier, text, vector, metadata in rows}
        return found

    def _set_metadata(self, name: str, metadata: Mapping[str, Mapping[str, str | int | None]]) -> None:
        collection = self.collection(name)
        ids = list(metadata)
        for page in self.pages(ids):
            collection.update(ids=[ids[i] for i in page], metadatas=[metadata[ids[i]] for i in page])

    def delete_chunks(self, ids: Sequence[str]) -> None:
        """Delete chunks; unknown ids are ignored."""
        self._delete("content", ids)

    def delete_passages(self, ids: Sequence[str]) -> None:
        """Delete passages of notes; unknown ids are ignored."""
        self._delete("notes", ids)

    def delete_summaries(self, keys: Sequence[str]) -> None:
        """Delete the summaries of papers; unknown keys are ignored."""
        self._delete("summaries", keys)

    def _delete(self, name: str, ids: Sequence[str]) -> None:
        if ids:
            with self.held():
                collection = self.collection(name)
                for page in self.pages(ids):
                    collection.delete(ids=[ids[i] for i in page])

    def get_chunks(self, ids: Sequence[str], *, vectors: bool = False) -> dict[str, StoredChunk]:
        """The existing chunks, by id."""
        content = self.collection("content")
        include: Any = ["documents", "metadatas", *(["embeddings"] if vectors else [])]
        found: dict[str, StoredChunk] = {}
        for page in self.pages(ids):
            result: Any = content.get(ids=[ids[i] for i in page], include=include)
            rows = result["embeddings"] if vectors else [None] * len(result["ids"])
            for name, text, metadata, row in zip(
                result["ids"], result["documents"], result["metadatas"], rows, strict=True
            ):
                vector = None if row is None else np.asarray(row, dtype=np.float32)
                found[name] = StoredChunk(_chunk(name, text, metadata), str(metadata["text_hash"]), vector)
        return found

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the existing chunks, by id, without their texts."""
        return self._vectors_of("content", ids)

    def nearest_ids(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Ids and cosines of the `k` nearest chunks reachable in Chroma's graph, best first."""
        return self._nearest("content", vector, k)

    def nearest_summaries(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Keys and cosines of the `k` nearest papers reachable in the graph, best first."""
        return self._nearest("summaries", vector, k)

    def nearest_passages(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Ids and cosines of the `k` nearest passages of notes reachable in the graph, best first."""
        return self._nearest("notes", vector, k)

    def _nearest(self, name: str, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Query without texts and metadata: metadata of a thousand records takes 100 ms."""
        result: Any = self.collection(name).query(query_embeddings=_rows([vector]), n_results=k, include=["distances"])
        rows = zip(result["ids"][0], result["distances"][0], strict=True)
        return [(identifier, 1.0 - float(distance)) for identifier, distance in rows]

    def summary_vectors(self, keys: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the existing summaries, by key."""
        return self._vectors_of("summaries", keys)

    def note_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the existing passages of notes, by id."""
        return self._vectors_of("notes", ids)

    def _vectors_of(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        """The existing vectors, by id; reopens a folder that was opened between two writes.

        Chroma reads records from disk but vectors from the index loaded on opening: a record that the second write
        restored exists without a vector.
        """
        try:
            return self._loaded_vectors(name, ids)
        except VectorStoreError:
            self.close()
            return self._loaded_vectors(name, ids)

    def _loaded_vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        collection = self.collection(name)
        found: dict[str, Vector] = {}
        for page in self.pages(ids):
            result: Any = collection.get(ids=[ids[i] for i in page], include=["embeddings"])
            rows = np.asarray(result["embeddings"], dtype=np.float32)
            found.update(zip(result["ids"], rows, strict=True))
        return found

    def read_through(self) -> None:
        """Read the vector of every record; raises `VectorStoreError` if one cannot be read."""
        for name in _NAMES:
            ids = sorted(self._all_ids(name))
            for page in self.pages(ids):
                vectors = self._vectors_of(name, [ids[i] for i in page])
                empty = [identifier for identifier, vector in vectors.items() if not vector.any()]
                if empty:
                    raise VectorStoreError(f"{self.path}: the vector of {empty[0]} is empty.")

    def chunk_total(self) -> int:
        """The number of chunks."""
        return int(self.collection("content").count())

    def summary_total(self) -> int:
        """The number of summaries."""
        return int(self.collection("summaries").count())

    def chunk_ids(self) -> set[str]:
        """The ids of all chunks."""
        return self._all_ids("content")

    def summary_keys(self) -> set[str]:
        """The keys of all summaries."""
        return self._all_ids("summaries")

    def passage_ids(self) -> set[str]:
        """The ids of all passages of notes."""
        return self._all_ids("notes")

    def _all_ids(self, name: str) -> set[str]:
        collection = self.collection(name)
        found: set[str] = set()
        while True:
            page = collection.get(limit=MAX_PAGE, offset=len(found), include=[])["ids"]
            if not page:
                return found
            found.update(page)


def _rows(vectors: Sequence[Vector]) -> Any:
    # Chroma's type stubs require a list of arrays of their own float32 alias.
    return list(vectors)


def _metadata(chunk: Chunk) -> dict[str, str | int]:
    metadata: dict[str, str | int] = {
        "key": chunk.key,
        "index": chunk.index,
        "section": chunk.section,
        "parent": chunk.parent,
        "category": int(chunk.category),
        "level": chunk.level,
        "start": chunk.start,
        "end": chunk.end,
        "tokens": chunk.tokens,
        "text_hash": text_hash(chunk.text),
    }
    if chunk.page is not None:  # Chroma does not accept None
        metadata["page"] = chunk.page
    if chunk.page_breaks:
        metadata["page_breaks"] = " ".join(map(str, chunk.page_breaks))
    return metadata


def _chunk(name: str, text: str, metadata: dict[str, Any]) -> Chunk:
    key, index = split_chunk_id(name)
    return Chunk(
        id=name,
        key=key,
        index=index,
        text=text,
        section=metadata["section"],
        parent=metadata["parent"],
        category=Category(metadata["category"]),
        level=metadata["level"],
        page=metadata.get("page"),
        start=metadata["start"],
        end=metadata["end"],
        tokens=metadata["tokens"],
        page_breaks=tuple(map(int, str(metadata.get("page_breaks", "")).split())),
    )
