"""What a home holds besides the stores of its library: journal, registers, checkpoints and locks.

The contract of each method is documented here once; `tests/integration/stores/conformance` checks it on every backend.
The journal has its own protocol, `models/journal/journal_database.py`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Protocol

from ..models.journal.journal import Journal
from ..models.journal.journal_database import JournalDatabase
from .conversation_register import ConversationRegister
from .home_tables import HomeRecords
from .run_register import EditedSentences, RunRegister
from .server_protocols import ServerRegistry, Uploads
from .store_protocols import LibraryStores, PaperCatalog
from .written_files import WrittenFiles


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
