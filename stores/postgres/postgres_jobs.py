"""The jobs of all servers of a library, with their events, in PostgreSQL.

A job belongs to the server that its row names, for as long as that server has a row in `servers`. Events are stored in
batches and deleted a while after the end of their job; a notification tells the other servers that there are new ones.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any, Final

from ...table_columns import OBJECT, TEXT, TypedTable, dump_json, integer, shaped
from ..job_records import JOB_KIND, JOB_STATE, EventBatch, EventPage, JobEntry, JobOrder, JobState
from .database import Database

KEPT: Final = 15  # minutes after the end of a job
_MOST_MOVES: Final = 5  # servers that a job may see dying, since it may be what ends them
_GONE: Final = "NOT EXISTS (SELECT 1 FROM servers s WHERE s.id = server_jobs.server)"
_BEGIN: Final = f"""
INSERT INTO server_jobs (id, kind, request, server, epoch, state) VALUES (%s, %s, %s, %s, %s, 'working')
ON CONFLICT (id) DO UPDATE SET kind = excluded.kind, request = excluded.request, epoch = excluded.epoch,
    moves = CASE WHEN server_jobs.ended_at IS NULL THEN server_jobs.moves ELSE 0 END,
    stop_requested = server_jobs.ended_at IS NULL AND server_jobs.stop_requested,
    server = excluded.server, state = 'working', started_at = now(), ended_at = NULL
WHERE server_jobs.ended_at IS NOT NULL OR server_jobs.server = excluded.server OR {_GONE}
RETURNING 1
"""
_ENTRY: Final = """
SELECT id, kind, request, epoch, state,
    (SELECT coalesce(sum(size), 0)::int FROM server_events e WHERE e.job = j.id AND e.epoch = j.epoch) AS events
FROM server_jobs j
"""
_STORE: Final = """
INSERT INTO server_events SELECT %s, %s, %s, %s, %s
WHERE EXISTS (SELECT 1 FROM server_jobs WHERE id = %s AND server = %s AND epoch = %s AND ended_at IS NULL)
"""
_TAKE: Final = f"""
UPDATE server_jobs SET server = %s, moves = moves + coalesce(server NOT IN ('', %s), true)::integer WHERE id IN (
    SELECT id FROM server_jobs
    WHERE ended_at IS NULL AND ({_GONE} OR (server = %s AND id <> ALL(%s))) ORDER BY started_at LIMIT %s
    FOR UPDATE SKIP LOCKED
) RETURNING id, kind, request, moves
"""

_JOBS: Final = TypedTable(
    "server_jobs",
    ("id",),
    {"id": TEXT, "kind": JOB_KIND, "request": OBJECT, "epoch": TEXT, "state": JOB_STATE}
    | {"events": integer(), "moves": integer()},
)
_EVENTS: Final = TypedTable(
    "server_events",
    ("job", "epoch", "first"),
    {"job": TEXT, "epoch": TEXT, "first": integer(), "events": shaped("names and data", list[tuple[str, str]])},
)


def forget_job(connection: Any, job_id: str) -> None:
    """Delete a job with its events and the keys of the requests that began it, unless a living server works on it."""
    connection.execute(f"DELETE FROM server_jobs WHERE id = %s AND (ended_at IS NOT NULL OR {_GONE})", (job_id,))
    started = dump_json({"id": job_id}).removesuffix("}") + ","  # as `dump_json` begins an order
    connection.execute("DELETE FROM request_keys WHERE starts_with(job, %s)", (started,))


class PostgresJobs:
    """The register of jobs, as one server uses it."""

    shared = True

    def __init__(self, database: Database, pool: Any, channel: str) -> None:
        self._database = database
        self._server = database.url.server
        self._pool = pool
        self._channel = channel

    @contextmanager
    def _transaction(self) -> Iterator[Any]:
        with self._database.leased(self._pool) as connection, connection.transaction():
            yield connection

    def begin(self, order: JobOrder, epoch: str, key: str = "") -> JobEntry | None:
        """Register a job as this server's, unless another living server works on it; and with its key."""
        row = (order.id, order.kind, dump_json(order.request), self._server, epoch)
        with self._transaction() as connection:
            if connection.execute(_BEGIN, row).fetchone() is not None:
                connection.execute("DELETE FROM server_events WHERE job = %s AND epoch <> %s", (order.id, epoch))
                if key:
                    settled = dump_json(asdict(order))
                    connection.execute("UPDATE request_keys SET job = %s WHERE key = %s", (settled, key))
                self._notify(connection, [order.id])
                return None
            found = _entries(connection, "WHERE id = %s", (order.id,))
        return found[0] if found else self.begin(order, epoch, key)  # it was deleted in between

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Store events; those of jobs that are not this server's any more are dropped."""
        with self._transaction() as connection:
            for batch in batches:
                self._store(connection, batch)
            self._notify(connection, [batch.job_id for batch in batches])

    def end(self, job_id: str, state: JobState, last: EventBatch) -> None:
        """Register the end of a job of this server, with the events that were not stored yet."""
        with self._transaction() as connection:
            if last.events:
                self._store(connection, last)
            connection.execute(
                "UPDATE server_jobs SET state = %s, ended_at = now(), stop_requested = false"
                " WHERE id = %s AND server = %s AND ended_at IS NULL",
                (state, job_id, self._server),
            )
            self._notify(connection, [job_id])

    def entry(self, job_id: str) -> JobEntry | None:
        """A job that is active, or that ended a short while ago."""
        with self._transaction() as connection:
            return next(iter(_entries(connection, "WHERE id = %s", (job_id,))), None)

    def entries(self) -> list[JobEntry]:
        """All such jobs."""
        with self._transaction() as connection:
            return _entries(connection, "ORDER BY started_at")

    def events(self, job_id: str, epoch: str, seen: int) -> EventPage | None:
        """The events of a job after the first `seen` of this epoch; None once they are deleted."""
        with self._transaction() as connection:
            query = "SELECT id, epoch, state FROM server_jobs WHERE id = %s"
            jobs = _JOBS.read(connection.execute(query, (job_id,)))
            if not jobs:
                return None
            _, current, state = jobs[0]
            rows = _EVENTS.read(
                connection.execute(
                    "SELECT job, epoch, first, events FROM server_events"
                    " WHERE job = %s AND epoch = %s AND first >= %s ORDER BY first",
                    (job_id, current, seen if current == epoch else 0),
                )
            )
        return EventPage(current, state, [event for *_, events in rows for event in events])

    def request_stop(self, job_id: str) -> None:
        """Have the server that works on a job stop it."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE server_jobs SET stop_requested = true WHERE id = %s AND ended_at IS NULL", (job_id,)
            )
            self._notify(connection, [job_id])

    def stop_requests(self, connection: Any) -> list[str]:
        """The jobs of this server that another was asked to stop."""
        found = connection.execute(
            "SELECT id FROM server_jobs WHERE server = %s AND ended_at IS NULL AND stop_requested", (self._server,)
        )
        return [row[0] for row in found.fetchall()]

    def orphaned(self, connection: Any) -> bool:
        """Whether there are unfinished jobs whose server is gone."""
        found = connection.execute(f"SELECT 1 FROM server_jobs WHERE ended_at IS NULL AND {_GONE} LIMIT 1")
        return found.fetchone() is not None

    def claim_orphaned(self, most: int, busy: Collection[str]) -> list[JobOrder]:
        """Make up to this many of them this server's own; one that has seen five servers die is ended."""
        taken: list[JobOrder] = []
        with self._transaction() as connection:
            given = (self._server, self._server, self._server, list(busy), most)
            for job_id, kind, request, moves in _JOBS.read(connection.execute(_TAKE, given)):
                if moves > _MOST_MOVES:
                    connection.execute(
                        "UPDATE server_jobs SET state = 'failed', ended_at = now() WHERE id = %s", (job_id,)
                    )
                else:
                    taken.append(JobOrder(job_id, kind, request))
        return taken

    def release(self, job_id: str) -> None:
        """Leave a job that was taken up to whichever server can start it."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE server_jobs SET server = '' WHERE id = %s AND server = %s AND ended_at IS NULL",
                (job_id, self._server),
            )

    def leave(self) -> None:
        """Leave all unfinished jobs to the other servers."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE server_jobs SET server = '' WHERE server = %s AND ended_at IS NULL", (self._server,)
            )

    def clean(self, connection: Any) -> None:
        """Delete the jobs that ended a while ago, with their events."""
        connection.execute(f"DELETE FROM server_jobs WHERE ended_at < now() - interval '{KEPT} min'")

    def _store(self, connection: Any, batch: EventBatch) -> None:
        row = (batch.job_id, batch.epoch, batch.first, len(batch.events), dump_json(list(batch.events)))
        connection.execute(_STORE, (*row, batch.job_id, self._server, batch.epoch))

    def _notify(self, connection: Any, jobs: Sequence[str]) -> None:
        for job_id in dict.fromkeys(jobs):
            connection.execute("SELECT pg_notify(%s, %s)", (self._channel, job_id))


def _entries(connection: Any, which: str, values: tuple[object, ...] = ()) -> list[JobEntry]:
    rows = _JOBS.read(connection.execute(f"{_ENTRY} {which}", values))
    return [JobEntry(JobOrder(*order), epoch, state, events) for *order, epoch, state, events in rows]
