"""Opens what a home in a folder holds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING

from ...models.journal.journal import Journal
from ..home import Home
from ..home_protocols import Checkpoints
from ..paper_change import Change
from ..store_protocols import LibraryStores
from .apply_changes import apply_changes
from .catalog import Catalog
from .checkpoints import open_checkpoints
from .conversation_registry import ConversationRegister
from .edited_sentences import EditedSentences
from .figure_files import FigureFiles
from .fulltext import FullText
from .lock import WriterLock, run_lock, run_under_way
from .run_registry import RunRegister
from .vector_search import Nearest
from .vectors import VectorStore
from .written_files import WrittenFiles

if TYPE_CHECKING:
    from ..library import Library


class LocalStores:
    """Catalog (SQLite), vectors (Chroma) and words (tantivy) in a folder."""

    def __init__(self, home: Home) -> None:
        self.catalog = Catalog(home.catalog, FigureFiles(home))
        self.vectors = VectorStore(home)
        self.words = FullText(home)

    def search_of(self, library: Library) -> Nearest:
        """Exact in a small scope, else oversampling and filtering."""
        return Nearest(library, self.vectors, self.catalog)

    def state(self) -> list[tuple[bool, str, str]]:
        """Nothing: the stores are compared with each other."""
        return []

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Apply the changes to vectors and words, then commit them in the catalog."""
        apply_changes(changes, self.catalog, self.vectors, self.words)
        self.catalog.commit(changes)

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

    def runs(self) -> RunRegister:
        """The register in the file of runs."""
        return RunRegister(self._home.runs)

    def forget_edits(self, thread_id: str) -> None:
        """Delete them from the file of runs."""
        EditedSentences(self._home.runs).forget(thread_id)

    def conversations(self) -> ConversationRegister:
        """The register in the file of runs."""
        return ConversationRegister(self._home.runs)

    def written_files(self) -> WrittenFiles:
        """The hashes in the file of runs."""
        return WrittenFiles(self._home.runs)

    def open_checkpoints(self) -> AbstractAsyncContextManager[Checkpoints]:
        """Open the file of checkpoints."""
        return open_checkpoints(self._home.checkpoints)

    def writer_lock(self) -> WriterLock:
        """A file lock."""
        return WriterLock(self._home)

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """A file lock."""
        return run_lock(self._home, thread_id, on_wait)

    def run_under_way(self, thread_id: str) -> bool:
        """Whether the file is locked."""
        return run_under_way(self._home, thread_id)
