"""Lets registers run on SQLite and PostgreSQL, using the SQL that both understand.

A register declares its tables as `TypedTable`, from which both databases create them; `Tables` covers the few
differences between the databases.
"""

from __future__ import annotations

import hashlib
import sqlite3
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from contextvars import ContextVar
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, TypeVar, get_type_hints

from ..errors import InputError, OtherFormatError
from ..sqlite import REGISTER_REMEDY, TextConnection, naming_damage, require_plain_schema, write_ahead
from ..table_columns import SQLITE, Column, TableConnection as TableConnection, TypedTable

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

TABLES_VERSION: Final = 6  # of a home's tables; increasing it needs a migration
_LONGEST: Final = 200  # characters of a key; PostgreSQL indexes at most some 2,700 bytes
ALL_ROWS: Final = 2**62  # a limit that both databases accept
Record = TypeVar("Record", bound="DataclassInstance")
Item = TypeVar("Item")
# The account for which a server works; "" where there are no accounts, which gives access to everything.
acting: Final[ContextVar[str]] = ContextVar("acting", default="")
PERSON: Final = "citeloom"  # permission of the LangGraph users who have an account here
_PRIVATE: Final = frozenset({"runs", "conversations", "turns", "edits"})  # tables whose rows belong to a person
_OWN: Final = "(SELECT * FROM {0} WHERE thread_id IN (SELECT thread_id FROM owned WHERE person = ?)) AS {0}"
_NOTE_OWNER: Final = "INSERT INTO owned (thread_id, person) VALUES (?, ?) ON CONFLICT (thread_id) DO NOTHING"


class Tables(Protocol):
    """The tables of a register; blocking and thread-safe."""

    @property
    def now(self) -> str:
        """SQL for the database's time in seconds."""

    @property
    def skip_locked(self) -> str:
        """SQL suffix that locks a query's rows for update, skipping rows locked by others."""

    def exist(self) -> bool:
        """Whether anything can be stored in them; false before the first write to a file."""

    def transaction(self) -> AbstractContextManager[TableConnection]:
        """A connection whose changes are committed at the end of the block, or rolled back on an error.

        Raises `DamagedFileError` if the file is unreadable, `ConnectionLostError` if the server is gone.
        """


class FileTables:
    """Tables in the file at `path`, created with the first entry; opens a connection per transaction.

    `remedy` says what to do when the file is damaged.
    """

    now: Final = "(julianday('now') - 2440587.5) * 86400.0"
    skip_locked: Final = ""

    def __init__(self, path: Path, tables: Sequence[TypedTable], remedy: str = REGISTER_REMEDY) -> None:
        self._path = path
        self._tables = tables
        self._remedy = remedy
        self._opening = threading.Lock()
        self._made = not tables

    def exist(self) -> bool:
        return self._path.exists()  # a folder in its place is damage, not absence

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with (
            naming_damage(self._path, self._remedy),
            closing(sqlite3.connect(self._path, timeout=30, factory=TextConnection)) as connection,
        ):
            write_ahead(connection)
            connection.execute("PRAGMA synchronous=FULL")
            require_plain_schema(connection, self._path, self._remedy)
            with self._opening:
                if not self._made:
                    version = connection.execute("PRAGMA user_version").fetchone()[0]
                    if version > TABLES_VERSION:
                        raise OtherFormatError(self._path, version, TABLES_VERSION)
                    statements = "".join(table.create(SQLITE) for table in self._tables)
                    connection.executescript(f"{statements}PRAGMA user_version = {TABLES_VERSION};")
                    self._made = True
            with connection:
                yield connection


def columns_of(record: type) -> dict[str, Column]:
    """The columns that the fields of a dataclass are annotated with."""
    fields_ = get_type_hints(record, include_extras=True)
    return {
        name: next(mark for mark in kind.__metadata__ if isinstance(mark, Column)) for name, kind in fields_.items()
    }


class Register:
    """The base class of registers, which read and write some tables; blocking and thread-safe."""

    _computed: ClassVar[Mapping[str, str]] = {}  # SQL of columns that are not stored, by name

    def __init__(self, tables: Tables) -> None:
        self._tables = tables

    def _read(self, table: TypedTable, sql: str, *values: Any) -> list[dict[str, Any]]:
        """The decoded rows of a query, by column; none while the tables do not exist."""
        if not self._tables.exist():
            return []
        with self._tables.transaction() as connection:
            return table.records(connection.execute(sql, values))

    def _select(
        self,
        kind: type[Record],
        table: TypedTable,
        condition: str = "",
        *values: Any,
        rows: tuple[str, tuple[str, ...]] | None = None,
    ) -> list[Record]:
        """Return the rows of a table as dataclasses; `condition` is the SQL after its name.

        `rows` replaces the source, with its parameters, that limits the rows to those of the acting person.
        """
        names = [item.name for item in fields(kind)]
        columns = [
            f"{self._computed[name]} AS {name}" if name in self._computed else name
            for name in dict.fromkeys((*table.key, *names))  # the key, so that errors name the row
        ]
        source, person = rows or visible_rows(table)
        found = self._read(table, f"SELECT {', '.join(columns)} FROM {source} {condition}", *person, *values)
        return [kind(**{name: row[name] for name in names}) for row in found]

    def _write(self, sql: str, *values: Any) -> int:
        """Execute a statement in its own transaction; returns the number of rows that it changed."""
        with self._tables.transaction() as connection:
            return int(connection.execute(sql, values).rowcount)

    def _find(self, kind: type[Record], table: TypedTable, prefix: str, what: str, unknown: type[InputError]) -> Record:
        """The row whose key is or uniquely begins with `prefix`; raises `unknown` if there is no such row."""
        key = table.key[0]
        condition = f"WHERE substr({key}, 1, ?) = ? ORDER BY {key} = ? DESC LIMIT 2"
        found = self._select(kind, table, condition, len(prefix), prefix, prefix) if prefix else []
        if not found or (len(found) > 1 and getattr(found[0], key) != prefix):
            several = f"More than one {what} begins with {prefix!r}."
            raise unknown(several if found else f"There is no {what} {prefix!r}.")
        return found[0]


def visible_rows(table: TypedTable) -> tuple[str, tuple[str, ...]]:
    """SQL for the rows of a table that the acting person may see, with its values."""
    person = acting.get() if table.name in _PRIVATE else ""
    return (_OWN.format(table.name), (person,)) if person else (table.name, ())


def note_owner(connection: TableConnection, thread_id: str) -> None:
    """Store the acting person, if any, as the owner of a new run or conversation."""
    if person := acting.get():
        connection.execute(_NOTE_OWNER, (thread_id, person))


def own_id(name: str) -> str:
    """The id under which the acting person pays for something; two people with accounts never share an id."""
    person = acting.get()
    return f"{name}-{hashlib.sha256(person.encode()).hexdigest()[:12]}" if person else name


def select_all(table: TypedTable) -> str:
    """The query for all rows of a table, in order of insertion if they are numbered."""
    order = f" ORDER BY {table.number}" if table.number else ""
    return f"SELECT {', '.join(table.stored)} FROM {table.name}{order}"


def split_parts(values: Sequence[Item], size: int) -> Iterator[list[Item]]:
    """Split values into lists of at most this size, since databases limit the parameters of a statement."""
    return (list(values[start : start + size]) for start in range(0, len(values), size))


def index_key(text: str) -> str:
    """The text as indexed; long texts are cut and end in a hash."""
    if len(text) <= _LONGEST:
        return text
    return f"{text[: _LONGEST - 64]}{hashlib.sha256(text.encode('utf-8', 'replace')).hexdigest()}"
