"""Chooses the backend of a home: files in a folder, or a PostgreSQL database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..models.journal.journal import Journal
from ..models.journal.journal_database import JournalDatabase
from ..models.journal.single_flight import CallLocks
from .conversation_register import ConversationRegister
from .home import Home
from .home_tables import HomeRecords
from .run_register import EditedSentences, RunRegister, WrittenFiles
from .server_jobs import EventBatch, EventPage, JobEntry, JobOrder, JobState, RequestKeys
from .server_sessions import RecentEndings, SignInSessions
from .store_protocols import LibraryStores, PaperCatalog
from .tables import Tables


class Checkpoints(Protocol):
    """A LangGraph saver that reads checkpoints as plain values, with what runs need besides."""

    async def adelete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints of a thread."""
        ...

    async def keep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but its latest, including those of its subgraphs."""
        ...


class LibraryLock(Protocol):
    """The lock of a library's single writer; it ends with the process that holds it."""

    def holder(self) -> int | None:
        """The id of the process that holds the lock; None if it is free."""
        ...

    def try_held(self) -> AbstractContextManager[bool]:
        """Yield True with the lock held, or False at once if another holder has it."""
        ...

    def held(self, on_wait: Callable[[int | None], None] | None = None) -> AbstractAsyncContextManager[None]:
        """Hold the lock for the block; `on_wait(pid)` is called once if another process has it."""
        ...


class Backend(Protocol):
    """Everything that a home holds, and the locks on it."""

    def open_library(self) -> LibraryStores:
        """Open the stores of the library, creating what is missing."""
        ...

    def open_catalog(self) -> PaperCatalog:
        """Open the catalog alone, which takes a tenth of the time."""
        ...

    def open_journal(self) -> Journal:
        """Open the journal, creating it if it is missing; raises `JournalError`."""
        ...

    def journal_database(self) -> JournalDatabase:
        """The database of the journal, for its statistics and for pruning."""
        ...

    def runs(self) -> RunRegister:
        """The register of runs."""
        ...

    def plots(self) -> Uploads:
        """The images of plots that were uploaded to a server, in sets; one that nobody used for a day is idle."""
        ...

    def edited_sentences(self) -> EditedSentences:
        """The sentences that the user edited in finished runs."""
        ...

    def conversations(self) -> ConversationRegister:
        """The register of conversations."""
        ...

    def written_files(self) -> WrittenFiles:
        """The hashes of written files."""
        ...

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        """Open the checkpoints; raises `DamagedFileError`, now or on a later read, for what cannot be read."""
        ...

    def uploads(self) -> Uploads:
        """The papers that were uploaded to a server."""
        ...

    def forget_job(self, job_id: str) -> None:
        """Delete what servers stored of the work on a run, conversation or upload: job, events, idempotency keys."""
        ...

    def records(self) -> HomeRecords:
        """The rows of all tables, for a copy of the home."""
        ...

    def writer_lock(self) -> LibraryLock:
        """The lock of the library's writer."""
        ...

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Lock a run for the block; `on_wait` is called once with a message if another process holds it."""
        ...

    def created_at(self) -> float:
        """When the library was created, in seconds since 1970."""
        ...

    def join_servers(self) -> ServerRegistry:
        """Become a server of the home; raises `ConfigurationError` where only one can be."""
        ...

    def run_under_way(self, thread_id: str) -> bool:
        """Whether a process currently holds the lock of a run."""
        ...


class ServerJobs(Protocol):
    """The register of jobs; blocking and thread-safe."""

    @property
    def shared(self) -> bool:
        """Whether other servers may work on these jobs."""
        ...

    def begin(self, order: JobOrder, epoch: str, key: str = "") -> JobEntry | None:
        """Register a job as this server's, with the epoch of its events; returns None.

        An idempotency `key` that this server has claimed names the job from the same moment. While another living
        server works on the job with this id, nothing changes and its entry is returned.
        """
        ...

    def append(self, batches: Sequence[EventBatch]) -> None:
        """Store events of this server's jobs for the other servers; those of a job that it lost are dropped."""
        ...

    def end(self, job_id: str, state: JobState, last: EventBatch) -> None:
        """Register the end of a job of this server, with the events that were not stored yet."""
        ...

    def entry(self, job_id: str) -> JobEntry | None:
        """A job that is active on another server, or that ended there a short while ago."""
        ...

    def entries(self) -> list[JobEntry]:
        """All such jobs."""
        ...

    def events(self, job_id: str, epoch: str, seen: int) -> EventPage | None:
        """The events of a job after the first `seen` of this epoch; None once they are deleted."""
        ...

    def request_stop(self, job_id: str) -> None:
        """Have the server that works on a job stop it."""
        ...

    def claim_orphaned(self, most: int, busy: Collection[str]) -> list[JobOrder]:
        """Make up to this many unfinished jobs of servers that are gone this server's own, and return them.

        So are its own that it has let go without being able to register their end; those are not among `busy`.
        """
        ...

    def release(self, job_id: str) -> None:
        """Leave a job that was claimed to whichever server can start it."""
        ...


class Uploads(Protocol):
    """The files of papers or plots that were uploaded to a server, by upload; blocking and thread-safe."""

    def folder(self, upload: str) -> Path:
        """The folder on this computer in which the files of an upload are read."""
        ...

    def publish(self, upload: str) -> None:
        """Make the files in the folder of an upload available to all servers; doing so again renews their age."""
        ...

    def fetch(self, upload: str) -> None:
        """Write the files of an upload that another server has taken into its folder here."""
        ...

    def place_of(self, source: str) -> tuple[str, str] | None:
        """Upload and name of a file; None if it was not uploaded."""
        ...

    def reference(self, file: Path) -> str:
        """How a record names a file in the folder of an upload, whichever computer reads it: see `file`."""
        ...

    def file(self, source: str) -> Path:
        """The file of a paper or plot on this computer, fetched if another server has taken it; it may be missing."""
        ...

    def names(self, upload: str) -> list[str]:
        """The names of the files of an upload."""
        ...

    def files(self, among: Collection[str] | None = None) -> dict[str, dict[str, int]]:
        """The size of each stored file in bytes, by upload and name; of all uploads, or of those `among` these."""
        ...

    def remove(self, upload: str, names: Collection[str]) -> None:
        """Delete files of an upload, and its folder when nothing is left in it."""
        ...

    def unfinished(self) -> set[str]:
        """The uploads that a job works on, or that one will resume."""
        ...

    def idle(self) -> list[str]:
        """The uploads without such a job that may have been abandoned: on a database, none of the last hour."""
        ...


@dataclass(frozen=True, slots=True)
class Listener:
    """What a server does about news of the others; called in any thread.

    Args:
        changed: a job of another server has new events.
        stop: another server was asked to stop these jobs of this one.
        orphans: there are jobs whose server is gone.
        lost: this server was taken for dead, and others work on its jobs.
    """

    changed: Callable[[str], None]
    stop: Callable[[Sequence[str]], None]
    orphans: Callable[[], None]
    lost: Callable[[], None]


class ServerRegistry(Protocol):
    """A server's place among those of a library, until it leaves."""

    @property
    def home(self) -> Home:
        """The home through which this server works; a database refuses it once the server was taken for dead."""
        ...

    @property
    def jobs(self) -> ServerJobs:
        """The register of jobs."""
        ...

    @property
    def keys(self) -> RequestKeys:
        """The idempotency keys."""
        ...

    @property
    def sessions(self) -> SignInSessions:
        """The sessions of browsers."""
        ...

    @property
    def endings(self) -> RecentEndings:
        """What requests to any server deleted or withdrew a moment ago."""
        ...

    @property
    def locks(self) -> CallLocks | None:
        """Locks against the other servers; None where there are none."""
        ...

    @property
    def uploads(self) -> Uploads:
        """The uploaded files."""
        ...

    def watch(self, listener: Listener) -> None:
        """Tell of the other servers from now on."""
        ...

    def leave(self) -> None:
        """Leave; unfinished jobs are taken up by another server, or by the next one."""
        ...


class RegisterBackend(ABC):
    """The registers of a home, which are the same over the tables of every backend."""

    @abstractmethod
    def _run_tables(self) -> Tables:
        """The tables of runs, conversations and written files."""

    def runs(self) -> RunRegister:
        return RunRegister(self._run_tables())

    def edited_sentences(self) -> EditedSentences:
        return EditedSentences(self._run_tables())

    def conversations(self) -> ConversationRegister:
        return ConversationRegister(self._run_tables())

    def written_files(self) -> WrittenFiles:
        return WrittenFiles(self._run_tables())


def backend_of(home: Home) -> Backend:
    """What holds library, journal, runs and conversations of a home."""
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
    """The hashes of the files that a home has written; without a home none are known."""
    return WrittenFiles() if home is None else backend_of(home).written_files()
