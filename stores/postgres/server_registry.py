"""The servers of one library: each renews a row, and live servers take over the jobs of dead ones.

A server is considered dead when it has not renewed its row for `LEASE` seconds, or has lost all connections and does
not reconnect within `DISCONNECTED_TIMEOUT` (its process ended). Only the database's clock counts. It is first *fenced*:
its row is marked, so that its new connections are refused, and its open connections are terminated. So a frozen server
that wakes up can neither write nor look up calls in the journal (hence pays for none), and its locks are free. Then its
row is deleted, which makes its jobs orphans, and exactly one other server takes each (`ServerJobs.claim_orphaned`).

A heartbeat was chosen over an advisory lock alone, since a frozen process keeps its connections, and with them its
locks, for as long as its computer answers.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
import threading
import time
from contextlib import closing
from dataclasses import replace
from typing import Any, Final

from ...errors import CiteloomError
from ...settings.addresses import DatabaseUrl
from ..database_home import DatabaseHome
from ..home import Listener, ServerRegistry
from ..tables import TableConnection
from ..uploads import UPLOAD, SharedUploads
from .advisory_locks import DatabaseCallLocks
from .database import Database, DatabaseTables, LeaseLostError, SharedSql

LEASE: Final = 15  # seconds
DISCONNECTED_TIMEOUT: Final = 3  # seconds
HEARTBEAT_INTERVAL: Final = 1.0  # seconds
TERMINATION_TIMEOUT: Final = 10.0  # seconds for connections to end
CLEANING_INTERVAL: Final = 60  # heartbeats
_CONNECTIONS: Final = 4  # of a server, for jobs and events
_log = logging.getLogger("citeloom.server")

# A server that lost its own connection (database restart) lets the others reconnect before judging them.
_RENEW: Final = f"""
UPDATE servers SET renewed_at = now(),
    present_since = CASE WHEN renewed_at < now() - interval '{DISCONNECTED_TIMEOUT} s' THEN now() ELSE present_since END
WHERE id = %s AND fenced_at IS NULL RETURNING present_since < now() - interval '{DISCONNECTED_TIMEOUT} s'
"""
_ACTIVITY: Final = "FROM pg_stat_activity a WHERE a.datname = current_database() AND a.application_name LIKE"
_DEAD: Final = f"""
fenced_at IS NOT NULL OR renewed_at < now() - interval '{LEASE} s'
OR (renewed_at < now() - interval '{DISCONNECTED_TIMEOUT} s' AND NOT EXISTS (SELECT 1 {_ACTIVITY} '%%#' || servers.id))
"""


class DatabaseServerRegistry(ServerRegistry):
    """A server's row, and the thread that renews it."""

    def __init__(self, home: DatabaseHome) -> None:
        home.prepare()
        self._id = secrets.token_hex(6)
        with Database(home.url).transaction() as connection:
            connection.execute("INSERT INTO servers (id) VALUES (%s)", (self._id,))
        own_home = replace(home, url=DatabaseUrl(home.url.secret, self._id))  # whose connections are a server's
        self._database = Database(own_home.url, _CONNECTIONS, vectors=False)
        self._channel = f"citeloom_{hashlib.sha256(home.url.mark.encode()).hexdigest()[:16]}"  # for notifications
        super().__init__(own_home, DatabaseTables(self._database), self._id, self._notify)
        self.locks = DatabaseCallLocks(own_home.url)
        self.uploads = SharedUploads(self._database, home.papers, UPLOAD)
        self._leaving = threading.Event()
        self._thread: threading.Thread | None = None
        self._heartbeats = 0

    def _notify(self, connection: TableConnection, job_id: str) -> None:
        connection.execute("SELECT pg_notify(?, ?)", (self._channel, job_id))

    def watch(self, listener: Listener) -> None:
        self._thread = threading.Thread(target=self._serve, args=(listener,), name="membership", daemon=True)
        self._thread.start()

    def leave(self) -> None:
        """Delete the row, so that others take over the unfinished jobs at once."""
        self._leaving.set()
        if self._thread is not None:
            self._thread.join()
        try:
            self.jobs.release_all()
            with self._database.transaction() as connection:
                connection.execute("DELETE FROM servers WHERE id = %s", (self._id,))
        except CiteloomError as error:
            _log.warning("The server could not sign off: %s", error)
        self._database.close()

    def _serve(self, listener: Listener) -> None:
        while not self._leaving.is_set():
            try:
                with closing(self._database.connect(autocommit=True)) as connection, self._database.translate_errors():
                    connection.execute(f"LISTEN {self._channel}")
                    listener.orphans()  # after losing the database, some jobs may have ended without being registered
                    while not self._leaving.is_set():
                        self._send_heartbeat(connection, listener)
                        for notification in connection.notifies(timeout=HEARTBEAT_INTERVAL, stop_after=1):
                            listener.changed(notification.payload)
            except LeaseLostError:
                listener.lost()
                return
            except CiteloomError as error:
                _log.warning("%s", error.message)
                self._leaving.wait(HEARTBEAT_INTERVAL / 2)

    def _send_heartbeat(self, connection: Any, listener: Listener) -> None:
        renewed = connection.execute(_RENEW, (self._id,)).fetchone()
        if renewed is None:
            raise LeaseLostError(f"{self._database.url}: this server was evicted, since it did not answer.")
        shared = SharedSql(connection)
        if stopped := self.jobs.stop_requests(shared):
            listener.stop(stopped)
        if renewed[0]:
            for (server,) in connection.execute(f"SELECT id FROM servers WHERE id <> %s AND ({_DEAD})", (self._id,)):
                _evict_server(connection, server)
        if self.jobs.has_orphans(shared):
            listener.orphans()
        self._heartbeats += 1
        if self._heartbeats % CLEANING_INTERVAL == 1:
            self.jobs.clean(shared)


def _evict_server(connection: Any, server: str) -> None:
    """Fence a server that is still dead, terminate its connections, and orphan its jobs."""
    fenced = connection.execute(
        f"UPDATE servers SET fenced_at = coalesce(fenced_at, now()) WHERE id = %s AND ({_DEAD}) RETURNING 1", (server,)
    ).fetchone()
    if fenced is None:
        return
    until = time.monotonic() + TERMINATION_TIMEOUT
    end_all = f"SELECT pg_terminate_backend(a.pid) {_ACTIVITY} %s"
    while connection.execute(end_all, (f"%#{server}",)).fetchall():
        if time.monotonic() > until:
            _log.warning("Connections of a dead server do not end; its work is not resumed yet.")
            return
        time.sleep(0.05)
    connection.execute("DELETE FROM servers WHERE id = %s", (server,))
