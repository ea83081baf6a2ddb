"""The one server of a home in a folder."""

from __future__ import annotations

from filelock import FileLock

from ...errors import ConfigurationError
from ..recent_endings import ENDINGS_SCHEMA, RecentEndings
from ..server_protocols import Listener
from ..sign_in_sessions import SESSIONS_REMEDY, SESSIONS_SCHEMA, SignInSessions
from .file_tables import FileTables
from .folder_home import FolderHome
from .local_uploads import UPLOAD, LocalUploads
from .lock import try_acquire
from .server_register import LocalJobs, LocalKeys


class SecondServerError(ConfigurationError):
    """Another server works on the same folder."""

    default_help = "Use its address; several servers need a home in PostgreSQL (docs/scaling.md)."


class LocalMembership:
    """Holds the lock of a folder's server, which ends with its process."""

    def __init__(self, home: FolderHome) -> None:
        self.home = home.prepare()
        self._lock = FileLock(home.locks / "server.lock", thread_local=False)
        if not try_acquire(self._lock):
            raise SecondServerError(f"{home.name}: another server is at work on this folder.")
        self.jobs = LocalJobs(home.server)
        self.keys = LocalKeys(home.server)
        self.sessions = SignInSessions(FileTables(home.server, SESSIONS_SCHEMA, SESSIONS_REMEDY))
        self.uploads = LocalUploads(home.papers, UPLOAD, unfinished=self.jobs.unfinished)
        self.endings = RecentEndings(FileTables(home.server, ENDINGS_SCHEMA, SESSIONS_REMEDY))
        self.locks = None

    def watch(self, listener: Listener) -> None:
        """Do nothing: there are no other servers."""

    def leave(self) -> None:
        """Release the lock."""
        self._lock.release()
