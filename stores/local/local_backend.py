"""Opens what a home in a folder holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from ...models.journal.journal import Journal
from ...models.journal.journal_database import JournalFile
from ..edited_sentences import EDITS_SCHEMA, EditedSentences
from ..home import Home
from ..metadata_store import METADATA_REMEDY, METADATA_SCHEMA, MetadataStore
from ..paper_change import Change
from ..run_records import PLOT_SET, PLOTS_KEPT
from ..store_protocols import LibraryStores
from .apply_changes import apply_changes
from .catalog import Catalog
from .checkpoints import open_checkpoints
from .conversation_registry import ConversationRegister
from .figure_files import FigureFiles
from .file_records import FileRecords
from .file_tables import FileTables
from .fulltext import FullText
from .local_membership import LocalMembership
from .local_uploads import UPLOAD, LocalUploads
from .lock import WriterLock, run_lock, run_under_way, try_acquire
from .run_registry import RunRegister
from .server_register import LocalJobs
from .vectors import VectorStore
from .written_files import WrittenFiles

if TYPE_CHECKING:
    from ..home_protocols import Checkpoints
    from ..library import Library
    from .vector_search import Nearest

_HOUR: Final = 3600.0


class LocalStores:
    """Catalog (SQLite), vectors (Chroma) and words (tantivy) in a folder."""

    def __init__(self, home: Home) -> None:
        self.catalog = Catalog(home.catalog, FigureFiles(home))
        self.vectors = VectorStore(home, self.catalog)
        self.words = FullText(home)
        self.metadata = MetadataStore(FileTables(home.metadata, METADATA_SCHEMA, METADATA_REMEDY))

    def seen_state(self) -> None:
        """None: a search reads three stores."""

    def search_of(self, library: Library) -> Nearest:
        """Exact in a small scope, else oversampling and filtering."""
        from .vector_search import Nearest  # with numpy

        return Nearest(library, self.vectors, self.catalog)

    def state(self) -> list[tuple[bool, str, str]]:
        """Nothing: the stores are compared with each other."""
        return []

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Apply the changes to vectors and words, then commit them in the catalog."""
        apply_changes(changes, self.catalog, self.vectors, self.words)
        self.catalog.commit(changes)

    def restore(self) -> list[str]:
        """Nothing: no store holds what another one could be restored from."""
        return []

    def close(self) -> None:
        """Close the files."""
        self.vectors.close()
        self.words.close()
        self.catalog.close()


class LocalBackend:
    """A home in a folder."""

    def __init__(self, home: Home) -> None:
        self._home = home

    def open_library(self) -> LibraryStores:
        """Open the three stores."""
        return LocalStores(self._home)

    def open_catalog(self) -> Catalog:
        """Open the catalog's file."""
        return Catalog(self._home.catalog, FigureFiles(self._home))

    def open_journal(self) -> Journal:
        """Open the journal's file."""
        return Journal.open(self._home.journal)

    def journal_database(self) -> JournalFile:
        """The journal's file."""
        return JournalFile(self._home.journal)

    def runs(self) -> RunRegister:
        """The register in the file of runs."""
        return RunRegister(self._home.runs)

    def plots(self) -> LocalUploads:
        """Those in the folder of plots."""
        return LocalUploads(self._home.plots, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> LocalUploads:
        """Those in the folder of papers; while a server is at work, one of the last hour is not idle."""
        server = FileLock(self._home.locks / "server.lock", thread_local=False)
        alone = self._home.copy_of is None and try_acquire(server)
        server.release()
        root = (self._home.copy_of or self._home.root) / self._home.papers.name
        return LocalUploads(root, UPLOAD, 0 if alone else _HOUR, self._unfinished)

    def _unfinished(self) -> set[str]:
        return LocalJobs(self._home.server).unfinished() if self._home.server.is_file() else set()

    def forget_job(self, job_id: str) -> None:
        """Delete its rows in the file of the server."""
        if self._home.server.is_file():
            LocalJobs(self._home.server).forget(job_id)

    def edited_sentences(self) -> EditedSentences:
        """Those in the file of runs."""
        return EditedSentences(FileTables(self._home.runs, EDITS_SCHEMA))

    def conversations(self) -> ConversationRegister:
        """The register in the file of runs."""
        return ConversationRegister(self._home.runs)

    def written_files(self) -> WrittenFiles:
        """The hashes in the file of runs."""
        return WrittenFiles(self._home.runs)

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        """Open the file of checkpoints."""
        return open_checkpoints(self._home.checkpoints)

    def records(self) -> FileRecords:
        """The rows in the SQLite files."""
        return FileRecords(self._home)

    def writer_lock(self) -> WriterLock:
        """A file lock."""
        return WriterLock(self._home)

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """A file lock."""
        return run_lock(self._home, thread_id, on_wait)

    def created_at(self) -> float:
        """The time of the catalog's file."""
        return self._home.catalog.stat().st_ctime

    def join_servers(self) -> LocalMembership:
        """Become its only server."""
        return LocalMembership(self._home)

    def run_under_way(self, thread_id: str) -> bool:
        """Whether the file is locked."""
        return run_under_way(self._home, thread_id)
