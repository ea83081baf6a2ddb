"""The tables that a home holds besides its library, by which they are copied from one backend to another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol


@dataclass(frozen=True, slots=True)
class HomeTable:
    """A table with its columns; `flags` are those that are true or false, `numbered` is a key that counts its rows."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]
    flags: frozenset[str] = frozenset()
    numbered: bool = False

    def key_of(self, row: Sequence[Any]) -> tuple[Any, ...]:
        """The key of a row."""
        return tuple(row[self.columns.index(column)] for column in self.key)

    def insertion(self, name: str, columns: Sequence[str], overriding: str = "") -> str:
        """The statement that inserts a row, or replaces the one with its key, in a table of this name and columns."""
        others = [column for column in columns if column not in self.key]
        changes = ", ".join(f"{column} = excluded.{column}" for column in others)
        return (
            f"INSERT INTO {name} ({', '.join(columns)}) {overriding} VALUES ({', '.join('?' * len(columns))})"
            f" ON CONFLICT ({', '.join(self.key)}) DO {f'UPDATE SET {changes}' if others else 'NOTHING'}"
        )


class HomeRecords(Protocol):
    """The rows of these tables; blocking."""

    def rows(self, table: HomeTable) -> Iterator[tuple[Any, ...]]:
        """All rows of a table, runs in the order in which they began."""
        ...

    def put(self, table: HomeTable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""
        ...


def _table(name: str, columns: str, key: str, flags: str = "", *, numbered: bool = False) -> HomeTable:
    return HomeTable(name, tuple(columns.split()), tuple(key.split()), frozenset(flags.split()), numbered)


# In an order in which each row finds those that it refers to.
HOME_TABLES: Final = (
    _table(
        "answers",
        "id key kind endpoint model made_at rejected input_tokens output_tokens payload",
        "id",
        numbered=True,
    ),
    _table("uses", "id run key answer paid used_at", "id", numbered=True),
    _table(
        "spending",
        "run kind endpoint model paid reused input_tokens output_tokens reserved_calls reserved_input reserved_output",
        "run kind endpoint model",
    ),
    _table("beginnings", "run after", "run"),
    _table("contexts", "run endpoint model size", "run endpoint model"),
    _table(
        "runs",
        "thread_id fingerprint section title request library_version fresh status detail started_at updated_at result",
        "thread_id",
        "fresh",
    ),
    _table("edits", "thread_id position text checked updated_at", "thread_id position"),
    _table("conversations", "thread_id begun_at updated_at", "thread_id"),
    _table(
        "turns", "thread_id number asked question answered answered_at record", "thread_id number", flags="answered"
    ),
    _table("written", "hash noted_at", "hash"),
    _table("metadata_answers", "service request status body answered_at", "service request"),
    _table("metadata_identities", "title key year doi similarity service decided_at", "title key"),
    _table("metadata_statements", "doi field service said_at value", "doi field service said_at"),
    _table("metadata_notices", "doi kind source notice date reason", "doi kind source notice date"),
    _table("metadata_versions", "doi kind other source", "doi kind other source"),
    _table("metadata_files", "name stamp", "name"),
    _table(
        "checkpoint_writes",
        "thread_id checkpoint_ns checkpoint_id task_id task_path idx channel type blob",
        "thread_id checkpoint_ns checkpoint_id task_id idx",
    ),
)
