"""The jobs of a library's servers, their events and idempotency keys.

A job belongs to the server named in its row, as long as that server has a row in `servers`. A folder has one server,
which replaces that row when it starts and so orphans the jobs of its predecessor. Events are stored only if servers
share jobs, in batches, and deleted a while after their job has ended.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal, get_args

from ..table_columns import (
    FLAG,
    MOMENT,
    NUMBER,
    OBJECT,
    TEXT,
    TypedTable,
    choice,
    dump_json,
    integer,
    json_column,
    optional,
)
from .tables import Register, TableConnection, Tables

JobKind = Literal["run", "turn", "ingest", "table"]
JobState = Literal["waiting", "working", "finished", "paused", "failed"]
ACTIVE: frozenset[JobState] = frozenset({"waiting", "working"})
JOB_KIND: Final = choice(*get_args(JobKind))
JOB_STATE: Final = choice(*get_args(JobState))


@dataclass(frozen=True, slots=True)
class JobOrder:
    """A job that was started; `request` holds everything needed to restart it."""

    id: str
    kind: JobKind
    request: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JobEntry:
    """A registered job; `epoch` is the epoch of its events."""

    order: JobOrder
    epoch: str
    state: JobState
    events: int = 0

    @property
    def active(self) -> bool:
        """Whether the job is queued or running."""
        return self.state in ACTIVE


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Consecutive events of a job, each as name and JSON data; the first has the number `first`."""

    job_id: str
    epoch: str
    first: int
    events: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class EventPage:
    """A job's state and the events that a reader has not seen; all events if the epoch has changed."""

    epoch: str
    state: JobState
    events: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class KeyUse:
    """The request for which an idempotency key was first used, and the order of its job once started."""

    request: str
    order: JobOrder | None


SERVERS: Final = TypedTable("servers", ("id",), {"id": TEXT})
# `epoch` distinguishes the events of successive attempts; `moves` counts servers that died.
JOBS: Final = TypedTable(
    "server_jobs",
    ("id",),
    {"id": TEXT, "kind": JOB_KIND, "request": OBJECT, "server": TEXT, "epoch": TEXT, "state": JOB_STATE}
    | {"started_at": NUMBER, "ended_at": optional(NUMBER), "stop_requested": FLAG, "moves": integer()}
    | {"events": replace(integer(), source="server_events.size")},
    indexes={"server_jobs_unfinished": "(server) WHERE ended_at IS NULL"},
)
# Events in batches: a JSON array of names and data, the first of which has the number `first`.
EVENTS: Final = TypedTable(
    "server_events",
    ("job", "epoch", "first"),
    {"job": TEXT, "epoch": TEXT, "first": integer(), "size": integer()}
    | {"events": json_column("names and data", list[tuple[str, str]])},
)
KEYS: Final = TypedTable(
    "request_keys",
    ("key",),
    {"key": TEXT, "request": TEXT, "server": TEXT, "job": optional(json_column("an order", JobOrder))}
    | {"claimed_at": NUMBER},
)
_COMMIT_KEY: Final = "UPDATE request_keys SET job = ? WHERE key = ?"
KEPT: Final = 15 * 60  # seconds after the end of a job
_KEY_AGE: Final = 86_400  # seconds
_MOST_MOVES: Final = 5  # servers that may die during a job, since the job itself may kill them
_DELETE_STRAY_EVENTS: Final = "DELETE FROM server_events WHERE job NOT IN (SELECT id FROM server_jobs)"
_GONE: Final = "NOT EXISTS (SELECT 1 FROM servers WHERE servers.id = server_jobs.server)"


class ServerJobs(Register):
    """The register of jobs as one `server` uses it; blocking and thread-safe.

    `notify` tells other servers about a job; if it is given, jobs are `shared`. Without tables nothing is stored: jobs
    end with their process, and are resumed by repeating the request.
    """

    shared = False

    def __init__(
        self,
        tables: Tables | None = None,
        server: str = "",
        notify: Callable[[TableConnection, str], None] | None = None,
    ) -> None:
        if tables is not None:
            super().__init__(tables)
        self._kept = tables is not None
        self._server = server
        self._notify_others = notify
        self.shared = notify is not None

    def begin(self, order: JobOrder, epoch: str, key: str = "") -> JobEntry | None:
        """Register a job for this server, with the epoch of its events; returns None.

        Also links an idempotency `key` claimed by this server to the job. If another live server is working on the job
        with this id, changes nothing and returns its entry.
        """
        if not self._kept:
            return None
        now = self._tables.now
        begin = (
            "INSERT INTO server_jobs (id, kind, request, server, epoch, state, started_at, stop_requested, moves)"
            f" VALUES (?, ?, ?, ?, ?, 'working', {now}, 0, 0)"
            " ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, request = excluded.request, epoch = excluded.epoch,"
            " moves = CASE WHEN server_jobs.ended_at IS NULL THEN server_jobs.moves ELSE 0 END,"
            " stop_requested = CASE WHEN server_jobs.ended_at IS NULL THEN server_jobs.stop_requested ELSE 0 END,"
            f" server = excluded.server, state = 'working', started_at = {now}, ended_at = NULL"
            f" WHERE server_jobs.ended_at IS NOT NULL OR server_jobs.server = excluded.server OR {_GONE} RETURNING 1"
        )
        row = (order.id, order.kind, dump_json(order.request), self._server, epoch)
        with self._tables.transaction() as connection:
            if connection.execute(begin, row).fetchone() is not None:
                connection.execute("DELETE FROM server_events WHERE job = ? AND epoch <> ?", (order.id, epoch))
                if key:
                    connection.execute(_COMMIT_KEY, (dump_json(asdict(order)), key))
                self._notify(connection, [order.id])
                return None
        found = self._entries("WHERE id = ?", order.id)
        return found[0] if found else self.begin(order, epoch, key)  # it was deleted in between

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Store events of this server's jobs for other servers; drops events of jobs that this server has lost."""
        if not self.shared:
            return
        with self._tables.transaction() as connection:
            for batch in batches:
                self._store(connection, batch)
            self._notify(connection, [batch.job_id for batch in batches])

    def end(self, job_id: str, state: JobState, last: EventBatch) -> None:
        """Register the end of one of this server's jobs and store its remaining events."""
        if not self._kept:
            return
        own = "id = ? AND server = ? AND ended_at IS NULL"
        with self._tables.transaction() as connection:
            if not self.shared:
                connection.execute(f"DELETE FROM server_jobs WHERE {own}", (job_id, self._server))
                return
            if last.events:
                self._store(connection, last)
            ended = f"state = ?, ended_at = {self._tables.now}, stop_requested = 0"
            connection.execute(f"UPDATE server_jobs SET {ended} WHERE {own}", (state, job_id, self._server))
            self._notify(connection, [job_id])

    def entry(self, job_id: str) -> JobEntry | None:
        """The job if it is active on another server or ended there recently."""
        return next(iter(self._entries("WHERE id = ?", job_id) if self.shared else ()), None)

    def entries(self) -> list[JobEntry]:
        """All jobs that are active on other servers or ended there recently."""
        return self._entries("ORDER BY started_at") if self.shared else []

    def _entries(self, condition: str, *values: str) -> list[JobEntry]:
        sizes = "SELECT sum(size) FROM server_events WHERE job = id AND server_events.epoch = server_jobs.epoch"
        size = f"CAST(coalesce(({sizes}), 0) AS bigint) AS events"
        rows = self._read(JOBS, f"SELECT id, kind, request, epoch, state, {size} FROM server_jobs {condition}", *values)
        return [JobEntry(_order(row), row["epoch"], row["state"], row["events"]) for row in rows]

    def events(self, job_id: str, epoch: str, seen: int) -> EventPage | None:
        """The events of a job after the first `seen` of this epoch; None once they are deleted."""
        if not self.shared:
            return None
        with self._tables.transaction() as connection:
            query = "SELECT id, epoch, state FROM server_jobs WHERE id = ?"
            jobs = JOBS.records(connection.execute(query, (job_id,)))
            if not jobs:
                return None
            current = jobs[0]["epoch"]
            query = "SELECT * FROM server_events WHERE job = ? AND epoch = ? AND first >= ? ORDER BY first"
            batches = EVENTS.records(connection.execute(query, (job_id, current, seen if current == epoch else 0)))
        return EventPage(current, jobs[0]["state"], [event for batch in batches for event in batch["events"]])

    def request_stop(self, job_id: str) -> None:
        """Ask the server that works on a job to stop it."""
        if self.shared:
            with self._tables.transaction() as connection:
                stop = "UPDATE server_jobs SET stop_requested = 1 WHERE id = ? AND ended_at IS NULL"
                connection.execute(stop, (job_id,))
                self._notify(connection, [job_id])

    def claim_orphaned(self, most: int, busy: Collection[str]) -> list[JobOrder]:
        """Take over at most this many unfinished jobs of dead servers, and return them.

        Includes this server's own jobs whose end it could not register; those are not in `busy`.
        """
        let_go = f"server = ? AND id NOT IN ({', '.join('?' * (len(busy) + 1))})"
        claim = (
            "UPDATE server_jobs SET server = ?, moves = moves + CASE WHEN server IN ('', ?) THEN 0 ELSE 1 END"
            f" WHERE id IN (SELECT id FROM server_jobs WHERE ended_at IS NULL AND ({_GONE} OR ({let_go}))"
            f" ORDER BY started_at LIMIT ?{self._tables.skip_locked}) RETURNING id, kind, request, moves, started_at"
        )
        fail = f"UPDATE server_jobs SET state = 'failed', ended_at = {self._tables.now} WHERE id = ?"
        with self._tables.transaction() as connection:
            values = (self._server, self._server, self._server, "", *busy, most)
            rows = JOBS.records(connection.execute(claim, values))
            deadly = [row["id"] for row in rows if self.shared and row["moves"] > _MOST_MOVES]
            connection.executemany(fail, [(job_id,) for job_id in deadly])
        oldest_first = sorted(rows, key=lambda row: float(row["started_at"]))
        return [_order(row) for row in oldest_first if row["id"] not in deadly]

    def release(self, job_id: str) -> None:
        """Release a claimed job so that any server can start it."""
        release = "UPDATE server_jobs SET server = '' WHERE id = ? AND server = ? AND ended_at IS NULL"
        self._write(release, job_id, self._server)

    def release_all(self) -> None:
        """Release all unfinished jobs to the other servers."""
        self._write("UPDATE server_jobs SET server = '' WHERE server = ? AND ended_at IS NULL", self._server)

    def unfinished(self) -> set[str]:
        """The ids of the jobs that a server is working on or will resume."""
        return {row["id"] for row in self._read(JOBS, "SELECT id FROM server_jobs WHERE ended_at IS NULL")}

    def forget(self, job_id: str, *, shared: bool) -> None:
        """Delete a job with its events and idempotency keys, unless servers share jobs and one is working on it."""
        if not self._tables.exist():
            return
        deletable = f"ended_at IS NOT NULL OR {_GONE}" if shared else "1 = 1"
        started = dump_json({"id": job_id}).removesuffix("}") + ","  # as `dump_json` begins an order
        with self._tables.transaction() as connection:
            connection.execute(f"DELETE FROM server_jobs WHERE id = ? AND ({deletable})", (job_id,))
            connection.execute("DELETE FROM request_keys WHERE substr(job, 1, ?) = ?", (len(started), started))
            connection.execute(_DELETE_STRAY_EVENTS)

    def stop_requests(self, connection: TableConnection) -> list[str]:
        """The jobs of this server that another was asked to stop."""
        query = "SELECT id FROM server_jobs WHERE server = ? AND ended_at IS NULL AND stop_requested = 1"
        return [row[0] for row in connection.execute(query, (self._server,)).fetchall()]

    def has_orphans(self, connection: TableConnection) -> bool:
        """Whether there are unfinished jobs whose server is gone."""
        found = connection.execute(f"SELECT 1 FROM server_jobs WHERE ended_at IS NULL AND {_GONE} LIMIT 1")
        return found.fetchone() is not None

    def clean(self, connection: TableConnection) -> None:
        """Delete the jobs that ended a while ago, with their events."""
        connection.execute(f"DELETE FROM server_jobs WHERE ended_at < {self._tables.now} - {KEPT}")
        connection.execute(_DELETE_STRAY_EVENTS)

    def _store(self, connection: TableConnection, batch: EventBatch) -> None:
        """Store events, unless the job no longer belongs to this server."""
        owned = "SELECT 1 FROM server_jobs WHERE id = ? AND server = ? AND epoch = ? AND ended_at IS NULL"
        if connection.execute(owned, (batch.job_id, self._server, batch.epoch)).fetchone() is not None:
            events = dump_json(list(batch.events))
            connection.execute(EVENTS.insert(), (batch.job_id, batch.epoch, batch.first, len(batch.events), events))

    def _notify(self, connection: TableConnection, jobs: Iterable[str]) -> None:
        if self._notify_others is not None:
            for job_id in dict.fromkeys(jobs):
                self._notify_others(connection, job_id)


def _order(row: dict[str, Any]) -> JobOrder:
    return JobOrder(row["id"], row["kind"], row["request"])


class RequestKeys(Register):
    """Idempotency keys, kept for a day; a claim that has no job yet lapses with its `server`. Blocking, thread-safe."""

    def __init__(self, tables: Tables, server: str) -> None:
        super().__init__(tables)
        self._server = server

    def claim(self, key: str, request: str) -> KeyUse | None:
        """Claim a key for a request and return None, or return its use if another claim is settled or alive."""
        now = self._tables.now
        claim = (
            f"INSERT INTO request_keys (key, request, server, claimed_at) VALUES (?, ?, ?, {now})"
            f" ON CONFLICT (key) DO UPDATE SET server = excluded.server, claimed_at = {now}"
            " WHERE request_keys.job IS NULL AND request_keys.request = excluded.request"
            " AND NOT EXISTS (SELECT 1 FROM servers WHERE servers.id = request_keys.server) RETURNING 1"
        )
        with self._tables.transaction() as connection:
            connection.execute(f"DELETE FROM request_keys WHERE claimed_at < {now} - {_KEY_AGE}")
            if connection.execute(claim, (key, request, self._server)).fetchone() is not None:
                return None
            query = "SELECT key, request, job FROM request_keys WHERE key = ?"
            found = KEYS.records(connection.execute(query, (key,)))
        if not found:  # it was released in between
            return self.claim(key, request)
        return KeyUse(found[0]["request"], found[0]["job"])

    def commit(self, key: str, order: JobOrder) -> None:
        """Store the order of the job that was started under a claimed key."""
        self._write(_COMMIT_KEY, dump_json(asdict(order)), key)

    def release(self, key: str) -> None:
        """Forget a claimed key whose request was refused."""
        self._write("DELETE FROM request_keys WHERE key = ? AND server = ?", key, self._server)


SERVER_REMEDY: Final = "Move it away: unfinished jobs are resumed by asking again."
ENDINGS: Final = TypedTable("endings", ("name",), {"name": TEXT, "connection": TEXT, "ended_at": MOMENT})
SERVER_TABLES: Final = (JOBS, EVENTS, KEYS, ENDINGS)
FOLDER_SERVER_TABLES: Final = (SERVERS, *SERVER_TABLES)
_RECENT: Final = 2.0  # seconds


class RecentEndings(Register):
    """Names of what was just deleted or revoked, each with the connection of the request that ended it.

    Requests in flight at that moment were valid when they were sent.
    """

    def add(self, name: str, connection: str) -> None:
        """Store that a request on this connection ended something."""
        now = time.time()
        with self._tables.transaction() as db:
            db.execute("DELETE FROM endings WHERE ended_at < ? OR name = ?", (now - _RECENT, hash_name(name)))
            db.execute(ENDINGS.insert("ignore"), (hash_name(name), connection, now))

    def ended_by_another(self, name: str, connection: str) -> bool:
        """Whether another connection ended it; a request on the same connection was sent after the answer."""
        query = "SELECT * FROM endings WHERE name = ? AND connection <> ? AND ended_at >= ?"
        return bool(self._read(ENDINGS, query, hash_name(name), connection, time.time() - _RECENT))


def hash_name(name: str) -> str:
    """Hash a name, which may contain anything that a request can send."""
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()
