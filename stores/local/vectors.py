"""The vector store: Chroma's graph of neighbours on disk, with texts and vectors in the catalog.

Collection `content` holds one record per chunk, `summaries` one per paper, `notes` one per passage of the user's notes:
an id and a vector each. Chroma is opened to write, to check it, and to search in a large library; everything else is
read from the catalog, so that a process need not import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...documents import Chunk
from ...models.embeddings.protocol import Vector
from ..search_records import StoredChunk, VectorStoreError
from .catalog_contents import Collection
from .chroma import MAX_PAGE, ChromaFolder
from .folder_home import FolderHome

if TYPE_CHECKING:
    from .catalog import Catalog

_NAMES: Final[tuple[Collection, ...]] = ("content", "summaries", "notes")


class VectorStore(ChromaFolder):
    """The three collections of a home; texts and vectors are read from its catalog."""

    def __init__(self, home: FolderHome, catalog: Catalog) -> None:
        super().__init__(home.chroma, home.locks / "chroma.lock", _NAMES)
        self._contents = catalog.contents

    def put_chunks(self, chunks: Sequence[Chunk], vectors: Sequence[Vector]) -> None:
        """Write chunks with one vector each, [d], replacing existing records."""
        self._put("content", dict(zip((chunk.id for chunk in chunks), vectors, strict=True)))

    def put_summaries(self, vectors: Mapping[str, Vector]) -> None:
        """Write the vectors of summaries, [d], by key."""
        self._put("summaries", vectors)

    def put_passages(self, vectors: Mapping[str, Vector]) -> None:
        """Write the vectors of passages of notes, [d], by id."""
        self._put("notes", vectors)

    def _put(self, name: Collection, vectors: Mapping[str, Vector]) -> None:
        """Write records; each page of them becomes visible to other processes all at once.

        No vector is replaced in place, since that can make its neighbours unreachable (see
        `stores/local/vector_search.py`).
        """
        import numpy as np

        with self.held():
            old = self._loaded_vectors(name, list(vectors))
            new = [
                identifier
                for identifier, vector in vectors.items()
                # up to the rounding of Chroma's normalization
                if identifier not in old or not np.allclose(vector, old[identifier], atol=1e-6)
            ]
            self._delete(name, [identifier for identifier in new if identifier in old])
            collection = self.collection(name)
            for page in self.pages(new):
                ids = [new[i] for i in page]
                collection.upsert(ids=ids, embeddings=_rows([vectors[identifier] for identifier in ids]))

    def delete_chunks(self, ids: Sequence[str]) -> None:
        self._delete("content", ids)
        if ids:
            self._contents.forget_texts(ids)

    def delete_passages(self, ids: Sequence[str]) -> None:
        self._delete("notes", ids)

    def delete_summaries(self, keys: Sequence[str]) -> None:
        self._delete("summaries", keys)

    def _delete(self, name: str, ids: Sequence[str]) -> None:
        if ids:
            with self.held():
                collection = self.collection(name)
                for page in self.pages(ids):
                    collection.delete(ids=[ids[i] for i in page])

    def get_chunks(self, ids: Sequence[str], *, vectors: bool = False) -> dict[str, StoredChunk]:
        found = self._contents.chunks(ids)
        if not vectors:
            return found
        rows = self.get_vectors(list(found))
        return {name: replace(stored, vector=rows.get(name)) for name, stored in found.items()}

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        return self._contents.vectors("content", ids)

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
        return self._contents.vectors("summaries", keys)

    def note_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        return self._contents.vectors("notes", ids)

    def _loaded_vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        import numpy as np

        collection = self.collection(name)
        found: dict[str, Vector] = {}
        for page in self.pages(ids):
            result: Any = collection.get(ids=[ids[i] for i in page], include=["embeddings"])
            rows = np.asarray(result["embeddings"], dtype=np.float32)
            found.update(zip(result["ids"], rows, strict=True))
        return found

    def read_through(self) -> None:
        for name in _NAMES:
            ids = sorted(self._all_ids(name))
            for page in self.pages(ids):
                vectors = self._reread_vectors(name, [ids[i] for i in page])
                empty = [identifier for identifier, vector in vectors.items() if not vector.any()]
                if empty:
                    raise VectorStoreError(f"{self.path}: the vector of {empty[0]} is empty.")

    def _reread_vectors(self, name: str, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors that Chroma has, by id; reopens a folder that was opened between two writes.

        Chroma reads records from disk but vectors from the index loaded on opening: a record that the second write
        restored exists without a vector.
        """
        try:
            return self._loaded_vectors(name, ids)
        except VectorStoreError:
            self.close()
            return self._loaded_vectors(name, ids)

    def chunk_total(self) -> int:
        """The number of chunks."""
        return int(self.collection("content").count())

    def summary_total(self) -> int:
        """The number of summaries."""
        return int(self.collection("summaries").count())

    def chunk_ids(self) -> set[str]:
        return self._all_ids("content")

    def summary_keys(self) -> set[str]:
        return self._all_ids("summaries")

    def passage_ids(self) -> set[str]:
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
