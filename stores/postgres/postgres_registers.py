"""The registers of runs, conversations and written files in PostgreSQL."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any, Final, cast

from ...documents.safe_files import hash_regular_file
from ...settings.addresses import DatabaseUrl
from ...table_columns import TypedTable, dump_json, strip_nul
from ..run_records import (
    CONVERSATIONS,
    PLOT_SET,
    RUNS,
    TURNS,
    CitingRun,
    CitingTurn,
    ConversationEntry,
    KeptTurn,
    NewRun,
    RunHead,
    RunRecord,
    RunStatus,
    UnknownConversationError,
    UnknownRunError,
)
from .database import Database

_RUN: Final = (
    "thread_id, fingerprint, section, title, request, library_version, fresh, status, detail, started_at, updated_at,"
    " result"
)
_HEAD: Final = "thread_id, section, title, status, detail, library_version, fresh, started_at, updated_at"
_CONVERSATIONS: Final = """
SELECT thread_id, coalesce((SELECT asked FROM turns t WHERE t.thread_id = c.thread_id ORDER BY number LIMIT 1), '')
    AS title,
    (SELECT count(*) FROM turns t WHERE t.thread_id = c.thread_id) AS turns, begun_at, updated_at
FROM conversations c
"""
_TURN: Final = "thread_id, number, asked, question, answered, answered_at, record"


class PostgresRuns:
    """Runs in a table; blocking and thread-safe."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._database = Database(url)

    def _runs(self, query: str, values: object = ()) -> list[RunRecord]:
        rows = _records(self._database, RUNS, f"SELECT {_RUN} FROM runs {query}", values)
        return [RunRecord(**row) for row in rows]

    def begin(self, run: NewRun) -> RunRecord:
        """Register a run, or return the existing one with this id."""
        now = time.time()
        row = (
            run.thread_id,
            run.fingerprint,
            run.section,
            run.title,
            dump_json(run.request),
            run.library_version,
            run.fresh,
            now,
            now,
        )
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO runs (thread_id, fingerprint, section, title, request, library_version, fresh, status,"
                " detail, started_at, updated_at) VALUES (%s, %s, %s, %s, %s, %s, %s, 'running', '', %s, %s)"
                " ON CONFLICT (thread_id) DO NOTHING",
                row,
            )
        return self.get(run.thread_id)

    def mark(
        self, thread_id: str, status: RunStatus, *, detail: str = "", result: dict[str, Any] | None = None
    ) -> None:
        """Update the status of a run; None leaves the result unchanged."""
        with self._database.transaction() as connection:
            connection.execute(
                "UPDATE runs SET status = %s, detail = %s, updated_at = %s, result = coalesce(%s, result)"
                " WHERE thread_id = %s",
                (
                    status,
                    detail,
                    time.time(),
                    None if result is None else dump_json(result),
                    thread_id,
                ),
            )

    def get(self, thread_id: str) -> RunRecord:
        """The run with this id or unique id prefix; raises `UnknownRunError`."""
        wanted = thread_id
        runs = self._runs("WHERE starts_with(thread_id, %s) ORDER BY thread_id = %s DESC LIMIT 2", (wanted, wanted))
        if not runs or not thread_id:
            raise UnknownRunError(f"There is no run {thread_id!r}.")
        if len(runs) == 2 and runs[0].thread_id != thread_id:
            raise UnknownRunError(f"More than one run begins with {thread_id!r}.")
        return runs[0]

    def latest(self, fingerprint: str) -> RunRecord | None:
        """The most recently started run with this fingerprint."""
        return next(iter(self._runs("WHERE fingerprint = %s ORDER BY number DESC LIMIT 1", (fingerprint,))), None)

    def latest_about(self, question: str) -> RunRecord | None:
        """The most recently started run of a question, whatever its library and settings."""
        runs = self._runs("WHERE strpos(request, %s) > 0 ORDER BY number DESC", (dump_json(question),))
        return next((run for run in runs if run.request.get("question") == strip_nul(question)), None)

    def heads(self, limit: int | None = None, offset: int = 0) -> list[RunHead]:
        """The runs without their requests and results, most recent first; all of them without a limit."""
        query = f"SELECT {_HEAD} FROM runs ORDER BY updated_at DESC LIMIT %s OFFSET %s"
        return [RunHead(**row) for row in _records(self._database, RUNS, query, (limit, offset))]

    def count(self) -> int:
        """The number of runs."""
        return int(_rows(self._database, "SELECT count(*) FROM runs")[0][0])

    def all(self) -> list[RunRecord]:
        """All runs, most recent first."""
        return self._runs("ORDER BY updated_at DESC")

    def citing(self, key: str) -> list[CitingRun]:
        """The finished runs whose text cites a paper, most recent first."""
        return [
            CitingRun(run.thread_id, run.section, run.title, run.updated_at)
            for run in self.all()
            if run.result is not None and _cites(run.result, key)
        ]

    def plot_sets(self) -> set[str]:
        """The sets of uploaded plots that runs name, from the index of the runs that have any."""
        rows = _rows(
            self._database,
            "SELECT DISTINCT (regexp_matches(request, %s, 'g'))[1] FROM runs WHERE strpos(request, 'plots-') > 0",
            (f"({PLOT_SET.pattern})",),
        )
        return {name for (name,) in rows}

    def delete(self, thread_id: str) -> None:
        """Delete a run; its checkpoints are left to the caller."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM runs WHERE thread_id = %s", (thread_id,))


def _rows(database: Database, query: str, values: object = ()) -> list[tuple[Any, ...]]:
    with database.transaction() as connection:
        return list(connection.execute(cast(Any, query), cast(Any, values)).fetchall())


def _records(database: Database, table: TypedTable, query: str, values: object = ()) -> list[dict[str, Any]]:
    with database.transaction() as connection:
        return table.records(connection.execute(cast(Any, query), cast(Any, values)))


class PostgresConversations:
    """Conversations in two tables; blocking and thread-safe."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._database = Database(url)

    def _entries(self, query: str, values: object = ()) -> list[ConversationEntry]:
        rows = _records(self._database, CONVERSATIONS, f"{_CONVERSATIONS} {query}", values)
        return [ConversationEntry(**row) for row in rows]

    def _turns(self, query: str, values: object = ()) -> list[dict[str, Any]]:
        return _records(self._database, TURNS, f"SELECT {_TURN} FROM turns {query}", values)

    def begin(self, thread_id: str) -> None:
        """Register a conversation; does nothing if it exists."""
        now = time.time()
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO conversations VALUES (%s, %s, %s) ON CONFLICT (thread_id) DO NOTHING",
                (thread_id, now, now),
            )

    def keep(self, thread_id: str, number: int, asked: str, question: str, record: dict[str, Any]) -> None:
        """Store a finished turn; idempotent."""
        now = time.time()
        row = (thread_id, number, asked, question, bool(record["citations"]), now)
        with self._database.transaction() as connection:
            connection.execute(
                "INSERT INTO turns VALUES (%s, %s, %s, %s, %s, %s, %s) ON CONFLICT (thread_id, number) DO UPDATE SET"
                " asked = excluded.asked, question = excluded.question, answered = excluded.answered,"
                " answered_at = excluded.answered_at, record = excluded.record",
                (*row, dump_json(record)),
            )
            connection.execute("UPDATE conversations SET updated_at = %s WHERE thread_id = %s", (now, thread_id))

    def get(self, thread_id: str) -> ConversationEntry:
        """The conversation with this id or unique id prefix; raises `UnknownConversationError`."""
        wanted = thread_id
        found = self._entries("WHERE starts_with(thread_id, %s) ORDER BY thread_id = %s DESC LIMIT 2", (wanted, wanted))
        if not found or not thread_id:
            raise UnknownConversationError(f"There is no conversation {thread_id!r}.")
        if len(found) == 2 and found[0].thread_id != thread_id:
            raise UnknownConversationError(f"More than one conversation begins with {thread_id!r}.")
        return found[0]

    def all(self) -> list[ConversationEntry]:
        """All conversations, most recent first."""
        return self._entries("ORDER BY updated_at DESC")

    def turns(self, thread_id: str) -> list[KeptTurn]:
        """The finished turns of a conversation, in order."""
        return [_turn(row) for row in self._turns("WHERE thread_id = %s ORDER BY number", (thread_id,))]

    def last_turn(self, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
        """The latest finished turn, or the latest that was `answered`."""
        only = " AND answered" if answered else ""
        rows = self._turns(f"WHERE thread_id = %s{only} ORDER BY number DESC LIMIT 1", (thread_id,))
        return _turn(rows[0]) if rows else None

    def citing(self, key: str) -> list[CitingTurn]:
        """The turns whose answers cite a paper, most recent first."""
        return [
            CitingTurn(row["thread_id"], row["number"], row["asked"], row["answered_at"])
            for row in self._turns("ORDER BY answered_at DESC")
            if _cites(row["record"], key)
        ]

    def delete(self, thread_id: str) -> None:
        """Delete a conversation; its checkpoints are left to the caller."""
        with self._database.transaction() as connection:
            connection.execute("DELETE FROM turns WHERE thread_id = %s", (thread_id,))
            connection.execute("DELETE FROM conversations WHERE thread_id = %s", (thread_id,))


def _cites(record: dict[str, Any], key: str) -> bool:
    return any(citation["key"] == key for citation in record.get("citations", ()))


def _turn(row: dict[str, Any]) -> KeptTurn:
    return KeptTurn(**{name: value for name, value in row.items() if name != "thread_id"})


class PostgresWrittenFiles:
    """Hashes in a table: files are recognized on every computer that uses the database."""

    def __init__(self, url: DatabaseUrl) -> None:
        self._database = Database(url)

    def note(self, contents: Collection[bytes]) -> None:
        """Store the hashes of contents that are about to be written."""
        now = time.time()
        rows = [(hashlib.sha256(content).hexdigest(), now) for content in contents]
        with self._database.transaction() as connection:
            connection.cursor().executemany("INSERT INTO written VALUES (%s, %s) ON CONFLICT (hash) DO NOTHING", rows)

    def has(self, file: Path) -> bool:
        """Whether a file holds exactly what Citeloom wrote; false for a link or an unreadable file."""
        if (found := hash_regular_file(file)) is None:
            return False
        with self._database.transaction() as connection:
            return connection.execute("SELECT 1 FROM written WHERE hash = %s", (found,)).fetchone() is not None
