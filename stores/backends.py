"""Chooses the backend of a home: files in a folder, or a PostgreSQL database."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from .home import DatabaseHome, Home

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from ..models.journal.journal import Journal
    from ..models.journal.journal_database import JournalDatabase
    from ..models.journal.single_flight import CallLocks
    from .accounts import Accounts
    from .conversation_register import ConversationRegister
    from .evidence_table_register import EvidenceTableRegister
    from .home_tables import HomeRecords
    from .local.checkpoints import PlainSaver
    from .paper_catalog import PaperCatalog
    from .postgres.postgres_checkpoints import PlainPostgresSaver
    from .run_register import EditedSentences, RunRegister, TextUpdates, WrittenFiles
    from .store_protocols import LibraryStores
    from .tables import TableConnection, Tables
    from .uploads import Uploads

    Checkpoints = PlainSaver | PlainPostgresSaver


class HomeLock(Protocol):
    """A lock across processes, released when the holding process ends."""

    def is_held(self) -> bool:
        """Whether a process currently holds the lock."""

    def holder(self) -> int | None:
        """The id of the process that holds the lock; None if it is free."""

    def try_held(self) -> AbstractContextManager[bool]:
        """Yield True with the lock held, or False at once if another holder has it."""

    def held(self, on_wait: Callable[[int | None], object] | None = None) -> AbstractAsyncContextManager[None]:
        """Hold the lock for the block; `on_wait(pid)` is called once if another process has it."""


class Backend(Protocol):
    """Access to everything in a home, and its locks."""

    has_several_servers: bool
    """Whether servers on several computers may share its jobs."""

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

    def server_tables(self) -> Tables:
        """The tables of servers, their jobs and sessions."""

    def account_tables(self) -> Tables:
        """The tables of a group's accounts."""

    def accounts(self) -> Accounts:
        from .accounts import Accounts

        return Accounts(self.account_tables())

    def runs(self) -> RunRegister:
        from .run_register import RunRegister

        return RunRegister(self.run_tables())

    def plots(self) -> Uploads:
        """The sets of plot images uploaded to a server; a set that was not used for a day is idle."""

    def edited_sentences(self) -> EditedSentences:
        from .run_register import EditedSentences

        return EditedSentences(self.run_tables())

    def text_updates(self) -> TextUpdates:
        from .run_register import TextUpdates

        return TextUpdates(self.run_tables())

    def conversations(self) -> ConversationRegister:
        from .conversation_register import ConversationRegister

        return ConversationRegister(self.run_tables())

    def evidence_tables(self) -> EvidenceTableRegister:
        from .evidence_table_register import EvidenceTableRegister

        return EvidenceTableRegister(self.run_tables())

    def written_files(self) -> WrittenFiles:
        from .run_register import WrittenFiles

        return WrittenFiles(self.run_tables())

    def has_memory(self) -> bool:
        """Whether the author's memory was ever written."""

    def open_memory(self) -> AbstractContextManager[BaseStore]:
        """Open the store of the author's memory, creating it; blocking. Raises `DamagedFileError`."""

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        """Open the checkpoints; raises `DamagedFileError`, now or on a later read, if they are unreadable."""

    def uploads(self) -> Uploads:
        """The papers that were uploaded to a server."""

    def forget_job(self, job_id: str) -> None:
        """Delete the job, events and idempotency keys that servers stored for a run, conversation or upload."""
        from .server_jobs import RegisteredJobs

        RegisteredJobs(self.server_tables()).forget(job_id, shared=self.has_several_servers)

    def records(self) -> HomeRecords:
        """The rows of all tables, for a copy of the home."""

    def writer_lock(self) -> HomeLock:
        """The lock of the library's writer."""

    def lock_of_run(self, thread_id: str) -> HomeLock:
        """The lock of a run: two identical commands must not pay for the same calls in parallel."""

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], object] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Lock a run for the block; `on_wait` is called once with a message if another process holds it."""
        message = f"Run {thread_id} is in progress in another process; waiting for it."
        return self.lock_of_run(thread_id).held(on_wait and (lambda _: on_wait(message)))

    def run_under_way(self, thread_id: str) -> bool:
        """Whether a process currently holds the lock of a run."""
        return self.lock_of_run(thread_id).is_held()

    def created_at(self) -> float:
        """When the library was created, in seconds since 1970."""

    def join_servers(self, address: str = "") -> ServerRegistry:
        """Register as a server; raises `ConfigurationError` with the first one's address if only one is allowed."""


@dataclass(frozen=True, slots=True)
class Listener:
    """Callbacks for notifications from other servers; may be called in any thread."""

    changed: Callable[[str], None]  # a job of another server has new events
    stop: Callable[[Sequence[str]], None]  # another server was asked to stop these jobs of this server
    orphans: Callable[[], None]  # some jobs have lost their server
    lost: Callable[[], None]  # this server was evicted, and its jobs were reassigned


class ServerRegistry(ABC):
    """A server's membership in the group of servers of a library, and the registers that they share.

    `home` is the home through which this server works; the database rejects an evicted server. `locks` are shared with
    other servers, None if there can be none.
    """

    locks: CallLocks | None = None
    uploads: Uploads

    def __init__(
        self,
        home: Home,
        tables: Tables,
        server: str,
        notify: Callable[[TableConnection, str], None] | None = None,
    ) -> None:
        from .server_jobs import RecentEndings, RegisteredJobs, RequestKeys, SignInSessions

        self.home = home
        self.jobs = RegisteredJobs(tables, server, notify)
        self.keys = RequestKeys(tables, server)
        self.sessions = SignInSessions(tables)
        self.endings = RecentEndings(tables)

    @abstractmethod
    def watch(self, listener: Listener) -> None:
        """Start notifying the listener about other servers."""

    @abstractmethod
    def leave(self) -> None:
        """Deregister; another server, now or later, takes over the unfinished jobs."""


def backend_of(home: Home) -> Backend:
    """The backend that stores a home's library, journal, runs and conversations."""
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
    from .run_register import WrittenFiles

    return WrittenFiles() if home is None else backend_of(home).written_files()
