"""Opens what a home in a folder holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final

from filelock import FileLock

from ...models.journal.journal import Journal
from ...models.journal.journal_database import JournalFile
from ..conversation_register import ConversationRegister
from ..home_protocols import Checkpoints
from ..metadata_store import MetadataStore
from ..paper_change import Change
from ..run_register import PLOT_SET, PLOTS_KEPT, EditedSentences, RunRegister
from ..server_jobs import forget_job, unfinished_jobs
from ..store_protocols import LibraryStores, PaperRecords
from ..written_files import WrittenFiles
from .apply_changes import apply_changes
from .catalog import Catalog
from .checkpoints import open_checkpoints
from .figure_files import FigureFiles
from .file_tables import FileRecords, metadata_tables, run_tables
from .folder_home import FolderHome
from .fulltext import FullText
from .local_server import LocalServerRegistry, server_tables
from .local_uploads import UPLOAD, LocalUploads
from .lock import WriterLock, run_lock, run_under_way, try_acquire
from .vectors import VectorStore

if TYPE_CHECKING:
    from .vector_search import Nearest

_HOUR: Final = 3600.0


class LocalStores:
    """Catalog (SQLite), vectors (Chroma) and words (tantivy) in a folder."""

    def __init__(self, home: FolderHome) -> None:
        self.catalog = Catalog(home.catalog, FigureFiles(home))
        self.vectors = VectorStore(home, self.catalog)
        self.words = FullText(home)
        self.metadata = MetadataStore(metadata_tables(home.metadata))

    def last_seen_revision(self) -> None:
        """None: a search reads three stores."""

    def search(self, records: PaperRecords) -> Nearest:
        from .vector_search import Nearest  # with numpy

        return Nearest(records, self.vectors, self.catalog)

    def state(self) -> list[tuple[bool, str, str]]:
        """Nothing: the stores are compared with each other."""
        return []

    def carry_out(self, changes: Sequence[Change]) -> None:
        apply_changes(changes, self.catalog, self.vectors, self.words)
        self.catalog.commit(changes)

    def restore(self) -> list[str]:
        """Nothing: no store holds what another one could be restored from."""
        return []

    def close(self) -> None:
        self.vectors.close()
        self.words.close()
        self.catalog.close()


class LocalBackend:
    """A home in a folder."""

    def __init__(self, home: FolderHome) -> None:
        self._home = home

    def open_library(self) -> LibraryStores:
        return LocalStores(self._home)

    def open_catalog(self) -> Catalog:
        return Catalog(self._home.catalog, FigureFiles(self._home))

    def open_journal(self) -> Journal:
        return Journal.open(self._home.journal)

    def journal_database(self) -> JournalFile:
        return JournalFile(self._home.journal)

    def runs(self) -> RunRegister:
        return RunRegister(run_tables(self._home.runs))

    def edited_sentences(self) -> EditedSentences:
        return EditedSentences(run_tables(self._home.runs))

    def conversations(self) -> ConversationRegister:
        return ConversationRegister(run_tables(self._home.runs))

    def written_files(self) -> WrittenFiles:
        return WrittenFiles(run_tables(self._home.runs))

    def plots(self) -> LocalUploads:
        return LocalUploads(self._home.plots, PLOT_SET, PLOTS_KEPT)

    def uploads(self) -> LocalUploads:
        """Those in the folder of papers; while a server is at work, one of the last hour is not idle."""
        server = FileLock(self._home.locks / "server.lock", thread_local=False)
        alone = self._home.copy_of is None and try_acquire(server)
        server.release()
        root = (self._home.copy_of or self._home.root) / self._home.papers.name
        return LocalUploads(root, UPLOAD, 0 if alone else _HOUR, lambda: unfinished_jobs(server_tables(self._home)))

    def forget_job(self, job_id: str) -> None:
        forget_job(server_tables(self._home), job_id, shared=False)

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        return open_checkpoints(self._home.checkpoints)

    def records(self) -> FileRecords:
        return FileRecords(self._home)

    def writer_lock(self) -> WriterLock:
        return WriterLock(self._home)

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        return run_lock(self._home, thread_id, on_wait)

    def run_under_way(self, thread_id: str) -> bool:
        return run_under_way(self._home, thread_id)

    def created_at(self) -> float:
        return self._home.catalog.stat().st_ctime

    def join_servers(self) -> LocalServerRegistry:
        return LocalServerRegistry(self._home)
