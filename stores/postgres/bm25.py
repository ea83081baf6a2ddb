"""BM25 in PostgreSQL: postings of the same terms as in a folder's full-text index.

A row of `postings` holds a term of a paper: the chunks that contain it, how often, and the length of the field there.
The postings of a query's terms are read in one statement and scored here, for every chunk that contains a term: results
are exact, need no extension, and cost the shared server only reads. Data about papers, such as the categories of their
chunks, is read once per revision of the library. k1, b and the idf are the same as in tantivy, which rounds lengths.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from ...documents import Chunk, chunk_id, text_hash
from ...table_columns import BLOB, TEXT, TypedTable, integer
from ..store_protocols import TextScope, WordIndex
from ..text_analysis import K1, SECTION_WEIGHT, B, analyze
from .database import Database, DatabaseError, LibraryTables, SeenRevision, increment_revision

_TEXT, _SECTION = 0, 1
_POSTING_TYPES: Final = "text int2 int4 bytea".split()
_ENTRY: Final = np.dtype([("place", "<i4"), ("count", "<u2"), ("length", "<u2")])
_NUMBER: Final = np.dtype(">i4")  # as `int4send` writes it
_DIGITS: Final = 9  # of a score
_MOST: Final = 2**16 - 1  # of a count or a length
_PAPERS_PER_COMMIT: Final = 50
_TRIES: Final = 5  # for a search during which writers commit
# A row for each term and field with all its papers in scope; the count of matching chunks includes those out of scope.
# The revision tells whether the cached data about papers is still valid.
SEARCH: Final = """
SELECT revision.number, field, held, papers, sizes, entries FROM revision LEFT JOIN (
    SELECT field, sum(octet_length(entries)) AS held, string_agg(int4send(paper), '') FILTER (WHERE inside) AS papers,
        string_agg(int4send(octet_length(entries)), '') FILTER (WHERE inside) AS sizes,
        string_agg(entries, '') FILTER (WHERE inside) AS entries
    FROM (
        SELECT *, %(papers)s::int[] IS NULL OR paper = ANY(%(papers)s) AS inside FROM postings
        WHERE term = ANY(%(terms)s)
    ) AS rows GROUP BY term, field
) AS terms ON true
"""
_PAPERS: Final = (
    "SELECT revision.number, key, paper, categories, text_terms, section_terms"
    " FROM revision LEFT JOIN word_totals ON true ORDER BY (key || ':') COLLATE \"C\""
)
_NUMBERS: Final = integer()
_WORD_TOTALS: Final = TypedTable(
    "word_totals",
    ("key",),
    {"number": replace(_NUMBERS, source="revision.number"), "key": TEXT, "paper": _NUMBERS, "categories": BLOB}
    | {"text_terms": _NUMBERS, "section_terms": _NUMBERS},
)
_TOTALS: Final = (
    "INSERT INTO word_totals (key, hashes, categories, text_terms, section_terms) VALUES (%s, %s, %s, %s, %s)"
    " RETURNING paper"
)


class _Papers:
    """The papers of the library at a revision; its chunks are numbered in the order of their ids."""

    def __init__(self, rows: Sequence[tuple[Any, ...]]) -> None:
        held = [row for row in rows if row[1] is not None]
        self.revision: int = rows[0][0]
        self.numbers = {row[1]: int(row[2]) for row in held}
        self.categories = np.frombuffer(b"".join(row[3] for row in held), np.uint8)
        self._keys: list[str] = [row[1] for row in held]
        self._firsts = np.cumsum([0, *(len(row[3]) for row in held)])
        self.first_chunk = np.zeros(max(self.numbers.values(), default=0) + 1, np.int64)
        self.first_chunk[list(self.numbers.values())] = self._firsts[:-1]
        chunks = max(1, len(self.categories))
        self.means = {_TEXT: sum(row[4] for row in held) / chunks, _SECTION: sum(row[5] for row in held) / chunks}

    def chunk_ids(self, chunks: NDArray[np.int64]) -> list[str]:
        papers = np.searchsorted(self._firsts, chunks, side="right") - 1
        places = chunks - self._firsts[papers]
        return list(map(chunk_id, (self._keys[paper] for paper in papers.tolist()), places.tolist()))

    def weight(self, field: int, holding: int) -> float:
        rarity = math.log(1 + (len(self.categories) - holding + 0.5) / (holding + 0.5))
        return (1 + K1) * rarity * (1.0 if field == _TEXT else SECTION_WEIGHT)


class PostgresWords(LibraryTables, WordIndex):
    """The words of all chunks; thread-safe."""

    _binary = True

    def __init__(self, database: Database, seen: SeenRevision) -> None:
        super().__init__(database)
        self._seen = seen
        self._papers: _Papers | None = None

    def exists(self) -> bool:
        return True

    def create(self) -> None:
        with self.database.transaction() as connection:
            increment_revision(connection)
            connection.execute("TRUNCATE postings, word_totals")

    def put_all(self, papers: Iterator[tuple[str, Sequence[Chunk]]]) -> None:
        while part := dict(islice(papers, _PAPERS_PER_COMMIT)):
            with self.database.transaction() as connection:
                increment_revision(connection)
                write_postings(connection.cursor(), part)

    def entries(self, keys: Collection[str] | None = None) -> dict[str, str]:
        query = "SELECT key, hashes FROM word_totals WHERE %(keys)s::text[] IS NULL OR key = ANY(%(keys)s)"
        rows = self.rows(query, {"keys": None if keys is None else sorted(keys)})
        return {chunk_id(key, index): text for key, hashes in rows for index, text in enumerate(hashes)}

    def search(self, terms: Sequence[str], k: int, scope: TextScope) -> list[tuple[str, float]]:
        if not terms or k < 1:
            return []
        wanted = sorted(set(terms))
        papers = self._papers or self._read_papers()
        for _ in range(_TRIES):
            rows = self.rows(SEARCH, {"terms": wanted, "papers": _paper_numbers(scope, papers)})
            self._seen.update(rows[0][0])
            if rows[0][0] == papers.revision:
                break
            papers = self._read_papers()
        else:
            message = f"{self.database.url} is being changed too often to be read."
            raise DatabaseError(message, help="Run the same command again.")
        try:
            scores = _score_chunks([row for row in rows if row[3]], papers)
        except (IndexError, TypeError, ValueError):
            raise DatabaseError(
                f"{self.database.url}: table postings, column entries, row term={' or '.join(wanted)!r:.200}:"
                " does not fit the table word_totals.",
                help="Run '{citeloom} doctor --repair'.",
            ) from None
        return _best(scores, _in_scope(np.flatnonzero(scores), scope, papers), papers, k)

    def _read_papers(self) -> _Papers:
        rows = self.rows(_PAPERS)
        with self.database.translate_errors():
            _WORD_TOTALS.decode(list(_WORD_TOTALS.columns), [row for row in rows if row[1] is not None])
        self._papers = _Papers(rows)
        return self._papers

    def rarity(self, terms: Collection[str]) -> dict[str, float]:
        query = (
            "SELECT term, sum(octet_length(entries)) FROM postings WHERE field = %s AND term = ANY(%s) GROUP BY term"
        )
        found = {term: int(size) // _ENTRY.itemsize for term, size in self.rows(query, (_TEXT, list(terms)))}
        (total,) = self.rows("SELECT coalesce(sum(octet_length(categories)), 0) FROM word_totals")[0]
        most = max(1, int(total))
        return {term: 1 - min(most, found.get(term, 0)) / (most + 1) for term in terms}


def _paper_numbers(scope: TextScope, papers: _Papers) -> list[int] | None:
    keys = None if scope.keys is None else set(scope.keys)
    if scope.ids is not None:
        named = {identifier.rpartition(":")[0] for identifier in scope.ids}
        keys = named if keys is None else named & keys
    return None if keys is None else [papers.numbers[key] for key in sorted(papers.numbers.keys() & keys)]


def _score_chunks(rows: Sequence[tuple[Any, ...]], papers: _Papers) -> NDArray[np.float64]:
    """The BM25 score of every chunk, 0 without a term; computed in place for speed."""
    entries = np.frombuffer(b"".join(row[5] for row in rows), _ENTRY)
    firsts = papers.first_chunk[np.frombuffer(b"".join(row[3] for row in rows), _NUMBER)]
    of_paper = np.frombuffer(b"".join(row[4] for row in rows), _NUMBER) // _ENTRY.itemsize
    chunks = np.repeat(firsts, of_paper)
    chunks += entries["place"]
    gains, lengths, start = entries["count"].astype(np.float64), entries["length"].astype(np.float64), 0
    for _, field, held, _, _, packed in rows:
        end = start + len(packed) // _ENTRY.itemsize
        gain, length = gains[start:end], lengths[start:end]
        length *= K1 * B / papers.means[field]
        length += K1 * (1 - B)
        length += gain
        gain /= length
        gain *= papers.weight(field, int(held) // _ENTRY.itemsize)
        start = end
    return np.bincount(chunks, gains, len(papers.categories)).astype(np.float64, copy=False)


def _in_scope(chunks: NDArray[np.int64], scope: TextScope, papers: _Papers) -> NDArray[np.int64]:
    """The chunks that are in scope, applying the filters that the query did not."""
    if scope.categories is not None:
        wanted = [int(category) for category in scope.categories]
        chunks = chunks[np.isin(papers.categories[chunks], wanted)]
    if scope.ids is not None:
        ids = set(scope.ids)
        inside = (identifier in ids for identifier in papers.chunk_ids(chunks))
        chunks = chunks[np.fromiter(inside, np.bool_, len(chunks))]
    return chunks


def _best(scores: NDArray[np.float64], chunks: NDArray[np.int64], papers: _Papers, k: int) -> list[tuple[str, float]]:
    """The best of these chunks, ties by id; scores are rounded, since their last digits vary."""
    found = scores[chunks]
    if len(found) > k:  # round and sort only chunks that can be among the best
        among = found > np.partition(found, len(found) - k)[len(found) - k] - 10.0**-_DIGITS
        chunks, found = chunks[among], found[among]
    rounded = np.round(found, _DIGITS)
    best = np.lexsort((chunks, -rounded))[:k]
    return list(zip(papers.chunk_ids(chunks[best]), rounded[best].tolist(), strict=True))


def write_postings(cursor: Any, papers: Mapping[str, Sequence[Chunk]]) -> None:
    """Write the postings of papers that have none yet."""
    copy_postings(cursor, [build_rows(key, chunks) for key, chunks in papers.items()])


PostingRow = tuple[str, int, bytes]


def build_rows(key: str, chunks: Sequence[Chunk]) -> tuple[tuple[object, ...], list[PostingRow]]:
    """The rows stored for a paper's words: one for `word_totals`, and its terms with field and entries."""
    lengths = {_TEXT: 0, _SECTION: 0}
    found: dict[tuple[str, int], list[tuple[int, int, int]]] = defaultdict(list)  # place, count and length of the field
    for chunk in chunks:
        for field, text in ((_TEXT, chunk.text), (_SECTION, f"{chunk.parent} {chunk.section}")):
            terms = analyze(text)
            lengths[field] += len(terms)
            for term, count in Counter(terms).items():
                found[term, field].append((chunk.index, min(count, _MOST), min(len(terms), _MOST)))
    hashes = [text_hash(chunk.text) for chunk in chunks]
    kinds = bytes(int(chunk.category) for chunk in chunks)
    entries = [(term, field, np.array(each, _ENTRY).tobytes()) for (term, field), each in found.items()]
    return (key, hashes, kinds, lengths[_TEXT], lengths[_SECTION]), entries


def copy_postings(cursor: Any, papers: Sequence[tuple[tuple[object, ...], list[PostingRow]]]) -> None:
    """Write the rows of papers, in the order in which they are searched."""
    written = []
    for totals, entries in papers:
        cursor.execute(_TOTALS, totals)
        (paper,) = cursor.fetchone()
        written += [(term, field, paper, packed) for term, field, packed in entries]
    with cursor.copy("COPY postings FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(_POSTING_TYPES)
        for row in sorted(written):
            copy.write_row(row)
