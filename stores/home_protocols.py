"""What a home holds besides the stores of its library: journal, registers, checkpoints and locks.

The contract of each method is documented here once; `tests/integration/stores/conformance` checks it on every backend.
The journal has its own protocol, `models/journal/journal_database.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

from ..models.journal.journal import Journal
from ..models.journal.journal_database import JournalDatabase
from .edited_sentences import EditedSentences
from .home_tables import HomeRecords
from .run_records import CitingRun, CitingTurn, ConversationEntry, KeptTurn, NewRun, RunHead, RunRecord, RunStatus
from .server_protocols import Membership, Uploads
from .store_protocols import LibraryStores, PaperCatalog


class Runs(Protocol):
    """The register of runs; blocking and thread-safe."""

    def begin(self, run: NewRun) -> RunRecord:
        """Register a run, or return the existing one with this id."""
        ...

    def mark(
        self, thread_id: str, status: RunStatus, *, detail: str = "", result: dict[str, Any] | None = None
    ) -> None:
        """Update the status of a run; None leaves the result unchanged."""
        ...

    def get(self, thread_id: str) -> RunRecord:
        """The run with this id or unique id prefix; raises `UnknownRunError`."""
        ...

    def latest(self, fingerprint: str) -> RunRecord | None:
        """The most recently started run with this fingerprint."""
        ...

    def latest_about(self, question: str) -> RunRecord | None:
        """The most recently started run of a question, whatever its library and settings."""
        ...

    def heads(self, limit: int | None = None, offset: int = 0) -> list[RunHead]:
        """The runs without their requests and results, most recent first; all of them without a limit."""
        ...

    def count(self) -> int:
        """The number of runs."""
        ...

    def all(self) -> list[RunRecord]:
        """All runs, most recent first."""
        ...

    def citing(self, key: str) -> list[CitingRun]:
        """The finished runs whose text cites a paper, most recent first."""
        ...

    def plot_sets(self) -> set[str]:
        """The sets of uploaded plots that runs name."""
        ...

    def delete(self, thread_id: str) -> None:
        """Delete a run; its checkpoints are left to the caller."""
        ...


class Conversations(Protocol):
    """The register of conversations; blocking and thread-safe."""

    def begin(self, thread_id: str) -> None:
        """Register a conversation; does nothing if it exists."""
        ...

    def keep(self, thread_id: str, number: int, asked: str, question: str, record: dict[str, Any]) -> None:
        """Store a finished turn; idempotent."""
        ...

    def get(self, thread_id: str) -> ConversationEntry:
        """The conversation with this id or unique id prefix; raises `UnknownConversationError`."""
        ...

    def all(self) -> list[ConversationEntry]:
        """All conversations, most recent first."""
        ...

    def turns(self, thread_id: str) -> list[KeptTurn]:
        """The finished turns of a conversation, in order."""
        ...

    def last_turn(self, thread_id: str, *, answered: bool = False) -> KeptTurn | None:
        """The latest finished turn, or the latest that was `answered`."""
        ...

    def citing(self, key: str) -> list[CitingTurn]:
        """The turns whose answers cite a paper, most recent first."""
        ...

    def delete(self, thread_id: str) -> None:
        """Delete a conversation; its checkpoints are left to the caller."""
        ...


class WrittenHashes(Protocol):
    """The hashes of files that Citeloom wrote outside its home; blocking and thread-safe."""

    def note(self, contents: Collection[bytes]) -> None:
        """Store the hashes of contents that are about to be written."""
        ...

    def has(self, file: Path) -> bool:
        """Whether a file holds exactly what Citeloom wrote; false for a link or an unreadable file."""
        ...


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

    def runs(self) -> Runs:
        """The register of runs."""
        ...

    def plots(self) -> Uploads:
        """The images of plots that were uploaded to a server, in sets; one that nobody used for a day is idle."""
        ...

    def edited_sentences(self) -> EditedSentences:
        """The sentences that the user edited in finished runs."""
        ...

    def conversations(self) -> Conversations:
        """The register of conversations."""
        ...

    def written_files(self) -> WrittenHashes:
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

    def join_servers(self) -> Membership:
        """Become a server of the home; raises `ConfigurationError` where only one can be."""
        ...

    def run_under_way(self, thread_id: str) -> bool:
        """Whether a process currently holds the lock of a run."""
        ...
