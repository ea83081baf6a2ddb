"""Chooses the backend of a home: files in a folder, or a PostgreSQL database."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..models.journal.journal import Journal
from ..models.journal.journal_database import JournalDatabase
from ..models.journal.single_flight import CallLocks
from .conversation_register import ConversationRegister
from .evidence_table_register import EvidenceTableRegister
from .home import Home
from .home_tables import HomeRecords
from .run_register import EditedSentences, RunRegister, WrittenFiles
from .server_jobs import RequestKeys, ServerJobs
from .server_sessions import RecentEndings, SignInSessions
from .store_protocols import LibraryStores, PaperCatalog
from .tables import Tables


class Checkpoints(Protocol):
    """A LangGraph saver that reads checkpoints as plain values, plus the operations that runs need."""

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread."""

    async def keep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but its latest, including those of its subgraphs."""


class LibraryLock(Protocol):
    """The lock of a library's single writer; the lock is released when the holding process ends."""

    def holder(self) -> int | None:
        """The id of the process that holds the lock; None if it is free."""

    def try_held(self) -> AbstractContextManager[bool]:
        """Yield True with the lock held, or False at once if another holder has it."""

    def held(self, on_wait: Callable[[int | None], None] | None = None) -> AbstractAsyncContextManager[None]:
        """Hold the lock for the block; `on_wait(pid)` is called once if another process has it."""


class Backend(Protocol):
    """Access to everything in a home, and its locks."""

    def open_library(self) -> LibraryStores:
        """Open the stores of the library, creating what is missing."""

    def open_catalog(self) -> PaperCatalog:
        """Open only the catalog, ten times as fast as `open_library`."""

    def open_journal(self) -> Journal:
        """Open the journal, creating it if it is missing; raises `JournalError`."""

    def journal_database(self) -> JournalDatabase:
        """The database of the journal, for its statistics and for pruning."""

    def run_tables(self) -> Tables:
        """The tables of runs, conversations and written files."""

    def runs(self) -> RunRegister:
        """The register of runs."""
        return RunRegister(self.run_tables())

    def plots(self) -> Uploads:
        """The sets of plot images uploaded to a server; a set that was not used for a day is idle."""

    def edited_sentences(self) -> EditedSentences:
        """The sentences that the user edited in finished runs."""
        return EditedSentences(self.run_tables())

    def conversations(self) -> ConversationRegister:
        """The register of conversations."""
        return ConversationRegister(self.run_tables())

    def evidence_tables(self) -> EvidenceTableRegister:
        """The register of evidence tables."""
        return EvidenceTableRegister(self.run_tables())

    def written_files(self) -> WrittenFiles:
        """The hashes of written files."""
        return WrittenFiles(self.run_tables())

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        """Open the checkpoints; raises `DamagedFileError`, now or on a later read, if they are unreadable."""

    def uploads(self) -> Uploads:
        """The papers that were uploaded to a server."""

    def forget_job(self, job_id: str) -> None:
        """Delete the job, events and idempotency keys that servers stored for a run, conversation or upload."""

    def records(self) -> HomeRecords:
        """The rows of all tables, for a copy of the home."""

    def writer_lock(self) -> LibraryLock:
        """The lock of the library's writer."""

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Lock a run for the block; `on_wait` is called once with a message if another process holds it."""

    def created_at(self) -> float:
        """When the library was created, in seconds since 1970."""

    def join_servers(self) -> ServerRegistry:
        """Register as a server of the home; raises `ConfigurationError` if only one is allowed and already runs."""

    def run_under_way(self, thread_id: str) -> bool:
        """Whether a process currently holds the lock of a run."""


class Uploads(Protocol):
    """The files of papers or plots that were uploaded to a server, by upload; blocking and thread-safe."""

    def folder(self, upload: str) -> Path:
        """The folder on this computer from which an upload's files are read."""

    def publish(self, upload: str) -> None:
        """Make the files in the folder of an upload available to all servers; publishing again resets their age."""

    def fetch(self, upload: str) -> None:
        """Copy the files of an upload that another server received into its local folder."""

    def place_of(self, source: str) -> tuple[str, str] | None:
        """The upload id and name of a file; None if it was not uploaded."""

    def reference(self, file: Path) -> str:
        """A machine-independent reference to a file of an upload, to be stored in records; resolved by `file`."""

    def file(self, source: str) -> Path:
        """The local path of a paper or plot, fetched if another server received it; may not exist."""

    def names(self, upload: str) -> list[str]:
        """The names of the files of an upload."""

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """The size of each stored file in bytes, by upload and name; for all uploads or only those in `among`."""

    def remove(self, upload: str, names: Collection[str]) -> None:
        """Delete files of an upload, and its folder when nothing is left in it."""

    def unfinished(self) -> set[str]:
        """The uploads that a job is working on or will resume."""

    def idle(self) -> list[str]:
        """Uploads without such a job that may be abandoned; on a database, only those older than an hour."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks for notifications from other servers; may be called in any thread.

    Args:
        changed: a job of another server has new events.
        stop: another server was asked to stop these jobs of this server.
        orphans: some jobs have lost their server.
        lost: this server was evicted, and its jobs were reassigned.
    """

    changed: Callable[[str], None]
    stop: Callable[[Sequence[str]], None]
    orphans: Callable[[], None]
    lost: Callable[[], None]


class ServerRegistry(Protocol):
    """A server's membership in the group of servers of a library."""

    @property
    def home(self) -> Home:
        """The home through which this server works; the database rejects an evicted server."""

    @property
    def jobs(self) -> ServerJobs:
        """The register of jobs."""

    @property
    def keys(self) -> RequestKeys:
        """The idempotency keys."""

    @property
    def sessions(self) -> SignInSessions:
        """The sessions of browsers."""

    @property
    def endings(self) -> RecentEndings:
        """What requests to any server have just deleted or revoked."""

    @property
    def locks(self) -> CallLocks | None:
        """Locks shared with other servers; None if there can be no other servers."""

    @property
    def uploads(self) -> Uploads:
        """The uploaded files."""

    def watch(self, listener: Listener) -> None:
        """Start notifying the listener about other servers."""

    def leave(self) -> None:
        """Deregister; another server, now or later, takes over the unfinished jobs."""


def backend_of(home: Home) -> Backend:
    """The backend that stores a home's library, journal, runs and conversations."""
    from .postgres.database_home import DatabaseHome

    if isinstance(home, DatabaseHome):
        from .postgres.postgres_backend import PostgresBackend

        return PostgresBackend(home)
    from .local.folder_home import FolderHome
    from .local.local_backend import LocalBackend

    if not isinstance(home, FolderHome):
        raise TypeError(f"{type(home).__name__} is not a known kind of home")
    return LocalBackend(home)


def written_files(home: Home | None) -> WrittenFiles:
    """The hashes of the files that a home has written; an empty register without a home."""
    return WrittenFiles() if home is None else backend_of(home).written_files()
