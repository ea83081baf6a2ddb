"""A home in PostgreSQL: everything but caches is in one database."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from typing import TYPE_CHECKING, Any

from psycopg.rows import dict_row

from ...errors import ConfigurationError
from ...models.journal.journal import Journal
from ..backends import Backend
from ..home import DatabaseHome
from ..metadata_store import MetadataStore
from ..paper_catalog import CurrentRecords
from ..paper_change import Change
from ..run_register import PLOT_SET, PLOTS_KEPT
from ..store_protocols import LibraryStores
from ..uploads import UPLOAD, SharedUploads
from .advisory_locks import DatabaseLock
from .bm25 import PostgresWords
from .database import CONNECTIONS, Database, DatabaseRecords, DatabaseTables, SeenRevision, has_table
from .database_state import database_state
from .migrations import prepare
from .postgres_catalog import PostgresCatalog
from .postgres_journal import LibraryJournalDatabase
from .postgres_vectors import PostgresNearest, PostgresVectors
from .server_registry import DatabaseServerRegistry

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from .postgres_checkpoints import PlainPostgresSaver


class PostgresStores(LibraryStores):
    """Catalog, vectors and words in one database, with a common pool of connections."""

    def __init__(self, database: Database) -> None:
        self._seen = SeenRevision()
        self.catalog: PostgresCatalog = PostgresCatalog(database)
        self.vectors: PostgresVectors = PostgresVectors(database, self._seen)
        self.words = PostgresWords(database, self._seen)
        self.metadata = MetadataStore(DatabaseTables(database))

    def last_seen_revision(self) -> tuple[int, int] | None:
        """A search is one statement, which reads the revision as well."""
        return self._seen.number, 0

    def search(self, records: CurrentRecords) -> PostgresNearest:
        return PostgresNearest(records, self.vectors)

    def state(self) -> list[tuple[bool, str, str]]:
        """Reports versions of server, pgvector and tables, existing indexes, and whether the tables agree."""
        return database_state(self.catalog.rows)

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Do nothing: a staged change is committed as a whole."""


class PostgresBackend(Backend):
    """A home in a database, whose tables are created or brought up to date on first use."""

    has_several_servers = True

    def __init__(self, home: DatabaseHome) -> None:
        self._home = home
        self._url = home.url
        self._vectors = home.vectors
        prepare(home.url)

    def open_library(self) -> LibraryStores:
        """Open connections; raises `ConfigurationError` if the library needs Milvus but none is configured."""
        from ..milvus.milvus_stores import MilvusStores

        database = Database(self._url, CONNECTIONS)
        if self._vectors is not None:
            return MilvusStores(database, self._vectors)
        stores = PostgresStores(database)
        if stores.catalog.meta("milvus") is not None:
            stores.close()
            raise ConfigurationError(
                f"{self._url}: this library is searched in Milvus.", help="Set CITELOOM_VECTORS to its address."
            )
        return stores

    def open_catalog(self) -> PostgresCatalog:
        return PostgresCatalog(Database(self._url, CONNECTIONS))

    def open_journal(self) -> Journal:
        return Journal(self.journal_database())

    def journal_database(self) -> LibraryJournalDatabase:
        return LibraryJournalDatabase(self._url)

    def run_tables(self) -> DatabaseTables:
        return DatabaseTables(Database(self._url))

    server_tables = account_tables = run_tables

    def plots(self) -> SharedUploads:
        return SharedUploads(Database(self._url), self._home.plots, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> SharedUploads:
        return SharedUploads(Database(self._url), self._home.papers, UPLOAD)

    def has_memory(self) -> bool:
        with Database(self._url).transaction() as connection:
            return bool(has_table(connection, "store"))

    @contextmanager
    def open_memory(self) -> Iterator[BaseStore]:
        from langgraph.store.postgres import PostgresStore

        database = Database(self._url)
        with database.named_errors(), closing(database.connect(autocommit=True)) as connection:
            rows_as_dicts: Any = connection
            rows_as_dicts.row_factory = dict_row
            store = PostgresStore(rows_as_dicts)
            store.setup()
            yield store

    def open_checkpoints(self) -> AbstractAsyncContextManager[PlainPostgresSaver]:
        from .postgres_checkpoints import open_database_checkpoints

        return open_database_checkpoints(self._url)

    def records(self) -> DatabaseRecords:
        return DatabaseRecords(Database(self._url))

    def writer_lock(self) -> DatabaseLock:
        return DatabaseLock(self._url, "writer")

    def lock_of_run(self, thread_id: str) -> DatabaseLock:
        return DatabaseLock(self._url, f"run:{thread_id}")

    def created_at(self) -> float:
        with Database(self._url).transaction() as connection:
            (moment,) = connection.execute("SELECT min(applied_at) FROM schema_versions").fetchone() or (None,)
        return float(moment.timestamp()) if moment is not None else 0.0

    def join_servers(self, address: str = "") -> DatabaseServerRegistry:
        return DatabaseServerRegistry(self._home)
