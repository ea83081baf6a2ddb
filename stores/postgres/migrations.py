"""Brings the tables of a database up to date: numbered SQL files, each applied once, in one transaction.

A change of the tables is a new file with the next number; a file that was released is never edited.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib import resources
from typing import Any, Final

from ...errors import InputError
from ...settings.addresses import DatabaseUrl
from .advisory_locks import free, taken
from .database import Database, DatabaseError, has_table

_NAME: Final = re.compile(r"(\d{4})_\w+\.sql")
_LOCK: Final = "schema"
_PATIENCE: Final = 60.0  # seconds for another process that brings the tables up to date
_prepared: set[DatabaseUrl] = set()
_preparing: Final = threading.Lock()


@cache
def migrations() -> dict[int, str]:
    """The SQL of each version, by its number."""
    files = [file for file in resources.files(__package__).iterdir() if _NAME.fullmatch(file.name)]
    return {int(file.name[:4]): file.read_text(encoding="utf-8") for file in sorted(files, key=lambda file: file.name)}


def prepare(url: DatabaseUrl) -> None:
    """Create the tables or bring them up to date, once per process; raises `InputError` and `ConnectionLostError`."""
    with _preparing:
        if url in _prepared:
            return
        database = Database(url)
        with database.reachable(), database.named_errors(), database.connect(autocommit=True) as connection:
            if version_of(connection) != max(migrations()) or not _checkpoints_ready(connection):
                with _locked(connection, url):
                    migrate(connection, url)
        _prepared.add(url)


def forget_prepared() -> None:
    """Look at every database again, as another process would."""
    with _preparing:
        _prepared.clear()


def version_of(connection: Any) -> int:
    """The version of the tables; 0 if there are none."""
    if not has_table(connection, "schema_versions"):
        return 0
    newest = connection.execute("SELECT coalesce(max(number), 0) FROM schema_versions").fetchone()
    return int(newest[0])


def migrate(connection: Any, url: DatabaseUrl, to: int | None = None) -> None:
    """Apply the migrations that are missing, up to version `to`; the caller holds the lock."""
    version = version_of(connection)
    if version > max(migrations()):
        raise InputError(f"{url}: was created by a newer Citeloom.", help="Update Citeloom to open it.")
    if version == 0:
        _require_vectors(connection, url)
    for number, sql in migrations().items():
        if version < number <= (to or number):
            with connection.transaction():
                connection.execute(
                    "CREATE TABLE IF NOT EXISTS schema_versions"
                    " (number integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
                )
                connection.execute(sql)
                connection.execute("INSERT INTO schema_versions VALUES (%s)", (number,))
    _prepare_checkpoints(connection)


def _require_vectors(connection: Any, url: DatabaseUrl) -> None:
    from psycopg import Error

    try:
        found = connection.execute("SELECT 1 FROM pg_extension WHERE extname = 'vector'").fetchone()
        if found is None:
            connection.execute("CREATE EXTENSION IF NOT EXISTS vector SCHEMA public")
        connection.execute("SELECT 'vector'::regtype")
    except Error as error:
        raise DatabaseError(
            f"{url}: the extension pgvector cannot be used ({Database(url).reason(error)}).",
            help="Ask its administrator for: CREATE EXTENSION vector SCHEMA public (and 'public' in the search path).",
        ) from error


def _checkpoints_ready(connection: Any) -> bool:
    from langgraph.checkpoint.postgres import PostgresSaver

    if not has_table(connection, "checkpoint_migrations"):
        return False
    newest = connection.execute("SELECT max(v) FROM checkpoint_migrations").fetchone()
    return bool(newest[0] is not None and newest[0] >= len(PostgresSaver.MIGRATIONS) - 1)


def _prepare_checkpoints(connection: Any) -> None:
    """Create LangGraph's tables by its own migrations, with an index for the newest checkpoint of all."""
    from langgraph.checkpoint.postgres import PostgresSaver
    from psycopg.rows import dict_row, tuple_row

    if not _checkpoints_ready(connection):
        connection.row_factory = dict_row
        try:
            PostgresSaver(connection).setup()
        finally:
            connection.row_factory = tuple_row
    connection.execute("CREATE INDEX IF NOT EXISTS checkpoints_by_id ON checkpoints (checkpoint_id)")


@contextmanager
def _locked(connection: Any, url: DatabaseUrl) -> Iterator[None]:
    """Exclude other processes. Polled: a waiting statement would block LangGraph's CREATE INDEX CONCURRENTLY."""
    until = time.monotonic() + _PATIENCE
    while not taken(connection, _LOCK):
        if time.monotonic() > until:
            raise DatabaseError(f"{url}: another process changes its tables.", help="Run the same command again.")
        time.sleep(0.1)
    try:
        yield
    finally:
        free(connection, _LOCK)
