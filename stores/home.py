"""The interface of a home, which is a folder (`folder_home.py`) or a database (`database_home.py`)."""

from __future__ import annotations

import contextlib
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol, Self

from ..errors import InputError
from ..settings.addresses import HomeAddress
from ..table_columns import BLOB, TEXT, TableConnection, TypedTable, integer
from . import run_register as runs
from .accounts import PEOPLE, Accounts
from .evidence_table_register import EVIDENCE_TABLES, TABLE_CELLS, TABLE_PAPERS, EvidenceTableRegister
from .run_register import ConversationRegister, RunRegister, WrittenFiles
from .server_jobs import JOBS, RecentEndings, RequestKeys, ServerJobs
from .tables import Tables
from .uploads import Uploads

if TYPE_CHECKING:  # each command loads only what it needs
    from langgraph.store.base import BaseStore

    from ..models.journal.journal import Journal
    from ..models.journal.journal_database import JournalDatabase
    from ..models.journal.single_flight import CallLocks
    from .local.checkpoints import PlainSaver
    from .paper_catalog import PaperCatalog
    from .postgres.postgres_checkpoints import PlainPostgresSaver
    from .store_protocols import LibraryStores

    Checkpoints = PlainSaver | PlainPostgresSaver

GRID_TABLES: Final = (EVIDENCE_TABLES, TABLE_PAPERS, TABLE_CELLS)
RUN_TABLES: Final = (*runs.REGISTER_TABLES, *GRID_TABLES)
_STEP: Final = tuple("thread_id checkpoint_ns checkpoint_id task_id".split())
CHECKPOINT_WRITES: Final = TypedTable(
    "checkpoint_writes",
    (*_STEP, "idx"),
    dict.fromkeys((*_STEP, "task_path"), TEXT) | {"idx": integer(-100), "channel": TEXT, "type": TEXT, "blob": BLOB},
)


class UnsafeHomeError(InputError):
    """A home was not opened because it belongs to another user or could redirect writes elsewhere."""

    default_help = "Remove it, or choose another home with --home or CITELOOM_HOME."


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


class PathBelow:
    """A path below the root of a home, or below its folder of machine-local files."""

    def __init__(self, name: str, *, own: bool = False) -> None:
        self._name = name
        self._own = own

    def __get__(self, home: Home, owner: object = None) -> Path:
        return (home.data if self._own else home.root) / self._name


@dataclass(frozen=True)
class Home(ABC):
    """The place of library, journal, checkpoints and runs.

    `root` is the folder of the home, or of a database's machine-local files; `copy_of` is the original of a private
    copy.
    """

    root: Path
    copy_of: Path | None = field(default=None, kw_only=True)

    has_several_servers: ClassVar[bool] = False
    """Whether servers on several computers may share its jobs."""

    papers = PathBelow("papers")  # papers added through the server
    plots_folder = PathBelow("plots")  # images uploaded to the server
    converted = PathBelow("converted")  # the cached text of PDF and other converted files
    locks = PathBelow("locks")
    added = PathBelow("added", own=True)  # papers added by identifier, and their `.bib`
    zotero = PathBelow("zotero", own=True)  # files synced from Zotero, and abstracts of items without a file

    @property
    @abstractmethod
    def name(self) -> HomeAddress:
        """The folder as the user knows it, or a database's address without secrets."""

    @property
    def address(self) -> HomeAddress:
        """The folder that is read and written, or a database's address."""
        return self.name

    def place_of(self, file: str) -> HomeAddress:
        """The file with this name, or the database that holds its tables, as messages name it."""
        return self.name

    @property
    def data(self) -> Path:
        """The folder of machine-local files."""
        return self.root

    @abstractmethod
    def exists(self) -> bool:
        """Whether a library exists here."""

    def require_library(self) -> None:
        """Raise `InputError` if no library exists or can exist here; creates nothing."""
        self.require_place()
        if not self.exists():
            help_ = "Create one: {citeloom} ingest PAPERS --bib FILE."
            raise InputError(f"{self.address} holds no library.", help=help_)

    def require_place(self) -> None:
        """Raise `InputError` if there can be no home here; needs no connection."""
        return

    @abstractmethod
    def prepare(self) -> Self:
        """Create what is missing; raises `InputError` if that is not possible."""

    @abstractmethod
    def open_library(self) -> LibraryStores:
        """Open the stores of the library, creating what is missing."""

    @abstractmethod
    def open_catalog(self) -> PaperCatalog:
        """Open only the catalog, ten times as fast as `open_library`."""

    def open_journal(self) -> Journal:
        """Open the journal, creating it if it is missing; raises `JournalError`."""
        from ..models.journal.journal import Journal

        return Journal(self.journal_database())

    @abstractmethod
    def journal_database(self) -> JournalDatabase:
        """The database of the journal, for its statistics and for pruning."""

    @abstractmethod
    def tables_with(self, table: TypedTable) -> Tables:
        """The tables stored together with this one: of runs, of a server, of accounts or of metadata."""

    def accounts(self) -> Accounts:
        return Accounts(self.tables_with(PEOPLE))

    def runs(self) -> RunRegister:
        return RunRegister(self.tables_with(runs.RUNS))

    @abstractmethod
    def plots(self) -> Uploads:
        """The sets of plot images uploaded to a server; a set is idle if unused for a day."""

    def conversations(self) -> ConversationRegister:
        return ConversationRegister(self.tables_with(runs.CONVERSATIONS))

    def evidence_tables(self) -> EvidenceTableRegister:
        return EvidenceTableRegister(self.tables_with(EVIDENCE_TABLES))

    def written_files(self) -> WrittenFiles:
        return WrittenFiles(self.tables_with(runs.WRITTEN))

    @abstractmethod
    def has_memory(self) -> bool:
        """Whether the author's memory was ever written."""

    @abstractmethod
    def open_memory(self) -> AbstractContextManager[BaseStore]:
        """Open the store of the author's memory, creating it if missing; blocks. Raises `DamagedFileError`."""

    @abstractmethod
    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        """Open the checkpoints; raises `DamagedFileError`, now or on a later read, if they are unreadable."""

    @abstractmethod
    def uploads(self) -> Uploads:
        """The papers that were uploaded to a server."""

    def forget_job(self, job_id: str) -> None:
        """Delete the job, events and idempotency keys that servers stored for a run, conversation or upload."""
        ServerJobs(self.tables_with(JOBS)).forget(job_id, shared=self.has_several_servers)

    @abstractmethod
    def rows(self, table: TypedTable) -> Generator[tuple[Any, ...]]:
        """All rows of a table; runs in the order in which they began."""

    @abstractmethod
    def put(self, table: TypedTable, rows: Sequence[tuple[Any, ...]]) -> None:
        """Insert rows, or replace those with the same keys, in one transaction."""

    @abstractmethod
    def writer_lock(self) -> HomeLock:
        """The lock of the library's writer."""

    @abstractmethod
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

    @abstractmethod
    def created_at(self) -> float:
        """When the library was created, in seconds since 1970."""

    @abstractmethod
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
    other servers; None if there can be no others.
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
        self.home = home
        self.jobs = ServerJobs(tables, server, notify)
        self.keys = RequestKeys(tables, server)
        self.endings = RecentEndings(tables)

    @abstractmethod
    def watch(self, listener: Listener) -> None:
        """Start notifying the listener about other servers."""

    @abstractmethod
    def leave(self) -> None:
        """Deregister; another server, now or later, takes over the unfinished jobs."""


def make_folders(home: Home) -> None:
    """Create a home's folders; if they are not writable, remove them and raise `InputError`."""
    missing: list[Path] = []
    try:
        missing += [folder for folder in (home.locks, *home.locks.parents) if not folder.exists()]
        home.locks.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=home.root, prefix=".write-test-"):
            pass
    except OSError as error:
        for folder in missing:
            with contextlib.suppress(OSError):
                folder.rmdir()
        there = isinstance(error, FileExistsError)
        reason = f"{error.filename} is a file" if there else error.strerror or type(error).__name__
        message = f"{home.root}: cannot be written ({reason})."
        raise InputError(message, help="Choose a writable folder with --home or CITELOOM_HOME.") from error


def written_files(home: Home | None) -> WrittenFiles:
    """The register of the files that a home has written; empty if there is no home."""
    return WrittenFiles() if home is None else home.written_files()
