"""The vector store: Chroma on disk, with our own embeddings, never its.

Collection `content` holds one record for each chunk (its text once, as the document), `summaries` one for
each paper, `notes` one for each passage of the user's notes. Lookups go by id: they stay flat as the library
grows, metadata filters do not (docs/decisions).
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from citeloom.documents import Category, Chunk, chunk_id, split_chunk_id, text_hash
from citeloom.models.embedding import Vector, Vectors
from citeloom.stores.home import Home

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "ef_search": 200}}
_MAX_PAGE = 2000  # under SQLite's limit on variables, and gentle on memory


@dataclass(frozen=True, slots=True)
class StoredChunk:
    """A chunk as the vector store holds it; `vector` only when asked for."""

    chunk: Chunk
    text_hash: str
    vector: Vector | None = None


class VectorStore:
    """Chroma's three collections; safe to call from several threads."""

    def __init__(self, home: Home) -> None:
        self._path = home.chroma
        self._lock = threading.RLock()
        self._client: ClientAPI | None = None
        self._collections: dict[str, Collection] = {}

    def close(self) -> None:
        """Let go of the files; the next call opens them again, and so sees what others wrote."""
        with self._lock:
            if self._client is not None:
                self._client.close()  # type: ignore[attr-defined]  # the type lacks it, the class has it
            self._client = None
            self._collections = {}

    def _collection(self, name: str) -> Collection:
        with self._lock:
            if self._client is None:
                # Imported late: it costs most of a second, which `--help` must not pay.
                import chromadb
                from chromadb.config import Settings

                self._client = chromadb.PersistentClient(
                    path=str(self._path), settings=Settings(anonymized_telemetry=False)
                )
            if name not in self._collections:
                self._collections[name] = self._client.get_or_create_collection(
                    name, configuration=_CONFIGURATION, embedding_function=None
                )
            return self._collections[name]

    def _pages(self, items: Sequence[str]) -> Iterator[list[int]]:
        """Indices of `items`, in pages that Chroma can take at once."""
        with self._lock:
            assert self._client is not None
            size = min(self._client.get_max_batch_size(), _MAX_PAGE)
        for start in range(0, len(items), size):
            yield list(range(start, min(start + size, len(items))))

    def put_chunks(self, chunks: Sequence[Chunk], vectors: Vectors) -> None:
        """Write chunks with their vectors, [n, d]; what stood under an id is replaced."""
        content = self._collection("content")
        ids = [chunk.id for chunk in chunks]
        for page in self._pages(ids):
            content.upsert(
                ids=[ids[i] for i in page],
                embeddings=_rows([vectors[i] for i in page]),
                documents=[chunks[i].text for i in page],
                metadatas=[_metadata(chunks[i]) for i in page],
            )

    def put_summary(self, key: str, summary: str, vector: Vector) -> None:
        """Write the summary of a paper with its vector, [d]."""
        self._collection("summaries").upsert(ids=[key], embeddings=_rows([vector]), documents=[summary])

    def put_note(self, key: str, passages: Sequence[str], vectors: Vectors, before: int) -> None:
        """Write the passages of the note on a paper with their vectors, [n, d], in place of the `before` it had."""
        if not passages and not before:
            return
        ids = [chunk_id(key, place) for place in range(len(passages))]
        self.delete_passages([chunk_id(key, place) for place in range(len(passages), before)])
        notes = self._collection("notes")
        for page in self._pages(ids):
            notes.upsert(
                ids=[ids[i] for i in page],
                embeddings=_rows([vectors[i] for i in page]),
                documents=[passages[i] for i in page],
            )

    def delete_passages(self, ids: Sequence[str]) -> None:
        """Remove passages of notes; ids that are not there are passed over."""
        notes = self._collection("notes")
        for page in self._pages(ids):
            notes.delete(ids=[ids[i] for i in page])

    def delete_chunks(self, ids: Sequence[str]) -> None:
        """Remove chunks; ids that are not there are passed over."""
        content = self._collection("content")
        for page in self._pages(ids):
            content.delete(ids=[ids[i] for i in page])

    def delete_summary(self, key: str) -> None:
        """Remove the summary of a paper."""
        self._collection("summaries").delete(ids=[key])

    def get_chunks(self, ids: Sequence[str], *, vectors: bool = False) -> dict[str, StoredChunk]:
        """The chunks that are there, by id."""
        content = self._collection("content")
        include: Any = ["documents", "metadatas", *(["embeddings"] if vectors else [])]
        found: dict[str, StoredChunk] = {}
        for page in self._pages(ids):
            result: Any = content.get(ids=[ids[i] for i in page], include=include)
            rows = result["embeddings"] if vectors else [None] * len(result["ids"])
            for name, text, metadata, row in zip(
                result["ids"], result["documents"], result["metadatas"], rows, strict=True
            ):
                vector = None if row is None else np.asarray(row, dtype=np.float32)
                found[name] = StoredChunk(_chunk(name, text, metadata), str(metadata["text_hash"]), vector)
        return found

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the chunks that are there, by id; without their texts."""
        return self._vectors_of("content", ids)

    def nearest_ids(self, vector: Vector, k: int) -> list[tuple[str, float]]:
        """Ids and cosines of the `k` nearest chunks, best first.

        Texts and metadata are left where they are: of a hundred candidates a search shows ten, and a thousand
        records of metadata take 100 ms.
        """
        result: Any = self._collection("content").query(
            query_embeddings=_rows([vector]), n_results=k, include=["distances"]
        )
        rows = zip(result["ids"][0], result["distances"][0], strict=True)
        return [(name, 1.0 - float(distance)) for name, distance in rows]

    def nearest_summaries(self, vector: Vector, k: int) -> list[tuple[str, str, float]]:
        """Keys, summaries and cosines of the `k` nearest papers, best first."""
        return self._nearest_documents("summaries", vector, k)

    def nearest_passages(self, vector: Vector, k: int) -> list[tuple[str, str, float]]:
        """Ids, texts and cosines of the `k` nearest passages of notes, best first."""
        return self._nearest_documents("notes", vector, k)

    def _nearest_documents(self, name: str, vector: Vector, k: int) -> list[tuple[str, str, float]]:
        result: Any = self._collection(name).query(
            query_embeddings=_rows([vector]), n_results=k, include=["documents", "distances"]
        )
        rows = zip(result["ids"][0], result["documents"][0], result["distances"][0], strict=True)
        return [(identifier, text, 1.0 - float(distance)) for identifier, text, distance in rows]

    def summary_vectors(self, keys: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the summaries that are there, by key."""
        return self._vectors_of("summaries", keys)

    def note_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the passages of notes that are there, by id."""
        return self._vectors_of("notes", ids)

    def _vectors_of(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        collection = self._collection(name)
        found: dict[str, Vector] = {}
        for page in self._pages(ids):
            result: Any = collection.get(ids=[ids[i] for i in page], include=["embeddings"])
            rows = np.asarray(result["embeddings"], dtype=np.float32)
            found.update(zip(result["ids"], rows, strict=True))
        return found

    def chunk_total(self) -> int:
        """How many chunks there are."""
        return self._collection("content").count()

    def summary_total(self) -> int:
        """How many summaries there are."""
        return self._collection("summaries").count()

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
        collection = self._collection(name)
        found: set[str] = set()
        while True:
            page = collection.get(limit=_MAX_PAGE, offset=len(found), include=[])["ids"]
            if not page:
                return found
            found.update(page)


def _rows(vectors: Sequence[Vector]) -> Any:
    # Chroma's types ask for a list of arrays of its own alias of float32.
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
    if chunk.page is not None:  # Chroma takes no None
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
