"""The library as readers see it: papers, their structure, their chunks, and what is near to a vector.

Only ready papers are seen. All methods block and may be called from several threads at once; what another
process has written is noticed at the next call.
"""

from __future__ import annotations

import difflib
import hashlib
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from ..documents import Category, Chunk, Paper, Section, chunk_id, split_chunk_id
from ..errors import InputError
from ..models.embeddings.protocol import EmbeddingModel, Vector
from ..plurals import counted
from .apply_changes import apply_changes
from .catalog import Catalog
from .chroma import VectorStoreError
from .exact_search import cosines
from .fulltext import FULLTEXT_VERSION, FullText, FullTextError, TextScope
from .home import Home
from .lock import WriterLock
from .paper_change import Change, PaperRecord
from .vector_search import Nearest, NearPaper, keys_within, unchanged
from .vectors import VectorStore


class UnknownPaperError(InputError):
    """There is no paper with the key."""


class Library:
    """An open library; `home` is where it lives, `embedding` the model that its vectors are made by."""

    def __init__(self, home: Home, embedding: EmbeddingModel, catalog: Catalog, vectors: VectorStore) -> None:
        self.home = home
        self.embedding = embedding
        self.catalog = catalog
        self.store = vectors
        self.fulltext = FullText(home)
        self._nearest = Nearest(self)
        self._lock = threading.RLock()
        self._token: tuple[int, int] | None = None
        self._records: Mapping[str, PaperRecord] = {}
        self._chunk_total = 0

    @classmethod
    def open(
        cls,
        home: Home,
        embedding: EmbeddingModel,
        *,
        create: bool = True,
        on_notice: Callable[[str], None] | None = None,
    ) -> Library:
        """Open the library of a home, and carry out changes that a killed process has left.

        `on_notice` is told in one line of work that a large library takes long for.
        Raises `InputError` when there is none and `create` is off, when the home cannot be written, and when
        the library was made with another embedding model.
        """
        if not create:
            home.require_library()
        home.prepare()
        library = cls(home, embedding, Catalog(home.catalog), VectorStore(home))
        try:
            library.require_same_embedding()
            library.mend(on_notice)
        except BaseException:
            library.close()
            raise
        return library

    def close(self) -> None:
        """Let go of the files."""
        self.store.close()
        self.fulltext.close()
        self.catalog.close()

    def require_same_embedding(self) -> None:
        """Raise `InputError` when the library's vectors were made by another model."""
        made_by = self.catalog.meta("embedding")
        if made_by is not None and made_by != self.embedding.name:
            raise InputError(
                f"{self.home.root}: was made with the embedding model {made_by},"
                f" but {self.embedding.name} is configured.",
                help="Set CITELOOM_EMBEDDING_MODEL back, or ingest into another --home.",
            )

    def mend(self, on_notice: Callable[[str], None] | None = None) -> list[str]:
        """Carry out staged changes and make a missing full-text index, unless a writer is at work; gives the keys."""
        if not self.catalog.unfinished() and (self._has_fulltext() or not self.records()):
            return []
        with WriterLock(self.home).try_held() as held:
            if held and on_notice is not None and not self._has_fulltext():
                on_notice(f"Making the full-text index of {counted(self.chunk_count(), 'chunk')}; this is done once.")
            try:
                return self.finish_staged() if held else []
            except (FullTextError, VectorStoreError):
                return []  # whoever reads that store is told, and `doctor` must be able to open the library

    def _has_fulltext(self) -> bool:
        return self.catalog.meta("fulltext") == FULLTEXT_VERSION and self.fulltext.exists()

    def rebuild_fulltext(self) -> None:
        """Make the full-text index anew from the chunks that are kept; the caller holds the writer lock."""
        self.catalog.set_meta("fulltext", "building")  # a kill from here on has it made again
        self.fulltext.create()
        self.fulltext.put_all(chunk for key in self.records() for chunk in self.paper_chunks(key))
        self.catalog.set_meta("fulltext", FULLTEXT_VERSION)

    def finish_staged(self) -> list[str]:
        """Carry out staged changes, and make the full-text index if need be; the caller holds the writer lock."""
        if not self._has_fulltext():
            self.rebuild_fulltext()
        keys = self.catalog.unfinished()
        if keys:
            self.carry_out([self.catalog.staged(key) for key in keys])
        return keys

    def carry_out(self, changes: Sequence[Change]) -> None:
        """Bring staged changes to the other stores and mark them as done; doing it twice does no harm."""
        self.records()  # what another process has written is seen after reopening only, and must not be written over
        apply_changes(changes, self.catalog, self.store, self.fulltext)
        self.catalog.commit(changes)

    def records(self) -> Mapping[str, PaperRecord]:
        """The ready papers with what the catalog knows of them, by key."""
        with self._lock:
            token = self.catalog.state_token()
            if token != self._token:
                if self._token is not None and token[0] != self._token[0]:
                    # Another process has written: its vectors are seen after reopening only.
                    self.store.close()
                    self.fulltext.close()
                self._records = self.catalog.records()
                self._chunk_total = sum(record.chunk_count for record in self._records.values())
                self._token = token
            return self._records

    def version(self) -> str:
        """Changes with any change of content or metadata, and only then; not with the place of the files."""
        digest = hashlib.sha256(self.embedding.name.encode())
        for key, record in sorted(self.records().items()):
            noted = (record.note.text,) if record.note else ()
            parts = (key, record.paper.content_hash, record.metadata_hash, record.chunking, *noted)
            digest.update("\0".join(parts).encode() + b"\1")
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
        """The paper with a key; raises `UnknownPaperError` naming near matches."""
        return self._record(key).paper

    def summary(self, key: str) -> str:
        """The summary of a paper; raises `UnknownPaperError`."""
        return self._record(key).summary

    def note(self, key: str) -> str:
        """The user's note on a paper, empty without one and never evidence; raises `UnknownPaperError`."""
        note = self._record(key).note
        return note.text if note else ""

    def sections(self, key: str) -> list[Section]:
        """All sections of a paper, searchable or not; raises `UnknownPaperError`."""
        self._record(key)
        return self.catalog.sections(key)

    def chunk_count(self, key: str | None = None) -> int:
        """Chunks of a paper, or of all; raises `UnknownPaperError`."""
        if key is not None:
            return self._record(key).chunk_count
        self.records()
        return self._chunk_total

    def _present(self, ids: Iterable[str]) -> set[str]:
        """Those of the ids that are of chunks of ready papers."""
        records = self.records()
        found: set[str] = set()
        for identifier in ids:
            try:
                key, index = split_chunk_id(identifier)
            except ValueError:
                continue
            if key in records and index < records[key].chunk_count:
                found.add(identifier)
        return found

    def chunks(self, ids: Sequence[str]) -> list[Chunk]:
        """The chunks with these ids in the order asked; ids that are not in the library are left out."""
        present = self._present(ids)
        known = [identifier for identifier in dict.fromkeys(ids) if identifier in present]
        found = self.store.get_chunks(known) if known else {}
        return [found[identifier].chunk for identifier in ids if identifier in found]

    def paper_chunks(self, key: str) -> list[Chunk]:
        """All chunks of a paper in order; raises `UnknownPaperError`."""
        return self.chunks([chunk_id(key, index) for index in range(self._record(key).chunk_count)])

    def window(self, identifier: str, size: int = 1) -> list[Chunk]:
        """A chunk with `size` neighbours on either side, fewer at the ends of the paper.

        Raises ValueError when it is no chunk id, `UnknownPaperError` when there is no such paper.
        """
        key, index = split_chunk_id(identifier)
        count = self._record(key).chunk_count
        if index >= count:
            return []
        return self.chunks([chunk_id(key, near) for near in range(max(0, index - size), min(count, index + size + 1))])

    def introduction(self, key: str, tokens: int = 500) -> list[Chunk]:
        """The first `tokens` tokens, about, of a paper's introduction; of its body when it has none named so.

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

    def nearest_ids(
        self,
        vector: Vector,
        k: int,
        *,
        keys: Collection[str] | None = None,
        categories: Collection[Category] | None = None,
        years: tuple[int, int] | None = None,
        venue: str | None = None,
    ) -> list[tuple[str, float]]:
        """Ids and cosines (-1 to 1) of the `k` nearest chunks, best first; fewer when the scope holds fewer.

        `years` are the first and the last, both included, `venue` a part of its name; None sets no limit.
        """
        return self._nearest.ids(vector, k, keys_within(self.records(), keys, years, venue), categories)

    def cosines(self, vector: Vector, ids: Sequence[str]) -> dict[str, float]:
        """The cosine (-1 to 1) of each of these chunks; those that are not there are left out."""
        return cosines(self.store.get_vectors(ids), vector)

    def matching(
        self,
        terms: Sequence[str],
        k: int,
        *,
        keys: Collection[str] | None = None,
        categories: Collection[Category] | None = None,
        years: tuple[int, int] | None = None,
        venue: str | None = None,
        ids: Collection[str] | None = None,
    ) -> list[tuple[str, float]]:
        """Ids and BM25 scores of the `k` chunks that match the terms best (see `FullText.analyze`), best first.

        The scope is that of `nearest_ids`, and `ids` those of single chunks. Raises `FullTextError` when there is
        no index, or none that can be read.
        """
        limits = (keys, years, venue)
        return unchanged(
            self.records,
            lambda records: self._matching(terms, k, TextScope(keys_within(records, *limits), categories, ids)),
        )

    def _matching(self, terms: Sequence[str], k: int, scope: TextScope) -> list[tuple[str, float]]:
        if not self.records():
            return []
        asked = k
        while True:
            found = self.fulltext.search(terms, asked, scope)
            present = self._present(identifier for identifier, _ in found)
            if len(present) >= k or len(found) < asked:
                return [(identifier, score) for identifier, score in found if identifier in present][:k]
            asked *= 2  # what another process is writing must not take the place of what is whole

    def nearest_papers(self, vector: Vector, k: int) -> list[NearPaper]:
        """The `k` papers whose summary, or a passage of the user's note on them, is nearest; best first."""
        return self._nearest.papers(vector, k)
