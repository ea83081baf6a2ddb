"""What graph, tools, runs and ingestion need of the stores; folders and PostgreSQL both provide it.

The contract of each method is documented here once; `tests/integration/stores/conformance` checks it on every backend.
The journal has its own protocol, `models/journal/journal_database.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from ..documents import Category, Chunk, Section
from ..models.embeddings.protocol import Vector
from ..models.journal.journal import Journal
from .conversation_registry import CitingTurn, ConversationEntry, KeptTurn
from .fulltext import TextScope
from .paper_change import Change, ChunkRow, PaperRecord
from .run_registry import CitingRun, RunRecord, RunStatus
from .vector_search import NearPaper
from .vectors import StoredChunk

if TYPE_CHECKING:
    from .library import Library

Scored = list[tuple[str, float]]


class PaperCatalog(Protocol):
    """Which papers exist, their structure, and unfinished changes; readers see complete papers only."""

    def state_token(self) -> tuple[int, int]:
        """Changes whenever the catalog does; the first part only when another connection changed it."""
        ...

    def meta(self, name: str) -> str | None:
        """A fact about the library as a whole, such as the embedding model."""
        ...

    def set_meta(self, name: str, value: str) -> None:
        """Store a fact about the library as a whole."""
        ...

    def records(self) -> dict[str, PaperRecord]:
        """All ready papers by key, sorted by key."""
        ...

    def unfinished(self) -> list[str]:
        """Keys of the papers whose change is staged but not committed."""
        ...

    def sections(self, key: str) -> list[Section]:
        """The section tree of a paper, in reading order."""
        ...

    def chunk_rows(
        self, *, keys: Sequence[str] | None = None, categories: Sequence[int] | None = None
    ) -> list[ChunkRow]:
        """The chunks of ready papers within a scope, sorted by key and index; None sets no limit."""
        ...

    def ids_by_text(self, hashes: Iterable[str]) -> dict[str, str]:
        """For each of these text hashes found in a ready paper, the id of a chunk with that text."""
        ...

    def update_metadata(self, records: Iterable[PaperRecord]) -> None:
        """Update the metadata of ready papers whose text and summary stay the same."""
        ...

    def mark_stale(self, keys: Iterable[str]) -> None:
        """Have the next ingest reindex these papers even if their text is unchanged."""
        ...

    def stage(self, changes: Iterable[Change]) -> None:
        """Persist changes in full: from here on they will be applied, even after a crash."""
        ...

    def staged(self, key: str) -> Change:
        """A staged change as it was written; raises KeyError if there is none."""
        ...

    def miscounted(self) -> set[str]:
        """Keys of ready papers whose listed chunks differ from their chunk count, or that have no sections."""
        ...

    def strays(self) -> set[str]:
        """Keys that have chunks, sections or notes but no paper."""
        ...

    def drop_strays(self) -> None:
        """Delete chunks, sections and notes that belong to no paper."""
        ...

    def close(self) -> None:
        """Close the files or connections."""
        ...


class ChunkVectors(Protocol):
    """Texts and vectors of chunks, summaries and passages of notes."""

    def get_chunks(self, ids: Sequence[str], *, vectors: bool = False) -> dict[str, StoredChunk]:
        """The existing chunks, by id."""
        ...

    def get_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the existing chunks, by id."""
        ...

    def summary_vectors(self, keys: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the existing summaries, by key."""
        ...

    def note_vectors(self, ids: Sequence[str]) -> dict[str, Vector]:
        """The vectors of the existing passages of notes, by id."""
        ...

    def chunk_ids(self) -> set[str]:
        """The ids of all chunks."""
        ...

    def passage_ids(self) -> set[str]:
        """The ids of all passages of notes."""
        ...

    def summary_keys(self) -> set[str]:
        """The keys of all papers with a summary."""
        ...

    def delete_chunks(self, ids: Sequence[str]) -> None:
        """Delete chunks; unknown ids are ignored."""
        ...

    def delete_passages(self, ids: Sequence[str]) -> None:
        """Delete passages of notes; unknown ids are ignored."""
        ...

    def delete_summaries(self, keys: Sequence[str]) -> None:
        """Delete the summaries of papers; unknown keys are ignored."""
        ...

    def read_through(self) -> None:
        """Read the vector of every record; raises `VectorStoreError` if one cannot be read."""
        ...

    def set_aside(self) -> Path:
        """Move an unreadable store out of the way; returns its new path."""
        ...

    def close(self) -> None:
        """Close what is open; the next call reopens it and sees what other processes wrote."""
        ...


class WordIndex(Protocol):
    """BM25 over texts and section titles of chunks."""

    def exists(self) -> bool:
        """Whether an index exists, valid or not."""
        ...

    def analyze(self, text: str) -> list[str]:
        """The terms of a text as indexed: lowercased, ASCII-folded, stemmed, without English stop words."""
        ...

    def create(self) -> None:
        """Create an empty index, replacing any existing one."""
        ...

    def put_all(self, chunks: Iterable[Chunk]) -> None:
        """Add the chunks of papers that are not indexed yet, in one commit."""
        ...

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        """Text hashes by chunk id, for these papers or for all."""
        ...

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> Scored:
        """Ids and BM25 scores of the `k` best matching chunks, best first; ties by id."""
        ...

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        """How rare each term is: 1 if it occurs nowhere, near 0 if it occurs in every chunk."""
        ...

    def close(self) -> None:
        """Close what is open; the next call reopens it and sees what other processes wrote."""
        ...


class VectorSearch(Protocol):
    """Nearest chunks and papers."""

    def ids(
        self, vector: Vector, k: int, keys: Collection[str] | None, categories: Collection[Category] | None
    ) -> Scored:
        """Ids and cosines of the `k` nearest chunks of these papers and categories; ties by chunk id."""
        ...

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine of each of these chunks; unknown ids are skipped."""
        ...

    def papers(self, vector: Vector, k: int) -> list[NearPaper]:
        """The `k` papers whose summary, or a passage of whose note, is nearest; ties by key."""
        ...


class LibraryStores(Protocol):
    """The stores of one library, opened together."""

    @property
    def catalog(self) -> PaperCatalog: ...

    @property
    def vectors(self) -> ChunkVectors: ...

    @property
    def words(self) -> WordIndex: ...

    def search_of(self, library: Library) -> VectorSearch:
        """The vector search over a library."""
        ...

    def state(self) -> list[tuple[bool, str, str]]:
        """What a check of the stores reports besides their contents: whether it is fine, its topic, and a message."""
        ...

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Apply staged changes to all stores and make them visible; idempotent."""
        ...

    def close(self) -> None:
        """Close the files or connections."""
        ...


class Runs(Protocol):
    """The register of runs; blocking and thread-safe."""

    def begin(
        self,
        *,
        thread_id: str,
        fingerprint: str,
        section: str,
        title: str,
        request: dict[str, Any],
        library_version: str,
        fresh: bool,
    ) -> RunRecord:
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

    def all(self) -> list[RunRecord]:
        """All runs, most recent first."""
        ...

    def citing(self, key: str) -> list[CitingRun]:
        """The finished runs whose text cites a paper, most recent first."""
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

    def runs(self) -> Runs:
        """The register of runs."""
        ...

    def forget_edits(self, thread_id: str) -> None:
        """Delete the sentences that the user edited in a run."""
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

    def writer_lock(self) -> LibraryLock:
        """The lock of the library's writer."""
        ...

    def run_lock(
        self, thread_id: str, on_wait: Callable[[str], None] | None = None
    ) -> AbstractAsyncContextManager[None]:
        """Lock a run for the block; `on_wait` is called once with a message if another process holds it."""
        ...

    def run_under_way(self, thread_id: str) -> bool:
        """Whether a process currently holds the lock of a run."""
        ...


Records = Mapping[str, PaperRecord]
