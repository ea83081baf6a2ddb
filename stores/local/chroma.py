"""The stores of a library in a folder, and its vector store: Chroma, opened and closed safely across processes.

Chroma is designed for a single process. Opening a folder reads the HNSW index from files that a writer may be
replacing, together with the log of records not yet in them, and rewrites those files if the log is long: a reader
could miss records, crash with a segmentation fault, or corrupt the writer's index. So a lock is held while a folder
is opened and while it is written; once open, it no longer needs the index files.
"""

from __future__ import annotations

import itertools
import shutil
import threading
import weakref
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args

from filelock import FileLock

from ...documents import Chunk, chunk_id
from ...errors import InputError
from ...models.embeddings.protocol import Vector
from ..folder_home import FolderHome
from ..metadata_store import IDENTITIES, MetadataStore
from ..paper_catalog import Change, CurrentRecords
from ..store_protocols import LibraryStores, Scored, VectorKind, VectorStoreError
from ..tables import split_parts
from .catalog import Catalog
from .fulltext import FullText

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

    from .vector_search import Nearest

_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "ef_search": 200}}
_NO_FUNCTION = ("legacy", "unknown")  # Chroma's names for no embedding function
_KINDS: Final[tuple[VectorKind, ...]] = get_args(VectorKind)
_openings = itertools.count(1)
_POLL_SECONDS = 0.005  # a writer releases the folder only for the length of a commit
MAX_PAGE = 2000  # records: under SQLite's limit on variables, and gentle on memory


class _Opened:
    """A client with its collections, closed once the last call that uses it has returned."""

    def __init__(self, client: ClientAPI, path: Path) -> None:
        close = client.close  # type: ignore[attr-defined]  # missing from the type, present in the class
        weakref.finalize(self, close).atexit = False
        self.collections: dict[str, Collection] = {}
        for name in _KINDS:
            collection = client.get_or_create_collection(name, configuration=_CONFIGURATION, embedding_function=None)
            _require_no_function(collection, path)
            collection.count()  # loads the index and the log now, while the lock keeps writers out
            self.collections[name] = collection


class _Guarded:
    """A Chroma collection whose errors name the folder that cannot be read."""

    def __init__(self, opened: _Opened, name: str, path: Path) -> None:
        self._opened = opened  # keeps the client open
        self._collection = opened.collections[name]
        self.path = path

    def __getattr__(self, name: str) -> Any:
        from chromadb.errors import InternalError

        function = getattr(self._collection, name)

        def guarded(*arguments: Any, **named: Any) -> Any:
            try:
                return function(*arguments, **named)
            except InternalError as error:
                raise _unreadable(self.path, error) from error

        return guarded


def _require_no_function(collection: Collection, path: Path) -> None:
    """Raise `VectorStoreError` for a collection that names an embedding function, as a home from somebody else may.

    Chroma would instantiate it on every write, with keys from the environment and code from other packages.
    """
    pending: list[Any] = [collection.configuration_json, collection._model.serialized_schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            function = item.get("embedding_function")
            if function is not None and not (isinstance(function, dict) and function.get("type") in _NO_FUNCTION):
                message = f"{path / 'chroma.sqlite3'}: names an embedding function, which no Citeloom library does."
                raise VectorStoreError(message)
            pending += item.values()
        elif isinstance(item, list | tuple):
            pending += item


def _unreadable(path: Path, error: Exception) -> VectorStoreError:
    reason = " ".join(str(error).split())[:160].rstrip(".")
    return VectorStoreError(f"{path}: the vector store cannot be read ({reason}).")


class VectorStore:
    """The three collections of a home: an id and a vector for each chunk, each summary, and each passage of a note.

    Chroma is opened only to write, to check it, and to search in a large library; everything else is read from the
    catalog, since importing Chroma is slow. Thread-safe.
    """

    def __init__(self, home: FolderHome, catalog: Catalog) -> None:
        self.path = home.chroma
        self._catalog = catalog
        self._lock = threading.RLock()
        # Against opening and writing by other processes and threads; reentrant within a thread.
        self._folder_lock = FileLock(home.locks / "chroma.lock", poll_interval=_POLL_SECONDS)
        self._opened: _Opened | None = None

    def close(self) -> None:
        with self._lock:
            self._opened = None

    def collection(self, name: str) -> _Guarded:
        """The collection with this name; raises `VectorStoreError` if the folder cannot be read."""
        with self._lock:
            opened = self._opened
        if opened is None:
            with self._folder_lock, self._lock:  # the same lock order as a write, to avoid deadlock
                opened = self._opened = self._opened or self._open()
        return _Guarded(opened, name, self.path)

    def _open(self) -> _Opened:
        # Imported lazily: it takes most of a second, which `--help` must not pay.
        try:
            from chromadb.errors import InternalError
        except ValueError as error:  # on import it reads the `.env` of the current folder
            reason = " ".join(str(error).split())[:160]
            raise InputError(
                f"{Path('.env').absolute()}: Chroma cannot read its settings ({reason}).",
                help="Correct or remove the settings that begin with CHROMA, there and in the environment.",
            ) from error
        try:
            import chromadb
            from chromadb.config import Settings

            # Without the `.env` of the current folder: it may name classes to import.
            settings = Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]
            return _Opened(chromadb.PersistentClient(_unique_spelling(self.path), settings), self.path)
        except (InternalError, ValueError) as error:
            raise _unreadable(self.path, error) from error

    def set_aside(self) -> Path:
        aside = self.path.with_name(f"{self.path.name}-damaged")
        with self._folder_lock, self._lock:
            self.close()
            if aside.is_dir():
                shutil.rmtree(aside)
            aside.unlink(missing_ok=True)
            self.path.rename(aside)
        return aside

    def write(self, changes: Sequence[Change]) -> None:
        """Write the vectors of these papers, and delete those that the changes no longer contain."""
        vectors: dict[VectorKind, dict[str, Vector]] = {kind: {} for kind in _KINDS}
        stale: dict[VectorKind, list[str]] = {kind: [] for kind in _KINDS}
        for change in changes:
            key = change.key
            vectors["content"] |= {c.id: row for c, row in zip(change.chunks, change.vectors, strict=True)}
            vectors["notes"] |= {chunk_id(key, place): row for place, row in enumerate(change.note_vectors)}
            chunks, passages = self._catalog.listed_counts(key)
            stale["content"] += [chunk_id(key, index) for index in range(len(change.chunks), chunks)]
            stale["notes"] += [chunk_id(key, place) for place in range(len(change.note_vectors), passages)]
            if change.record is None:
                stale["summaries"].append(key)
            else:
                vectors["summaries"][key] = change.summary_vector
        for kind in _KINDS:
            self.put(vectors[kind], kind)
        for kind in _KINDS:
            self.delete(stale[kind], kind)

    def put(self, vectors: Mapping[str, Vector], kind: VectorKind = "content") -> None:
        """Write vectors, [d], by id; each page of them becomes visible to other processes atomically.

        No vector is replaced in place, since that can make its neighbours unreachable (see `vector_search.py`).
        """
        import numpy as np

        with self._folder_lock:
            old = self._load_vectors(kind, list(vectors))
            new = [
                identifier
                for identifier, vector in vectors.items()
                # up to the rounding of Chroma's normalization
                if identifier not in old or not np.allclose(vector, old[identifier], atol=1e-6)
            ]
            self._delete([identifier for identifier in new if identifier in old], kind)
            collection = self.collection(kind)
            for ids in split_parts(new, MAX_PAGE):
                collection.upsert(ids=ids, embeddings=[vectors[identifier] for identifier in ids])

    def delete(self, ids: Sequence[str], kind: VectorKind = "content") -> None:
        self._delete(ids, kind)
        if ids and kind == "content":
            self._catalog.forget_texts(ids)

    def _delete(self, ids: Sequence[str], kind: VectorKind) -> None:
        if ids:
            with self._folder_lock:
                collection = self.collection(kind)
                for page in split_parts(ids, MAX_PAGE):
                    collection.delete(ids=page)

    def get_chunks(self, ids: Sequence[str]) -> dict[str, Chunk]:
        return self._catalog.read_chunks(ids)

    def get_vectors(self, ids: Sequence[str], kind: VectorKind = "content") -> dict[str, Vector]:
        return self._catalog.read_vectors(kind, ids)

    def nearest(self, kind: VectorKind, vector: Vector, k: int) -> Scored:
        """Ids and cosines of the `k` nearest of a kind that are reachable in Chroma's graph, best first."""
        # Without metadata, which takes 100 ms for a thousand records.
        result: Any = self.collection(kind).query(query_embeddings=[vector], n_results=k, include=["distances"])
        rows = zip(result["ids"][0], result["distances"][0], strict=True)
        return [(identifier, 1.0 - float(distance)) for identifier, distance in rows]

    def _load_vectors(self, kind: VectorKind, ids: Sequence[str]) -> dict[str, Vector]:
        import numpy as np

        collection = self.collection(kind)
        found: dict[str, Vector] = {}
        for page in split_parts(ids, MAX_PAGE):
            result: Any = collection.get(ids=page, include=["embeddings"])
            rows = np.asarray(result["embeddings"], dtype=np.float32)
            found.update(zip(result["ids"], rows, strict=True))
        return found

    def read_through(self) -> None:
        for kind in _KINDS:
            for page in split_parts(sorted(self.stored_ids(kind)), MAX_PAGE):
                try:
                    vectors = self._load_vectors(kind, page)
                except VectorStoreError:
                    # Chroma reads records from disk but vectors from the index loaded on opening: in a folder opened
                    # between two writes, a record restored by the second one has no vector.
                    self.close()
                    vectors = self._load_vectors(kind, page)
                empty = [identifier for identifier, vector in vectors.items() if not vector.any()]
                if empty:
                    raise VectorStoreError(f"{self.path}: the vector of {empty[0]} is empty.")

    def stored_ids(self, kind: VectorKind = "content") -> set[str]:
        collection = self.collection(kind)
        found: set[str] = set()
        while page := collection.get(limit=MAX_PAGE, offset=len(found), include=[])["ids"]:
            found.update(page)
        return found


def _unique_spelling(path: Path) -> str:
    """The path in a spelling not used before in this process.

    Chroma shares its in-memory state between clients with the same path string: while a second library is open,
    closing and reopening would return the state from before another process wrote.
    """
    return str(path) + "".join("/." if bit == "1" else "/" for bit in f"{next(_openings):b}")


class LocalStores(LibraryStores):
    """Catalog (SQLite), vectors (Chroma) and words (tantivy) in a folder."""

    def __init__(self, home: FolderHome) -> None:
        self.catalog: Catalog = Catalog(home)
        self.vectors: VectorStore = VectorStore(home, self.catalog)
        self.words: FullText = FullText(home)
        self.metadata = MetadataStore(home.tables_with(IDENTITIES))

    def search(self, records: CurrentRecords) -> Nearest:
        from .vector_search import Nearest  # imports numpy

        return Nearest(records, self.catalog, self.vectors.nearest)

    def carry_out(self, changes: Sequence[Change]) -> None:
        # In parallel, since each spends much of its time waiting for the disk.
        with ThreadPoolExecutor(1, thread_name_prefix="fulltext") as executor:
            words = executor.submit(self.words.put, {change.key: change.chunks for change in changes})
            self.vectors.write(changes)
            words.result()
        self.catalog.commit(changes)

    def close(self) -> None:
        self.vectors.close()
        self.words.close()
        super().close()
