"""Opens the stores and registers of a home in a folder."""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterator
from contextlib import AbstractAsyncContextManager, closing, contextmanager, suppress
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from ...errors import ConfigurationError
from ...sqlite import MEMORY_REMEDY, naming_damage, require_plain_schema, write_ahead
from ..backends import Backend, Listener, ServerRegistry
from ..uploads import UPLOAD, Uploads
from .file_tables import FileTables, run_tables
from .folder_home import FolderHome
from .lock import FolderLock, try_acquire

if TYPE_CHECKING:  # each command loads only what it needs
    from langgraph.store.base import BaseStore

    from ...models.journal.journal import Journal
    from ...models.journal.journal_database import JournalFile
    from ..store_protocols import LibraryStores
    from .catalog import Catalog
    from .checkpoints import PlainSaver
    from .local_stores import FileRecords

_HOUR: Final = 3600.0


class LocalBackend(Backend):
    """A home in a folder."""

    has_several_servers = False

    def __init__(self, home: FolderHome) -> None:
        self._home = home

    def open_library(self) -> LibraryStores:
        from .local_stores import LocalStores

        return LocalStores(self._home)

    def open_catalog(self) -> Catalog:
        from .catalog import Catalog

        return Catalog(self._home)

    def open_journal(self) -> Journal:
        from ...models.journal.journal import Journal

        return Journal(self._home.journal)

    def journal_database(self) -> JournalFile:
        from ...models.journal.journal_database import JournalFile

        return JournalFile(self._home.journal)

    def run_tables(self) -> FileTables:
        return run_tables(self._home.runs)

    def server_tables(self) -> FileTables:
        from ..server_jobs import SERVER_TABLES, SERVERS, SESSIONS_REMEDY

        return FileTables(self._home.server, (SERVERS, *SERVER_TABLES), SESSIONS_REMEDY)

    def account_tables(self) -> FileTables:
        from ..accounts import ACCOUNT_TABLES, ACCOUNTS_REMEDY

        with suppress(OSError):
            self._home.accounts.chmod(0o600)
        return FileTables(self._home.accounts, ACCOUNT_TABLES, ACCOUNTS_REMEDY)

    def plots(self) -> Uploads:
        from ..run_register import PLOT_SET, PLOTS_KEPT

        return Uploads(self._home.plots, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> Uploads:
        """The uploads in the folder of papers; while a server runs, none younger than an hour is idle."""
        from ..server_jobs import RegisteredJobs

        server = FileLock(self._home.locks / "server.lock", thread_local=False)
        alone = self._home.copy_of is None and try_acquire(server)
        server.release()
        root = (self._home.copy_of or self._home.root) / self._home.papers.name
        return Uploads(root, UPLOAD, 0 if alone else _HOUR, RegisteredJobs(self.server_tables()).unfinished)

    def has_memory(self) -> bool:
        return self._home.memory.is_file()

    @contextmanager
    def open_memory(self) -> Iterator[BaseStore]:
        from langgraph.store.sqlite import SqliteStore

        file = self._home.memory
        with (
            naming_damage(file, MEMORY_REMEDY),
            closing(sqlite3.connect(file, timeout=30, isolation_level=None)) as connection,
        ):
            write_ahead(connection)
            require_plain_schema(connection, file, MEMORY_REMEDY)
            store = SqliteStore(connection)
            store.setup()
            yield store

    def open_checkpoints(self) -> AbstractAsyncContextManager[PlainSaver]:
        from .checkpoints import open_checkpoints

        return open_checkpoints(self._home.checkpoints)

    def records(self) -> FileRecords:
        from .local_stores import FileRecords

        return FileRecords(self._home)

    def writer_lock(self) -> FolderLock:
        return FolderLock(self._home)

    def lock_of_run(self, thread_id: str) -> FolderLock:
        return FolderLock(self._home, thread_id)

    def created_at(self) -> float:
        return self._home.catalog.stat().st_ctime

    def join_servers(self, address: str = "") -> LocalServerRegistry:
        return LocalServerRegistry(self._home, address)


class SecondServerError(ConfigurationError):
    """Another server is using the same folder."""

    default_help = "Use its address; several servers need a home in PostgreSQL (docs/scaling.md)."


class LocalServerRegistry(ServerRegistry):
    """Holds the server lock of a folder, released when the process ends."""

    def __init__(self, home: FolderHome, address: str) -> None:
        from ..server_jobs import SERVERS

        home.prepare()
        self._lock, known = FileLock(home.locks / "server.lock", thread_local=False), home.locks / "server.address"
        if not try_acquire(self._lock):
            first = known.read_text("utf-8") if known.is_file() else ""
            where = f", at {first}" if first else ""
            raise SecondServerError(f"{home.name}: another server already uses this folder{where}.")
        known.write_text(address, "utf-8")
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
