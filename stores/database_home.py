"""A home in PostgreSQL: everything but caches is in one database."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..errors import ConfigurationError
from ..settings.addresses import DatabaseUrl, VectorsUrl
from ..settings.key_trust import user_folder
from ..table_columns import TypedTable
from .home import Home, ServerRegistry, make_folders
from .postgres.advisory_locks import DatabaseLock
from .postgres.database import CONNECTIONS, Database, DatabaseTables, has_table
from .run_register import PLOT_SET, PLOTS_KEPT
from .tables import select_all
from .uploads import UPLOAD, SharedUploads

if TYPE_CHECKING:  # which need the extra packages
    from langgraph.store.base import BaseStore

    from .postgres.postgres_catalog import PostgresCatalog
    from .postgres.postgres_checkpoints import PlainPostgresSaver
    from .postgres.postgres_journal import LibraryJournalDatabase
    from .store_protocols import LibraryStores

_ROWS_AT_ONCE: Final = 500  # that the server sends


@dataclass(frozen=True)
class DatabaseHome(Home):
    """The database at `url`, searched in the Milvus at `vectors`, if given.

    `root` holds the text of converted files and the input history. Files of papers are not in the database.
    """

    has_several_servers = True

    url: DatabaseUrl
    vectors: VectorsUrl | None = None

    @classmethod
    def at(cls, url: DatabaseUrl, vectors: VectorsUrl | None = None) -> DatabaseHome:
        """The home in a database, with its folder among the user's caches."""
        return cls(user_folder("XDG_CACHE_HOME", "~/.cache") / "citeloom" / url.mark, url, vectors)

    @property
    def name(self) -> DatabaseUrl:
        return self.url

    @property
    def data(self) -> Path:
        return user_folder("XDG_DATA_HOME", "~/.local/share") / "citeloom" / self.url.mark

    def exists(self) -> bool:
        database = Database(self.url)
        with database.require_reachable(), database.transaction() as connection:
            return has_table(connection, "schema_versions")

    def prepare(self) -> DatabaseHome:
        make_folders(self)
        self._database()
        return self

    def _database(self, connections: int = 0) -> Database:
        """The database, whose tables are created or brought up to date on first use."""
        from .postgres.migrations import prepare

        prepare(self.url)
        return Database(self.url, connections)

    def open_library(self) -> LibraryStores:
        """Open connections; raises `ConfigurationError` if the library needs Milvus but none is configured."""
        database = self._database(CONNECTIONS)
        if self.vectors is not None:
            from .milvus.milvus_search import MilvusStores

            return MilvusStores(database, self.vectors)
        from .postgres.postgres_catalog import PostgresStores

        stores = PostgresStores(database)
        if stores.catalog.meta("milvus") is not None:
            stores.close()
            message = f"{self.url}: this library is searched in Milvus."
            raise ConfigurationError(message, help="Set CITELOOM_VECTORS to its address.")
        return stores

    def open_catalog(self) -> PostgresCatalog:
        from .postgres.postgres_catalog import PostgresCatalog

        return PostgresCatalog(self._database(CONNECTIONS))

    def journal_database(self) -> LibraryJournalDatabase:
        from .postgres.postgres_journal import LibraryJournalDatabase

        return LibraryJournalDatabase(self._database().url)

    def tables_with(self, table: TypedTable) -> DatabaseTables:
        return DatabaseTables(self._database())

    def plots(self) -> SharedUploads:
        return SharedUploads(self._database(), self.plots_folder, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> SharedUploads:
        return SharedUploads(self._database(), self.papers, UPLOAD)

    def has_memory(self) -> bool:
        with self._database().transaction() as connection:
            return bool(has_table(connection, "store"))

    @contextmanager
    def open_memory(self) -> Iterator[BaseStore]:
        from langgraph.store.postgres import PostgresStore
        from psycopg.rows import dict_row

        database = self._database()
        with database.translate_errors(), closing(database.connect(autocommit=True)) as connection:
            rows_as_dicts: Any = connection
            rows_as_dicts.row_factory = dict_row
            store = PostgresStore(rows_as_dicts)
            store.setup()
            yield store

    def open_checkpoints(self) -> AbstractAsyncContextManager[PlainPostgresSaver]:
        from .postgres.postgres_checkpoints import open_database_checkpoints

        return open_database_checkpoints(self._database())

    def rows(self, table: TypedTable) -> Generator[tuple[Any, ...]]:
        with self._database().transaction() as connection, connection.cursor(name="rows") as cursor:
            cursor.itersize = _ROWS_AT_ONCE
            cursor.execute(select_all(table).encode())
            yield from cursor

    def put(self, table: TypedTable, rows: Sequence[tuple[Any, ...]]) -> None:
        with self.tables_with(table).transaction() as connection:
            connection.executemany(table.insert("update"), rows)
            if table.number in table.columns:
                (key,) = table.key
                newest = f"(SELECT max({key}) FROM {table.name})"
                connection.execute(f"SELECT setval(pg_get_serial_sequence('{table.name}', '{key}'), {newest})")

    def writer_lock(self) -> DatabaseLock:
        return DatabaseLock(self._database(), "writer")

    def lock_of_run(self, thread_id: str) -> DatabaseLock:
        return DatabaseLock(self._database(), f"run:{thread_id}")

    def created_at(self) -> float:
        with self._database().transaction() as connection:
            (moment,) = connection.execute("SELECT min(applied_at) FROM schema_versions").fetchone() or (None,)
        return float(moment.timestamp()) if moment is not None else 0.0

    def join_servers(self, address: str = "") -> ServerRegistry:
        from .postgres.server_registry import DatabaseServerRegistry

        return DatabaseServerRegistry(self)
