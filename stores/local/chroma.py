"""Opens and closes a Chroma folder safely across processes, and reports what cannot be read.

Chroma is designed for a single process. Opening a folder reads the HNSW index from files that a writer may be
replacing, together with the log of records not yet in them, and rewrites those files if the log is long: a reader
could miss records, crash with a segmentation fault, or corrupt the writer's index. So a lock is held while a folder
is opened and while it is written; once open, it no longer needs the index files.
"""

from __future__ import annotations

import functools
import itertools
import shutil
import threading
import weakref
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from filelock import FileLock

from ...errors import InputError
from ..search_records import VectorStoreError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings

_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "ef_search": 200}}
_NO_FUNCTION = ("legacy", "unknown")  # Chroma's names for no embedding function
_openings = itertools.count(1)
_POLL_SECONDS = 0.005  # a writer releases the folder only for the length of a commit
MAX_PAGE = 2000  # records: under SQLite's limit on variables, and gentle on memory


class _Opened:
    """A client with its collections, closed once the last call that uses it has returned."""

    def __init__(self, client: ClientAPI, names: Sequence[str]) -> None:
        close = client.close  # type: ignore[attr-defined]  # missing from the type, present in the class
        weakref.finalize(self, close).atexit = False
        self.collections: dict[str, Collection] = {}
        for name in names:
            collection = client.get_or_create_collection(name, configuration=_CONFIGURATION, embedding_function=None)
            _require_no_function(collection)
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


class _NamedFunctionError(Exception):
    """A collection names an embedding function."""


def _require_no_function(collection: Collection) -> None:
    """Raise `_NamedFunctionError` for a collection that names an embedding function: Chroma would instantiate it on
    every write, with keys from the environment and code from other packages. Ours name none, but a home may come from
    somebody else."""
    pending: list[Any] = [collection.configuration_json, collection._model.serialized_schema]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            function = item.get("embedding_function")
            if function is not None and not (isinstance(function, dict) and function.get("type") in _NO_FUNCTION):
                raise _NamedFunctionError("names an embedding function, which no Citeloom library does.")
            pending += item.values()
        elif isinstance(item, list | tuple):
            pending += item


def _unreadable(path: Path, error: Exception) -> VectorStoreError:
    reason = " ".join(str(error).split())[:160].rstrip(".")
    return VectorStoreError(f"{path}: the vector store cannot be read ({reason}).")


class ChromaFolder:
    """The collections of a folder, opened on first use; thread-safe."""

    def __init__(self, path: Path, lock: Path, names: Sequence[str]) -> None:
        self.path = path
        self._names = names
        self._lock = threading.RLock()
        self._file_lock = FileLock(lock, poll_interval=_POLL_SECONDS)
        self._opened: _Opened | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Lock the folder against opening and writing by other processes and threads; reentrant within a thread."""
        with self._file_lock:
            yield

    def close(self) -> None:
        with self._lock:
            self._opened = None

    def collection(self, name: str) -> _Guarded:
        """The collection with this name; raises `VectorStoreError` if the folder cannot be read."""
        with self._lock:
            opened = self._opened
        if opened is None:
            with self.held(), self._lock:  # the same lock order as a write, to avoid deadlock
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

            client = chromadb.PersistentClient(path=_unique_spelling(self.path), settings=_settings().model_copy())
            return _Opened(client, self._names)
        except _NamedFunctionError as error:
            raise VectorStoreError(f"{self.path / 'chroma.sqlite3'}: {error}") from None
        except (InternalError, ValueError) as error:
            raise _unreadable(self.path, error) from error

    @staticmethod
    def pages(ids: Sequence[str]) -> Iterator[list[str]]:
        """The ids in pages that Chroma accepts at once."""
        for start in range(0, len(ids), MAX_PAGE):
            yield list(ids[start : start + MAX_PAGE])

    def set_aside(self) -> Path:
        aside = self.path.with_name(f"{self.path.name}-damaged")
        with self.held(), self._lock:
            self.close()
            if aside.is_dir():
                shutil.rmtree(aside)
            aside.unlink(missing_ok=True)
            self.path.rename(aside)
        return aside


@functools.cache
def _settings() -> Settings:
    """Chroma's settings, without the `.env` of the current folder: it may name classes to import."""
    from chromadb.config import Settings

    return Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]  # an argument of pydantic-settings


def _unique_spelling(path: Path) -> str:
    """The path in a spelling not used before in this process.

    Chroma shares its in-memory state between clients with the same path string: while a second library is open,
    closing and reopening would return the state from before another process wrote.
    """
    return str(path) + "".join("/." if bit == "1" else "/" for bit in f"{next(_openings):b}")
