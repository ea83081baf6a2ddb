"""The one server of a home in a folder."""

from __future__ import annotations

import secrets

from filelock import FileLock

from ...errors import ConfigurationError
from ..home_tables import SERVER_TABLES
from ..server_jobs import SERVERS, RegisteredJobs, RequestKeys, unfinished_jobs
from ..server_protocols import Listener
from ..server_sessions import SESSIONS_REMEDY, RecentEndings, SignInSessions
from .file_tables import FileTables
from .folder_home import FolderHome
from .local_uploads import UPLOAD, LocalUploads
from .lock import try_acquire


class SecondServerError(ConfigurationError):
    """Another server works on the same folder."""

    default_help = "Use its address; several servers need a home in PostgreSQL (docs/scaling.md)."


def server_tables(home: FolderHome) -> FileTables:
    """The tables of the folder's server."""
    return FileTables(home.server, (SERVERS, *SERVER_TABLES), SESSIONS_REMEDY)


class LocalServerRegistry:
    """Holds the lock of a folder's server, which ends with its process."""

    locks = None

    def __init__(self, home: FolderHome) -> None:
        self.home = home.prepare()
        self._lock = FileLock(home.locks / "server.lock", thread_local=False)
        if not try_acquire(self._lock):
            raise SecondServerError(f"{home.name}: another server is at work on this folder.")
        server = secrets.token_hex(6)
        tables = server_tables(home)
        with tables.transaction() as connection:
            connection.execute("DELETE FROM servers")
            connection.execute(SERVERS.insert(), (server,))
        self.jobs = RegisteredJobs(tables, server)
        self.keys = RequestKeys(tables, server)
        self.sessions = SignInSessions(tables)
        self.endings = RecentEndings(tables)
        self.uploads = LocalUploads(home.papers, UPLOAD, unfinished=lambda: unfinished_jobs(tables))

    def watch(self, listener: Listener) -> None:
        """Do nothing: there are no other servers."""

    def leave(self) -> None:
        self._lock.release()
