"""Creates a database's tables, and migrates those of earlier releases, in one transaction.

Increment the version and add to `MIGRATIONS` when changing `tables.sql` or the declarations of registers.
"""

from __future__ import annotations

import threading
import time
from importlib import resources
from typing import Any, Final

from ...errors import OtherFormatError
from ...models.journal.journal_database import JOURNAL_TABLES
from ...settings.addresses import DatabaseUrl
from ...table_columns import POSTGRESQL
from ..accounts import ACCOUNT_TABLES
from ..home import GRID_TABLES, RUN_TABLES
from ..metadata_store import METADATA_TABLES
from ..run_register import LABELS, OWNED, SHARED, UPDATES
from ..server_jobs import SERVER_TABLES
from ..tables import TABLES_VERSION
from .advisory_locks import try_lock, unlock
from .database import Database, DatabaseError, has_table

# Statements that migrate the tables to this version.
MIGRATIONS: Final[dict[int, str]] = {
    2: "\n".join(table.create(POSTGRESQL) for table in GRID_TABLES),
    3: UPDATES.create(POSTGRESQL),
    4: "\n".join(table.create(POSTGRESQL) for table in (*ACCOUNT_TABLES, OWNED)),
    5: LABELS.create(POSTGRESQL),
    6: SHARED.create(POSTGRESQL),
}
_NO_VECTORS: Final = (
    "Ask its administrator for: CREATE EXTENSION vector SCHEMA public (and 'public' in the search path)."
)
_LOCK: Final = "schema"
_LOCK_TIMEOUT: Final = 60.0  # seconds to wait for another process that migrates the tables
_VERSIONS: Final = (
    "CREATE TABLE schema_versions (number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
)
_prepared: set[DatabaseUrl] = set()
_preparing: Final = threading.Lock()


def prepare(url: DatabaseUrl) -> None:
    """Create the tables or bring them up to date, once per process; raises `InputError` and `ConnectionLostError`."""
    with _preparing:
        if url in _prepared:
            return
        database = Database(url)
        with database.require_reachable(), database.translate_errors(), database.connect(autocommit=True) as connection:
            if _read_version(connection) != TABLES_VERSION or not _checkpoints_ready(connection):
                until = time.monotonic() + _LOCK_TIMEOUT
                while not try_lock(connection, _LOCK):  # a waiting statement would block LangGraph's CREATE INDEX
                    if time.monotonic() > until:
                        message = f"{url}: another process is changing its tables."
                        raise DatabaseError(message, help="Run the same command again.")
                    time.sleep(0.1)
                try:
                    _migrate(connection, url)
                finally:
                    unlock(connection, _LOCK)
        _prepared.add(url)


def _read_version(connection: Any) -> int:
    """The version of the tables; 0 if there are none."""
    if not has_table(connection, "schema_versions"):
        return 0
    newest = connection.execute("SELECT coalesce(max(number), 0) FROM schema_versions").fetchone()
    return int(newest[0])


def _migrate(connection: Any, url: DatabaseUrl) -> None:
    """Create all tables, or apply the migrations that are missing; the caller holds the lock."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg import Error
    from psycopg.rows import dict_row, tuple_row

    version = _read_version(connection)
    if version > TABLES_VERSION:
        raise OtherFormatError(url, version, TABLES_VERSION)
    if version == 0:
        try:
            if connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone() is None:
                connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
            connection.execute("SELECT 'vector'::regtype")
        except Error as error:
            raise DatabaseError(
                f"{url}: the extension pgvector cannot be used ({Database(url).reason(error)}).", help=_NO_VECTORS
            ) from error
        tables = (*JOURNAL_TABLES, *RUN_TABLES, *METADATA_TABLES, *SERVER_TABLES, *ACCOUNT_TABLES)
        declared = [table.create(POSTGRESQL) for table in tables]
        written = resources.files(__package__).joinpath("tables.sql").read_text(encoding="utf-8")
        steps = {TABLES_VERSION: "\n".join([f"{_VERSIONS};", *declared, written])}
    else:
        steps = {number: sql for number, sql in sorted(MIGRATIONS.items()) if number > version}
    for number, sql in steps.items():
        with connection.transaction():
            connection.execute(sql)
            connection.execute("INSERT INTO schema_versions VALUES (%s)", (number,))
    if not _checkpoints_ready(connection):
        connection.row_factory = dict_row
        try:
            PostgresSaver(connection).setup()  # creates LangGraph's tables by its own migrations
        finally:
            connection.row_factory = tuple_row
    connection.execute("CREATE INDEX IF NOT EXISTS checkpoints_by_id ON checkpoints (checkpoint_id)")


def _checkpoints_ready(connection: Any) -> bool:
    from langgraph.checkpoint.postgres import PostgresSaver

    if not has_table(connection, "checkpoint_migrations"):
        return False
    newest = connection.execute("SELECT max(v) FROM checkpoint_migrations").fetchone()
    return bool(newest[0] is not None and newest[0] >= len(PostgresSaver.MIGRATIONS) - 1)
