"""The vector store: Chroma's graph of neighbours on disk, with texts and vectors in the catalog.

Collection `content` holds one record per chunk, `summaries` one per paper, `notes` one per passage of the user's notes:
an id and a vector each. Chroma is opened to write, to check it, and to search in a large library; everything else is
read from the catalog, so that a process need not import it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, get_args

from ...models.embeddings.protocol import Vector
from ..search_records import Scored, StoredChunk, VectorKind, VectorStoreError
from .chroma import MAX_PAGE, ChromaFolder
from .folder_home import FolderHome

if TYPE_CHECKING:
    from .catalog import Catalog

_KINDS: Final[tuple[VectorKind, ...]] = get_args(VectorKind)


class VectorStore(ChromaFolder):
    """The three collections of a home; texts and vectors are read from its catalog."""

    def __init__(self, home: FolderHome, catalog: Catalog) -> None:
        super().__init__(home.chroma, home.locks / "chroma.lock", _KINDS)
        self._catalog = catalog

    def put(self, vectors: Mapping[str, Vector], kind: VectorKind = "content") -> None:
        """Write vectors, [d], by id; each page of them becomes visible to other processes all at once.

        No vector is replaced in place, since that can make its neighbours unreachable (see
        `stores/local/vector_search.py`).
        """
        import numpy as np

        with self.held():
            old = self._loaded_vectors(kind, list(vectors))
            new = [
                identifier
                for identifier, vector in vectors.items()
                # up to the rounding of Chroma's normalization
                if identifier not in old or not np.allclose(vector, old[identifier], atol=1e-6)
            ]
            self._delete([identifier for identifier in new if identifier in old], kind)
            collection = self.collection(kind)
            for ids in self.pages(new):
                collection.upsert(ids=ids, embeddings=[vectors[identifier] for identifier in ids])

    def delete(self, ids: Sequence[str], kind: VectorKind = "content") -> None:
        self._delete(ids, kind)
        if ids and kind == "content":
            self._catalog.forget_texts(ids)

    def _delete(self, ids: Sequence[str], kind: VectorKind) -> None:
        if ids:
            with self.held():
                collection = self.collection(kind)
                for page in self.pages(ids):
                    collection.delete(ids=page)

    def get_chunks(self, ids: Sequence[str], *, vectors: bool = False) -> dict[str, StoredChunk]:
        found = self._catalog.read_chunks(ids)
        if not vectors:
            return found
        rows = self.get_vectors(list(found))
        return {name: replace(stored, vector=rows.get(name)) for name, stored in found.items()}

    def get_vectors(self, ids: Sequence[str], kind: VectorKind = "content") -> dict[str, Vector]:
        return self._catalog.read_vectors(kind, ids)

    def nearest(self, kind: VectorKind, vector: Vector, k: int) -> Scored:
        """Ids and cosines of the `k` nearest of a kind that are reachable in Chroma's graph, best first."""
        # Without metadata, of which a thousand records take 100 ms.
        result: Any = self.collection(kind).query(query_embeddings=[vector], n_results=k, include=["distances"])
        rows = zip(result["ids"][0], result["distances"][0], strict=True)
        return [(identifier, 1.0 - float(distance)) for identifier, distance in rows]

    def _loaded_vectors(self, kind: VectorKind, ids: Sequence[str]) -> dict[str, Vector]:
        import numpy as np

        collection = self.collection(kind)
        found: dict[str, Vector] = {}
        for page in self.pages(ids):
            result: Any = collection.get(ids=page, include=["embeddings"])
            rows = np.asarray(result["embeddings"], dtype=np.float32)
            found.update(zip(result["ids"], rows, strict=True))
        return found

    def read_through(self) -> None:
        for kind in _KINDS:
            for page in self.pages(sorted(self.stored_ids(kind))):
                vectors = self._reread_vectors(kind, page)
                empty = [identifier for identifier, vector in vectors.items() if not vector.any()]
                if empty:
                    raise VectorStoreError(f"{self.path}: the vector of {empty[0]} is empty.")

    def _reread_vectors(self, kind: VectorKind, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors that Chroma has, by id; reopens a folder that was opened between two writes.

        Chroma reads records from disk but vectors from the index loaded on opening: a record that the second write
        restored exists without a vector.
        """
        try:
            return self._loaded_vectors(kind, ids)
        except VectorStoreError:
            self.close()
            return self._loaded_vectors(kind, ids)

    def stored_ids(self, kind: VectorKind = "content") -> set[str]:
        collection = self.collection(kind)
        found: set[str] = set()
        while True:
            page = collection.get(limit=MAX_PAGE, offset=len(found), include=[])["ids"]
            if not page:
                return found
            found.update(page)
