"""A folder of Chroma: opening it, closing it, and saying what cannot be read.

Chroma is made for one process. Whoever opens a folder reads the index of neighbours from files that a writer may be
replacing, together with the log of what is not in them yet, and writes those files itself when the log is long: a
reader would miss records, end in a segmentation fault, or spoil the writer's index. So a lock is held while a folder
is opened and while it is written; what is open needs no file of the index any more.
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

from ..errors import InputError

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection
    from chromadb.config import Settings

_CONFIGURATION: Any = {"hnsw": {"space": "cosine", "ef_search": 200}}
_NO_FUNCTION = ("legacy", "unknown")  # how Chroma writes that there is none
_openings = itertools.count(1)
_POLL_SECONDS = 0.005  # a writer leaves the folder alone for the length of a commit only
MAX_PAGE = 2000  # records: under SQLite's limit on variables, and gentle on memory


class VectorStoreError(InputError):
    """The vector store cannot be read, or a part of it is gone."""

    default_help = "Run '{citeloom} doctor --mend': it is made again from the papers' files."


class _Opened:
    """A client with its collections; it is closed when the last call that uses it has ended."""

    def __init__(self, client: ClientAPI, names: Sequence[str]) -> None:
        close = client.close  # type: ignore[attr-defined]  # the type lacks it, the class has it
        weakref.finalize(self, close).atexit = False
        self.collections: dict[str, Collection] = {}
        for name in names:
            collection = client.get_or_create_collection(name, configuration=_CONFIGURATION, embedding_function=None)
            _require_no_function(collection)
            collection.count()  # reads the index and the log now, while nobody writes them
            self.collections[name] = collection


class _Guarded:
    """A collection of Chroma whose failures say which folder cannot be read."""

    def __init__(self, opened: _Opened, name: str, path: Path) -> None:
        self._opened = opened  # so that it stays open
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
    """Raise `_NamedFunctionError` for a collection that names an embedding function: Chroma would build it on every
    write, with keys of the environment and code of other packages. Ours name none, and a home may be anybody's."""
    waiting: list[Any] = [collection.configuration_json, collection._model.serialized_schema]
    while waiting:
        item = waiting.pop()
        if isinstance(item, dict):
            function = item.get("embedding_function")
            if function is not None and not (isinstance(function, dict) and function.get("type") in _NO_FUNCTION):
                raise _NamedFunctionError("names an embedding function, which no library of Citeloom does.")
            waiting += item.values()
        elif isinstance(item, list | tuple):
            waiting += item


def _unreadable(path: Path, error: Exception) -> VectorStoreError:
    reason = " ".join(str(error).split())[:160].rstrip(".")
    return VectorStoreError(f"{path}: the vector store cannot be read ({reason}).")


class ChromaFolder:
    """The collections of a folder, made when first asked for; safe to call from several threads."""

    def __init__(self, path: Path, lock: Path, names: Sequence[str]) -> None:
        self.path = path
        self._names = names
        self._lock = threading.RLock()
        self._file_lock = FileLock(lock, poll_interval=_POLL_SECONDS)
        self._opened: _Opened | None = None

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keeps other processes and threads from opening and writing the folder; a thread may hold it twice."""
        with self._file_lock:
            yield

    def close(self) -> None:
        """Let go of the files once no call uses them; the next call opens them again, and so sees what others wrote."""
        with self._lock:
            self._opened = None

    def collection(self, name: str) -> _Guarded:
        """The collection of a name; raises `VectorStoreError` when the folder cannot be read."""
        with self._lock:
            opened = self._opened
        if opened is None:
            with self.held(), self._lock:  # in this order, as a write does
                opened = self._opened = self._opened or self._open()
        return _Guarded(opened, name, self.path)

    def _open(self) -> _Opened:
        # Imported late: it costs most of a second, which `--help` must not pay.
        try:
            from chromadb.errors import InternalError
        except ValueError as error:  # while it is imported it reads the `.env` of any folder
            reason = " ".join(str(error).split())[:160]
            raise InputError(
                f"{Path('.env').absolute()}: Chroma cannot read its settings ({reason}).",
                help="Correct or remove what begins with CHROMA there and in the environment.",
            ) from error
        try:
            return _Opened(_open_client(self.path), self._names)
        except _NamedFunctionError as error:
            raise VectorStoreError(f"{self.path / 'chroma.sqlite3'}: {error}") from None
        except (InternalError, ValueError) as error:
            raise _unreadable(self.path, error) from error

    @staticmethod
    def pages(items: Sequence[object]) -> Iterator[list[int]]:
        """Indices of `items`, in pages that Chroma can take at once."""
        for start in range(0, len(items), MAX_PAGE):
            yield list(range(start, min(start + MAX_PAGE, len(items))))

    def set_aside(self) -> Path:
        """Move what is there out of the way, in place of what was moved before; gives its new place."""
        aside = self.path.with_name(f"{self.path.name}-damaged")
        with self.held(), self._lock:
            self.close()
            if aside.is_dir():
                shutil.rmtree(aside)
            aside.unlink(missing_ok=True)
            self.path.rename(aside)
        return aside


def _open_client(path: Path) -> ClientAPI:
    import chromadb

    return chromadb.PersistentClient(path=_spelled(path), settings=_settings().model_copy())


@functools.cache
def _settings() -> Settings:
    """Chroma's settings; left to itself it reads the `.env` of any folder, which may name classes to be imported."""
    from chromadb.config import Settings

    return Settings(_env_file=None, anonymized_telemetry=False)  # type: ignore[call-arg]  # as pydantic-settings has it


def _spelled(path: Path) -> str:
    """The path, written as never before in this process.

    Chroma shares what it has in memory between clients of one spelling: with a second library open, closing and
    opening again would bring back what was there before another process wrote.
    """
    return str(path) + "".join("/." if bit == "1" else "/" for bit in f"{next(_openings):b}")
