"""Opens the stores and registers of a home in a folder."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from ...documents import chunk_id
from ...errors import ConfigurationError
from ...models.embeddings.protocol import Vector
from ...models.journal.journal import Journal
from ...models.journal.journal_database import JournalFile
from ..backends import Backend, Checkpoints, Listener, ServerRegistry
from ..home_tables import SERVER_TABLES
from ..metadata_store import MetadataStore
from ..paper_catalog import CurrentRecords
from ..paper_change import Change
from ..run_register import PLOT_SET, PLOTS_KEPT
from ..search_records import VectorKind
from ..server_jobs import SERVERS, SESSIONS_REMEDY, RegisteredJobs
from ..store_protocols import LibraryStores
from ..uploads import UPLOAD, Uploads
from .catalog import Catalog
from .catalog_figures import FigureFiles
from .checkpoints import open_checkpoints
from .file_tables import FileRecords, FileTables, metadata_tables, run_tables
from .folder_home import FolderHome
from .fulltext import FullText
from .lock import FolderLock, try_acquire
from .vectors import VectorStore

if TYPE_CHECKING:
    from .vector_search import Nearest


_HOUR: Final = 3600.0


class LocalStores(LibraryStores):
    """Catalog (SQLite), vectors (Chroma) and words (tantivy) in a folder."""

    def __init__(self, home: FolderHome) -> None:
        self.catalog: Catalog = Catalog(home.catalog, FigureFiles(home))
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


class LocalBackend(Backend):
    """A home in a folder."""

    has_several_servers = False

    def __init__(self, home: FolderHome) -> None:
        self._home = home

    def open_library(self) -> LibraryStores:
        return LocalStores(self._home)

    def open_catalog(self) -> Catalog:
        return Catalog(self._home.catalog, FigureFiles(self._home))

    def open_journal(self) -> Journal:
        return Journal.open(self._home.journal)

    def journal_database(self) -> JournalFile:
        return JournalFile(self._home.journal)

    def run_tables(self) -> FileTables:
        return run_tables(self._home.runs)

    def server_tables(self) -> FileTables:
        return FileTables(self._home.server, (SERVERS, *SERVER_TABLES), SESSIONS_REMEDY)

    def plots(self) -> Uploads:
        return Uploads(self._home.plots, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> Uploads:
        """The uploads in the folder of papers; while a server runs, none younger than an hour is idle."""
        server = FileLock(self._home.locks / "server.lock", thread_local=False)
        alone = self._home.copy_of is None and try_acquire(server)
        server.release()
        root = (self._home.copy_of or self._home.root) / self._home.papers.name
        return Uploads(root, UPLOAD, 0 if alone else _HOUR, RegisteredJobs(self.server_tables()).unfinished)

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        return open_checkpoints(self._home.checkpoints)

    def records(self) -> FileRecords:
        return FileRecords(self._home)

    def writer_lock(self) -> FolderLock:
        return FolderLock(self._home)

    def lock_of_run(self, thread_id: str) -> FolderLock:
        return FolderLock(self._home, thread_id)

    def created_at(self) -> float:
        return self._home.catalog.stat().st_ctime

    def join_servers(self) -> LocalServerRegistry:
        return LocalServerRegistry(self._home)


def _write_vectors(changes: Sequence[Change], catalog: Catalog, store: VectorStore) -> None:
    """Write the vectors of these papers, and delete those that the changes no longer contain."""
    vectors: dict[VectorKind, dict[str, Vector]] = {"content": {}, "summaries": {}, "notes": {}}
    stale: dict[VectorKind, list[str]] = {"content": [], "summaries": [], "notes": []}
    for change in changes:
        key = change.key
        vectors["content"] |= {c.id: row for c, row in zip(change.chunks, change.vectors, strict=True)}
        vectors["notes"] |= {chunk_id(key, place): row for place, row in enumerate(change.note_vectors)}
        stale["content"] += [chunk_id(key, index) for index in range(len(change.chunks), catalog.indexed_count(key))]
        stale["notes"] += [chunk_id(key, place) for place in range(len(change.passages), catalog.noted_count(key))]
        if change.record is None:
            stale["summaries"].append(key)
        else:
            vectors["summaries"][key] = change.summary_vector
    for kind, rows in vectors.items():
        store.put(rows, kind)
    for kind, ids in stale.items():
        store.delete(ids, kind)


class SecondServerError(ConfigurationError):
    """Another server is using the same folder."""

    default_help = "Use its address; several servers need a home in PostgreSQL (docs/scaling.md)."


class LocalServerRegistry(ServerRegistry):
    """Holds the server lock of a folder, released when the process ends."""

    def __init__(self, home: FolderHome) -> None:
        home.prepare()
        self._lock = FileLock(home.locks / "server.lock", thread_local=False)
        if not try_acquire(self._lock):
            raise SecondServerError(f"{home.name}: another server already uses this folder.")
        server = secrets.token_hex(6)
        tables = LocalBackend(home).server_tables()
        with tables.transaction() as connection:
            connection.execute("DELETE FROM servers")
            connection.execute(SERVERS.insert(), (server,))
        super().__init__(home, tables, server)
        self.uploads = Uploads(home.papers, UPLOAD, unfinished=self.jobs.unfinished)

    def watch(self, listener: Listener) -> None:
        """Do nothing: there are no other servers."""

    def leave(self) -> None:
        self._lock.release()
