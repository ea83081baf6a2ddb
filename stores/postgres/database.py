"""Connections to the database of a library, and its errors without secrets."""

from __future__ import annotations

import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final
from weakref import WeakKeyDictionary

from ...errors import ConfigurationError, InputError, PausedError, require_packages
from ...program import install_hint
from ...settings.addresses import DatabaseUrl
from ...sqlite import DamagedFileError
from ...table_columns import TypedTable, WrongValueError, strip_nul

if TYPE_CHECKING:
    from psycopg import AsyncConnection, Connection
    from psycopg_pool import ConnectionPool


CONNECTIONS: Final = 6  # for a library's readers and its writer
_WAIT: Final = 30.0  # seconds for one of them
_IDLE: Final = 1.0  # seconds without use, after which a connection is checked
# Within a minute (default: two hours), the server notices that a computer vanished or stalled in a transaction, and
# frees its locks. Ignored on Unix sockets.
_SESSION: Final = {
    "tcp_keepalives_idle": "20",
    "tcp_keepalives_interval": "10",
    "tcp_keepalives_count": "3",
    "idle_in_transaction_session_timeout": "60000",
}
_RESTORE: Final = "Restore a backup of the database."
_EVICTED: Final = ": this server did not answer for too long, and another has its work."
_ALIVE: Final = "SELECT 1 FROM servers WHERE id = %s AND fenced_at IS NULL"


class DatabaseError(InputError):
    """The database cannot be used in its current state or configuration."""

    default_help = "Check the address in CITELOOM_HOME, and the rights of its user."


class ConnectionLostError(PausedError):
    """The database cannot be reached, or the connection to it was lost; what was committed is kept."""

    default_help = "Check that the database runs and can be reached, then run the same command again."


class LeaseLostError(ConnectionLostError):
    """This server was evicted and its jobs reassigned; the database rejects it."""

    default_help = "Another server resumes its work; nothing has to be done."


class Database:
    """A PostgreSQL database, whose first schema in the search path holds a library.

    With a number of `connections`, threads share a pool, which `close` closes; otherwise each use opens a connection.
    """

    def __init__(self, url: DatabaseUrl, connections: int = 0, *, vectors: bool = True) -> None:
        self.url = url
        self._check = _CheckIdle()
        self._pool: ConnectionPool[Any] | None = None
        if connections:
            require_extra()
            from pgvector.psycopg import register_vector
            from psycopg_pool import ConnectionPool

            def configure(connection: Connection[Any]) -> None:
                self._require_lease(connection)
                if vectors:
                    register_vector(connection)

            parameters = {**self._parameters(), "autocommit": True}
            pool = partial(ConnectionPool, kwargs=parameters, configure=configure, check=self._check, name="library")
            self._pool = pool(min_size=1, max_size=connections, timeout=_WAIT, open=True)

    def connect(self, *, autocommit: bool = False) -> Connection[tuple[Any, ...]]:
        """A new connection; raises `ConnectionLostError`, and `InputError` for an address that cannot be used."""
        require_extra()
        from psycopg import Connection

        with self.translate_errors():
            connection = Connection.connect(autocommit=autocommit, **self._parameters())
        self._require_lease(connection)
        return connection

    async def connect_async(self, **options: Any) -> AsyncConnection[Any]:
        """Like `connect`, for an event loop; every statement is its own transaction."""
        require_extra()
        from psycopg import AsyncConnection

        with self.translate_errors():
            connection = await AsyncConnection.connect(autocommit=True, **options, **self._parameters())
            if self.url.server:
                cursor = await connection.execute(_ALIVE, (self.url.server,))
                if await cursor.fetchone() is None:
                    await connection.close()
                    raise LeaseLostError(f"{self.url}{_EVICTED}")
        return connection

    @contextmanager
    def connection(self) -> Iterator[Any]:
        """An autocommit connection for the block; raises our errors."""
        with self.translate_errors():
            connection = self.connect(autocommit=True) if self._pool is None else self._pool.getconn()
            try:
                yield connection
            finally:
                if connection.closed:
                    self._check.forget()
                if self._pool is None:
                    connection.close()
                else:
                    self._pool.putconn(connection)  # which rolls back what was not committed

    @contextmanager
    def transaction(self) -> Iterator[Any]:
        """A connection for one transaction, committed at the end of the block."""
        with self.connection() as connection, connection.transaction():
            yield connection

    def close(self) -> None:
        if self._pool is not None:
            self._pool.close()

    def _require_lease(self, connection: Connection[Any]) -> None:
        """Close the connection and raise `LeaseLostError` if its server was evicted."""
        if not self.url.server:
            return
        with self.translate_errors():
            found = connection.execute(_ALIVE, (self.url.server,)).fetchone()
        if found is None:
            connection.close()
            raise LeaseLostError(f"{self.url}{_EVICTED}")

    @contextmanager
    def require_reachable(self) -> Iterator[None]:
        """Raise `DatabaseError` if the database cannot be reached; used before there is any work that could pause."""
        try:
            yield
        except ConnectionLostError as error:
            raise DatabaseError(error.message, help=ConnectionLostError.default_help) from error

    @contextmanager
    def translate_errors(self) -> Iterator[None]:
        """Translate the driver's errors into ours, naming the database's address without its secrets."""
        require_extra()
        from psycopg import Error, InterfaceError, OperationalError

        try:
            yield
        except (OperationalError, InterfaceError) as error:
            raise ConnectionLostError(f"{self.url}: {self.reason(error)}.") from None
        except Error as error:
            raise DatabaseError(f"{self.url}: {self.reason(error)}.") from error
        except WrongValueError as error:
            raise DamagedFileError(f"{self.url}: {error}", help=_RESTORE) from None

    def reason(self, error: Exception) -> str:
        """The first line of an error, without the password."""
        from psycopg.conninfo import conninfo_to_dict

        lines = str(error).strip().splitlines() or [type(error).__name__]
        password = str(conninfo_to_dict(self.url.secret).get("password") or "")
        shown = " ".join(lines[0].split())[:200].rstrip(".")
        return shown.replace(password, "***") if password else shown

    def _parameters(self) -> dict[str, Any]:
        from psycopg import ProgrammingError
        from psycopg.conninfo import conninfo_to_dict

        try:
            given: dict[str, Any] = dict(conninfo_to_dict(self.url.secret))
        except ProgrammingError:  # its message quotes the address
            message = f"{self.url} is not a valid address of a database."
            raise ConfigurationError(message, help="Write postgresql://USER@HOST:PORT/DATABASE.") from None
        session = " ".join(f"-c {name}={value}" for name, value in _SESSION.items())
        return {
            "connect_timeout": 10,
            "keepalives_idle": 20,
            "keepalives_interval": 10,
            "keepalives_count": 3,
            **given,
            "context": _text_context(),
            "application_name": application_name(self.url.server),
            "client_encoding": "UTF8",
            "options": f"{given.get('options') or ''} {session}".strip(),
        }


class _CheckIdle:
    """Checks only idle pooled connections, since a check costs a round trip."""

    def __init__(self) -> None:
        self._checked: WeakKeyDictionary[Connection[Any], float] = WeakKeyDictionary()

    def __call__(self, connection: Connection[Any]) -> None:
        from psycopg_pool import ConnectionPool

        now = time.monotonic()
        if now - self._checked.get(connection, -_IDLE) >= _IDLE:
            ConnectionPool.check_connection(connection)
        self._checked[connection] = now

    def forget(self) -> None:
        """Check every connection before its next use, since others have probably broken too."""
        self._checked = WeakKeyDictionary()


def has_table(connection: Any, name: str) -> bool:
    """Whether a table exists in the library's own schema, rather than elsewhere on the search path."""
    found = connection.execute("SELECT to_regclass(quote_ident(current_schema()) || '.' || %s)", (name,)).fetchone()
    return found[0] is not None


def application_name(server: str = "") -> str:
    """The name of this process's connections: its id and host, plus #ID if it is a server."""
    return f"citeloom {os.getpid()} {socket.gethostname()}"[:50] + (f" #{server}" if server else "")


@cache
def require_extra() -> None:
    """Raise `ConfigurationError` if the extra `postgres` is not installed."""
    names = ("psycopg", "psycopg_pool", "pgvector.psycopg", "langgraph.checkpoint.postgres")
    require_packages("A library in PostgreSQL needs", *names, help=f"{install_hint('postgres')}.")


@cache
def _text_context() -> Any:
    """The adaptation context of connections, which makes text parameters storable."""
    import psycopg
    from psycopg.adapt import AdaptersMap, Dumper
    from psycopg.types import string

    def stripping_nul(base: type[Dumper]) -> type[Dumper]:
        def dump(self: Dumper, text: str) -> Any:
            return base.dump(self, strip_nul(text))

        return type(base.__name__, (base,), {"dump": dump})

    adapters = AdaptersMap(psycopg.adapters)
    for kind in ("StrBinaryDumperVarchar", "StrBinaryDumper", "StrDumperVarchar", "StrDumper", "StrDumperUnknown"):
        adapters.register_dumper(str, stripping_nul(getattr(string, kind)))
    return SimpleNamespace(adapters=adapters, connection=None)


class LibraryTables:
    """Tables of a library; thread-safe."""

    _binary: ClassVar[bool] = False  # how rows are sent

    def __init__(self, database: Database) -> None:
        self.database = database

    def rows(self, query: str, values: object = ()) -> list[tuple[Any, ...]]:
        with self.database.connection() as connection:
            return list(connection.execute(query, values, binary=self._binary).fetchall())

    def _read(self, table: TypedTable, query: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
        with self.database.connection() as connection:
            return table.read(connection.execute(query.replace("?", "%s"), values))


def increment_revision(connection: Any) -> None:
    """Increment the library's revision, which blocks other writers until the commit."""
    connection.execute("UPDATE revision SET number = number + 1")


class SeenRevision:
    """The newest revision that a search of this process has seen; thread-safe.

    A search reads it in its own statement, which saves a round trip.
    """

    def __init__(self) -> None:
        self.number = 0
        self._lock = threading.Lock()

    def update(self, number: int) -> None:
        with self._lock:
            self.number = max(self.number, number)


class SharedSql:
    """A connection whose statements use `?` for parameters, as in SQLite."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, parameters: Sequence[Any] = (), /) -> Any:
        return self._connection.execute(sql.replace("?", "%s"), parameters)

    def executemany(self, sql: str, rows: Iterable[Sequence[Any]], /) -> Any:
        cursor = self._connection.cursor()
        cursor.executemany(sql.replace("?", "%s"), rows)
        return cursor


class DatabaseTables:
    """Tables created together with the library."""

    now: Final = "extract(epoch FROM clock_timestamp())::float8"
    skip_locked: Final = " FOR UPDATE SKIP LOCKED"

    def __init__(self, database: Database) -> None:
        self._database = database

    def exist(self) -> bool:
        return True

    @contextmanager
    def transaction(self) -> Iterator[SharedSql]:
        with self._database.transaction() as connection:
            yield SharedSql(connection)
