"""The library: reads papers, their structure and their chunks, and searches them.

Only ready papers are visible. All methods block and are thread-safe; changes by another process are picked up at
the next call.
"""

from __future__ import annotations

import difflib
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ..documents import Category, Chunk, Paper, Section, chunk_id, same_section, split_chunk_id
from ..documents.figures import PaperFigure
from ..errors import InputError
from ..models.embeddings.protocol import EmbeddingModel, Vector
from ..plurals import counted
from . import store_protocols as protocols
from .home import Home
from .paper_catalog import Change, CurrentRecords, PaperRecord
from .store_protocols import EVERYTHING, LibraryStores, Scored, TextScope
from .text_analysis import FULLTEXT_VERSION

if TYPE_CHECKING:
    from ..documents.passages import TableHead
    from .described_figures import DescribedFigures

_LONGEST_TABLE = 12  # preceding chunks searched for the column names of a table


class UnknownPaperError(InputError):
    """The library has no paper with this key."""


class Library:
    """An open library in `home`, whose vectors come from the `embedding` model."""

    def __init__(self, home: Home, embedding: EmbeddingModel, stores: LibraryStores) -> None:
        self.home = home
        self.embedding = embedding
        self.stores = stores
        self.catalog = stores.catalog
        self.store = stores.vectors
        self.fulltext = stores.words
        self.metadata = stores.metadata
        self.records = CurrentRecords(stores.catalog, self._reopen, stores.last_seen_revision)

    def _reopen(self) -> None:
        self.store.close()
        self.fulltext.close()

    @functools.cached_property
    def _nearest(self) -> protocols.ScopedSearch:
        return self.stores.search(self.records)

    @functools.cached_property
    def described(self) -> DescribedFigures:
        from .described_figures import DescribedFigures  # imports numpy

        return DescribedFigures(self.catalog, self.fulltext, self.records)

    @classmethod
    def open(
        cls,
        home: Home,
        embedding: EmbeddingModel,
        *,
        create: bool = True,
        on_notice: Callable[[str], None] | None = None,
    ) -> Library:
        """Open the library of a home, and apply changes left staged by a killed process.

        `on_notice` is called with one line about work that takes long in a large library.
        Raises `InputError` if there is no library and `create` is false, if the home is not writable, and if the
        library was created with another embedding model.
        """
        if not create:
            home.require_library()
        home.prepare()
        library = cls(home, embedding, home.open_library())
        try:
            library.require_same_embedding()
            library.repair(on_notice)
        except BaseException:
            library.close()
            raise
        return library

    def close(self) -> None:
        self.stores.close()

    def require_same_embedding(self) -> None:
        """Raise `InputError` if the library's vectors come from another model."""
        made_by = self.catalog.meta("embedding")
        if made_by is not None and made_by != self.embedding.name:
            raise InputError(
                f"{self.home.name} was created with the embedding model {made_by},"
                f" but {self.embedding.name} is configured.",
                help="Set CITELOOM_EMBEDDING_MODEL back, or ingest into another --home.",
            )

    def repair(self, on_notice: Callable[[str], None] | None = None) -> list[str]:
        """Apply staged changes and build a missing full-text index, unless a writer is active; returns the keys."""
        if not self.catalog.unfinished() and (self._has_fulltext() or not self.records()):
            return []
        with self.home.writer_lock().try_held() as held:
            if held and on_notice is not None and not self._has_fulltext():
                on_notice(f"Building the full-text index of {counted(self.chunk_count(), 'chunk')}; this is done once.")
            try:
                return self.finish_staged() if held else []
            except (protocols.FullTextError, protocols.VectorStoreError):
                return []  # reported when that store is read; `doctor` must be able to open the library

    def _has_fulltext(self) -> bool:
        return self.catalog.meta("fulltext") == FULLTEXT_VERSION and self.fulltext.exists()

    def rebuild_fulltext(self) -> None:
        """Rebuild the full-text index from the stored chunks; the caller holds the writer lock."""
        self.catalog.set_meta("fulltext", "building")  # if killed from here on, the next open rebuilds it
        self.fulltext.create()
        self.fulltext.put_all((key, self.paper_chunks(key)) for key in self.records())
        self.catalog.set_meta("fulltext", FULLTEXT_VERSION)

    def finish_staged(self) -> list[str]:
        """Apply staged changes, and build the full-text index if needed; the caller holds the writer lock."""
        if not self._has_fulltext():
            self.rebuild_fulltext()
        keys = self.catalog.unfinished()
        if keys:
            self.carry_out([self.catalog.staged_change(key) for key in keys])
        return keys

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Apply staged changes to the other stores and commit them; idempotent."""
        self.records()  # reopens the stores if another process has written, so that its changes are not overwritten
        self.stores.carry_out(changes)

    def version(self) -> str:
        """A hash of all content and metadata; it does not depend on where the files are."""
        digest = hashlib.sha256(self.embedding.name.encode())
        for key, record in sorted(self.records().items()):
            noted = (record.note.text,) if record.note else ()
            parts = (key, record.paper.content_hash, record.metadata_hash, record.chunking, *noted)
            digest.update("\0".join(parts).encode() + b"\1")
        digest.update(self.described.fingerprint())
        return digest.hexdigest()[:16]

    def papers(self) -> list[Paper]:
        """The ready papers, sorted by key."""
        return [record.paper for _, record in sorted(self.records().items())]

    def _record(self, key: str) -> PaperRecord:
        records = self.records()
        if key in records:
            return records[key]
        near = difflib.get_close_matches(key, records, n=3, cutoff=0.5)
        near = near or [other for other in records if key.lower() in other.lower()][:3]
        hint = f"Did you mean {', '.join(near)}?" if near else "See '{citeloom} papers list' for the keys."
        raise UnknownPaperError(f"There is no paper {key!r} in the library.", help=hint)

    def paper(self, key: str) -> Paper:
        """The paper with this key; raises `UnknownPaperError` naming similar keys."""
        return self._record(key).paper

    def summary(self, key: str) -> str:
        """The summary of a paper; raises `UnknownPaperError`."""
        return self._record(key).summary

    def note(self, key: str) -> str:
        """The user's note on a paper, empty if there is none; never used as evidence. Raises `UnknownPaperError`."""
        note = self._record(key).note
        return note.text if note else ""

    def figures(self, key: str) -> tuple[PaperFigure, ...]:
        """The figures and tables of a paper, none if they were never read; raises `UnknownPaperError`."""
        self._record(key)
        return self.catalog.figures(key)

    def figure_image(self, figure: PaperFigure) -> bytes | None:
        """The image of a figure, PNG or JPEG; None if it has none, or it is missing or damaged."""
        return self.catalog.image(figure.image_hash) if figure.image_hash else None

    def sections(self, key: str) -> list[Section]:
        """All sections of a paper, searchable or not; raises `UnknownPaperError`."""
        self._record(key)
        return self.catalog.sections(key)

    def chunk_count(self, key: str | None = None) -> int:
        """The number of chunks of a paper, or of all papers; raises `UnknownPaperError`."""
        if key is not None:
            return self._record(key).chunk_count
        return self.records.chunk_total()

    def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks with these ids, in the given order; unknown ids are skipped."""
        known = list(dict.fromkeys(ids))
        if self.stores.last_seen_revision() is None:
            present = present_ids(self.records(), known)
            known = [identifier for identifier in known if identifier in present]
        found = self.store.get_chunks(known) if known else {}
        return [found[identifier] for identifier in ids if identifier in found]

    def table_head(self, chunk: Chunk) -> TableHead | None:
        """The column names of the table inside which a chunk begins; None if there is none or its head is far back."""
        from ..documents.passages import continues_table, open_table_head  # a markdown parser; not needed for lists

        if not continues_table(chunk.text):
            return None
        before = range(chunk.index - 1, max(-1, chunk.index - 1 - _LONGEST_TABLE), -1)
        for earlier in self.chunks([chunk_id(chunk.key, index) for index in before]):
            if not same_section(earlier, chunk):
                break
            if (head := open_table_head(earlier.id, earlier.text)) or not continues_table(earlier.text):
                return head
        return None

    def paper_chunks(self, key: str) -> list[Chunk]:
        """All chunks of a paper in order; raises `UnknownPaperError`."""
        return self.chunks([chunk_id(key, index) for index in range(self._record(key).chunk_count)])

    def window(self, identifier: str, size: int = 1) -> list[Chunk]:
        """A chunk with up to `size` neighbours on either side.

        Raises ValueError if it is not a chunk id, `UnknownPaperError` if there is no such paper.
        """
        key, index = split_chunk_id(identifier)
        count = self._record(key).chunk_count
        if index >= count:
            return []
        return self.chunks([chunk_id(key, near) for near in range(max(0, index - size), min(count, index + size + 1))])

    def introduction(self, key: str, tokens: int = 500) -> list[Chunk]:
        """Roughly the first `tokens` tokens of a paper's introduction, or of its body if it has no introduction.

        Raises `UnknownPaperError`.
        """
        self._record(key)
        rows = self.catalog.chunk_rows(keys=[key])
        named = [row for row in rows if row.category is Category.INTRODUCTION]
        body = [row for row in rows if row.category is not Category.ABSTRACT]
        taken: list[str] = []
        total = 0
        for row in named or body or rows:
            if total >= tokens:
                break
            taken.append(row.id)
            total += row.tokens
        return self.chunks(taken)

    def nearest_ids(self, vector: Vector, k: int, scope: TextScope = EVERYTHING) -> Scored:
        """Ids and cosines (-1 to 1) of the `k` nearest chunks, best first; fewer if the scope has fewer.

        A chunk's cosine is the higher one of its text and of the description of a figure that it captions.
        """
        scope = scope.by_keys(self.records)
        return self.described.near(self._nearest.ids(vector, k, scope), vector, k, scope)

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine (-1 to 1) of each of these chunks; unknown ids are skipped."""
        return self.described.nearest(self._nearest.cosines(vector, ids), vector)

    def matching(self, terms: Sequence[str], k: int, scope: TextScope = EVERYTHING) -> Scored:
        """Ids and BM25 scores of the `k` chunks that best match the terms (see `analyze`), best first.

        Raises `FullTextError` if the index is missing or cannot be read.
        """
        if self.stores.last_seen_revision() is not None:
            within = scope.by_keys(self.records)
            return self.described.matching(self.fulltext.search(terms, k, within), terms, k, within)

        def search(records: Mapping[str, PaperRecord]) -> Scored:
            asked, within = k, scope.by_keys(lambda: records)
            while records:
                found = self.fulltext.search(terms, asked, within)
                present = present_ids(records, (identifier for identifier, _ in found))
                if len(present) >= k or len(found) < asked:
                    known = [(identifier, score) for identifier, score in found if identifier in present][:k]
                    return self.described.matching(known, terms, k, within)
                asked *= 2  # hits of papers that another process is writing must not displace ready ones
            return []

        return protocols.repeat_until_stable(self.records, search)

    def nearest_papers(self, vector: Vector, k: int) -> list[protocols.NearPaper]:
        """The `k` papers with the nearest summary or passage of a note, best first."""
        return self._nearest.papers(vector, k)


def present_ids(records: Mapping[str, PaperRecord], ids: Iterable[str]) -> set[str]:
    """The ids that belong to chunks of ready papers."""
    places = protocols.split_ids(ids)
    return {chunk_id(key, index) for key, index in places if key in records and index < records[key].chunk_count}
