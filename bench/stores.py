"""What a library in PostgreSQL costs compared with the bare driver: our calls, and psycopg sending the same SQL.

A reference returns what our call returns: ids with scores, chunks in the order asked for. It uses one connection
without a pool, sees no changes of other processes, and does not name its errors. Rows without a target are compared
with the query alone, whose rows are fetched but not used. The server is that of the tests, or POSTGRES_FOR_TESTS; the
library is made of random words and vectors.
"""

from __future__ import annotations

import asyncio
import math
import random
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector

from bench.measure import Row, Timed, alternate, row_of
from citeloom.documents import Category, Chunk, Paper, Section, chunk_id
from citeloom.models.embeddings.protocol import Vector
from citeloom.models.journal.journal import _FIND
from citeloom.models.journal.records import CallRecord, CallResult, RunScope
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.paper_catalog import Change, PaperRecord, removal, section_rows
from citeloom.stores.postgres import bm25, postgres_catalog, postgres_vectors
from citeloom.stores.postgres.database import increment_revision
from citeloom.stores.store_protocols import TextScope
from citeloom.stores.text_analysis import analyze
from tests.support.journal_calls import once
from tests.support.postgres_server import new_schema, running_server
from tests.support.word_embedding import WordEmbedding

TARGET: Final = 1.3
PAPERS, CHUNKS, WORDS, NUMBERS = 60, 50, 150, 384
Pair = tuple[Callable[[], object], Callable[[], object]]
CALLS = 20  # of each operation in one round


@dataclass(frozen=True)
class _Made:
    """A library, and a bare connection to its database."""

    library: Library
    bare: psycopg.Connection[Any]
    url: str

    def sent(self, query: str, values: Any) -> list[tuple[Any, ...]]:
        """The rows of a query."""
        return self.bare.execute(query.encode(), values, binary=True).fetchall()


async def measure(rounds: int) -> list[Row]:
    """A row for each operation; none, with a line that says why, if no server can be started."""
    try:
        with _make_library() as made:
            rows = [await _row(what, *pair, rounds) for what, pair in _reads(made).items()]
            rows += [await _row(what, *pair, rounds, target=None) for what, pair in _transfers(made).items()]
            rows.append(await _row("ingest: a paper of 50 chunks, staged and committed", *_write(made), rounds))
            rows.append(await _journal(made, rounds))
    except pytest.skip.Exception as reason:
        print(f"stores: skipped ({reason})")
        return []
    return rows


@contextmanager
def _make_library() -> Iterator[_Made]:
    with ExitStack() as stack:
        url = stack.enter_context(new_schema(stack.enter_context(running_server())))
        library = Library.open(find_home(parse_home(url)), WordEmbedding())
        stack.callback(library.close)
        library.finish_staged()
        library.catalog.stage([paper(number) for number in range(PAPERS)])
        bare = stack.enter_context(psycopg.connect(url, autocommit=True))
        register_vector(bare)
        bare.execute("ANALYZE")
        yield _Made(library, bare, url)


def paper(number: int) -> Change:
    """A paper of random words, a few of them frequent, and random vectors."""
    dice, key = random.Random(number), f"paper{number:05}"
    vectors = np.random.default_rng(number).normal(size=(CHUNKS, NUMBERS)).astype(np.float32)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    chunks = tuple(
        Chunk(
            id=chunk_id(key, index),
            key=key,
            index=index,
            text=" ".join(words(dice, WORDS)),
            section="Methods",
            parent="",
            category=Category.METHOD if index % 2 else Category.ABSTRACT,
            level=1,
            page=1,
            start=0,
            end=9,
            tokens=WORDS,
        )
        for index in range(CHUNKS)
    )
    record = PaperRecord(Paper(key, f"On {key}", content_hash=key), "m", "400/100", "A summary.", "abstract", CHUNKS)
    sections = (Section(0, "Methods", "", 1, Category.METHOD, 0, 9, True),)
    return Change(key, record, sections, chunks, vectors, vectors[0], np.zeros((0, 0), np.float32))


def words(dice: random.Random, count: int) -> list[str]:
    """Made-up words, whose frequencies fall off as in a language."""
    return [f"w{int(dice.paretovariate(0.7)) % 20_000}x" for _ in range(count)]


@dataclass(frozen=True)
class _Asked:
    """The arguments of the reads."""

    vector: Vector
    keys: list[str]
    ids: list[str]
    terms: list[str]


def _choose_reads(library: Library) -> _Asked:
    keys = [f"paper{number:05}" for number in range(20)]
    terms = sorted(set(analyze(" ".join(words(random.Random(1), 15)))))
    return _Asked(paper(10_000).vectors[0], keys, [chunk_id(key, index) for key in keys for index in (3, 7)], terms)


def _reads(made: _Made) -> dict[str, Pair]:
    library, asked, sent = made.library, _choose_reads(made.library), made.sent
    every: dict[str, Any] = {"vector": asked.vector, "k": 40, "keys": None, "categories": None}
    within = every | {"keys": asked.keys, "categories": [int(Category.METHOD)]}
    scored = _bare_bm25(made, asked.terms)

    def nearest(values: dict[str, Any]) -> list[tuple[str, float]]:
        return [(chunk_id(key, index), cosine) for _, key, index, cosine in sent(postgres_vectors.EXACT, values)]

    pairs: dict[str, Pair] = {
        "40 nearest of 3,000 chunks": (lambda: library.nearest_ids(asked.vector, 40), lambda: nearest(every)),
        "40 nearest of 20 papers and one category": (
            lambda: library.nearest_ids(asked.vector, 40, TextScope(asked.keys, [Category.METHOD])),
            lambda: nearest(within),
        ),
        f"BM25 of {len(asked.terms)} words": (lambda: library.matching(asked.terms, 40), scored),
        "40 chunks by their ids": (lambda: library.chunks(asked.ids), lambda: _bare_chunks(made, asked.ids)),
    }
    for what, (ours, reference) in pairs.items():
        assert _drop_scores(ours()) == _drop_scores(reference()), f"{what}: the reference returns something else"
    return pairs


def _drop_scores(found: Any) -> list[object]:
    """Drop the scores of results, whose last digits depend on the order of sums."""
    return [each[0] if isinstance(each, tuple) else each for each in found]


def _transfers(made: _Made) -> dict[str, Pair]:
    """Our calls compared with the mere transfer of their rows."""
    library, asked = made.library, _choose_reads(made.library)
    places = postgres_vectors.id_columns(asked.ids)
    return {
        "BM25, beside fetching postings only": (
            lambda: library.matching(asked.terms, 40),
            lambda: made.sent(bm25.SEARCH, {"terms": asked.terms, "papers": None}),
        ),
        "chunks by their ids, beside fetching rows only": (
            lambda: library.chunks(asked.ids),
            lambda: made.sent(postgres_vectors.CHUNKS, places),
        ),
    }


def _bare_bm25(made: _Made, terms: list[str]) -> Callable[[], list[tuple[str, float]]]:
    """BM25 written out plainly; everything that does not depend on the query is prepared beforehand."""
    papers = made.sent("SELECT key, paper, categories, text_terms FROM word_totals ORDER BY key", None)
    ids = [chunk_id(key, index) for key, _, kinds, _ in papers for index in range(len(kinds))]
    first = np.zeros(1 + max(number for _, number, _, _ in papers), np.int64)
    first[[number for _, number, _, _ in papers]] = np.cumsum([0, *(len(kinds) for _, _, kinds, _ in papers)])[:-1]
    mean = sum(count for _, _, _, count in papers) / len(ids)
    entry = np.dtype([("place", "<i4"), ("count", "<u2"), ("length", "<u2")])

    def search() -> list[tuple[str, float]]:
        scores = np.zeros(len(ids))
        for _, _, held, numbers, sizes, packed in made.sent(bm25.SEARCH, {"terms": terms, "papers": None}):
            entries = np.frombuffer(packed, entry)
            chunks = np.repeat(first[np.frombuffer(numbers, ">i4")], np.frombuffer(sizes, ">i4") // 8)
            idf = math.log(1 + (len(ids) - held / 8 + 0.5) / (held / 8 + 0.5))
            count = entries["count"].astype(np.float64)
            gain = 2.2 * idf * count / (count + 1.2 * (0.25 + 0.75 * entries["length"] / mean))
            scores[chunks + entries["place"]] += gain  # a posting names a chunk once
        best = np.argsort(-scores, kind="stable")[:40]
        return [(ids[chunk], round(float(scores[chunk]), 9)) for chunk in best]

    return search


def _bare_chunks(made: _Made, ids: list[str]) -> list[Chunk]:
    names = [identifier.rpartition(":") for identifier in ids]
    found = {}
    wanted = ([key for key, _, _ in names], [int(index) for _, _, index in names])
    for row in made.sent(postgres_vectors.CHUNKS, wanted):
        key, index, text, section, parent, kind, level, page, start, stop, tokens, breaks = row
        name = f"{key}:{index:05d}"
        found[name] = Chunk(
            name, key, index, text, section, parent, Category(kind), level, page, start, stop, tokens, tuple(breaks)
        )
    return [found[identifier] for identifier in ids if identifier in found]


def _write(made: _Made) -> Pair:
    """Add and remove a paper; the driver sends the same rows, and also builds them."""
    library, bare, change = made.library, made.bare, paper(20_000)

    def ours() -> None:
        library.catalog.stage([change])
        library.catalog.stage([removal(change.key)])

    def reference() -> None:
        assert change.record is not None
        with bare.transaction(), bare.cursor() as cursor:
            increment_revision(bare)
            cursor.execute("DELETE FROM papers WHERE key = ANY(%s)", ([change.key],))
            cursor.executemany(postgres_catalog.ROW, [postgres_catalog.full_paper_row(change, change.record)])
            cursor.executemany(postgres_catalog.SECTION_ROW, section_rows(change))
            postgres_catalog.copy_rows(cursor, postgres_catalog.build_chunk_rows(change))
            bm25.copy_postings(cursor, [bm25.build_rows(change.key, change.chunks)])
            cursor.execute("SELECT sum(chunk_count) FROM papers").fetchone()
        with bare.transaction():
            increment_revision(bare)
            bare.execute("DELETE FROM papers WHERE key = ANY(%s)", ([change.key],))

    return ours, reference


async def _row(
    what: str,
    ours: Callable[[], object],
    reference: Callable[[], object],
    rounds: int,
    target: float | None = TARGET,
) -> Row:
    for call in (ours, reference):
        for _ in range(6):  # psycopg prepares a statement after five
            call()
    pairs = await _best_pairs(_timed(ours), _timed(reference), rounds)
    return row_of(f"{what} : psycopg with the same SQL", pairs, target=target)


async def _best_pairs(ours: Timed, reference: Timed, rounds: int) -> list[tuple[float, float]]:
    """For each round, the best of alternating calls: other work makes single calls slower, never faster."""
    taken = [await alternate(ours, reference, CALLS) for _ in range(rounds)]
    return [(min(mine for mine, _ in pairs), min(its for _, its in pairs)) for pairs in taken]


def _timed(call: Callable[[], object]) -> Timed:
    async def seconds() -> float:
        return _seconds(call)

    return seconds


def _seconds(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


async def _journal(made: _Made, rounds: int) -> Row:
    """Measure sequential calls, each looked up, claimed, answered at once and committed."""
    lock = "SELECT pg_advisory_xact_lock(hashtextextended(current_schema() || ':journal', 0))"
    count = iter(range(10**9))
    with made.library.home.open_journal() as journal, psycopg.connect(made.url, autocommit=True) as locks:

        async def answer() -> CallResult:
            return CallResult('"x"', 10, 5)

        async def ours() -> float:
            began = time.perf_counter()
            await once(journal, CallRecord(f"o{next(count)}", "chat", "e", "m"), RunScope("run"), answer)
            return time.perf_counter() - began

        def commit(key: str, bare: psycopg.Connection[Any]) -> None:
            locks.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", (key,))
            bare.execute(f"BEGIN; {lock}".encode())
            bare.execute(_FIND.replace("?", "%s").encode(), ("bare", key, key, 0)).fetchall()
            bare.execute("COMMIT")
            bare.execute(f"BEGIN; {lock}".encode())
            found = bare.execute(
                "INSERT INTO answers"
                " (key, kind, endpoint, model, made_at, rejected, input_tokens, output_tokens, payload)"
                " VALUES (%s, 'chat', 'e', 'm', 1, 0, 10, 5, %s) RETURNING id",
                (key, '"x"'),
            ).fetchone()
            assert found is not None
            bare.execute(
                "INSERT INTO uses (run, key, answer, paid, used_at) VALUES ('bare', %s, %s, 1, 1)", (key, found[0])
            )
            bare.execute(
                "INSERT INTO spending VALUES ('bare', 'chat', 'e', 'm', 1, 0, 10, 5, 0, 0, 0)"
                " ON CONFLICT (run, kind, endpoint, model) DO UPDATE SET paid = spending.paid + excluded.paid,"
                " input_tokens = spending.input_tokens + excluded.input_tokens,"
                " output_tokens = spending.output_tokens + excluded.output_tokens"
            )
            bare.execute("COMMIT")
            locks.execute("SELECT pg_advisory_unlock(hashtextextended(%s, 0))", (key,))

        async def reference() -> float:
            return _seconds(lambda: commit(f"b{next(count)}", made.bare))

        await alternate(ours, reference, 6)
        pairs = await _best_pairs(ours, reference, rounds)
    return row_of("a call in the journal, one after the other : psycopg with the same SQL", pairs, target=TARGET)


if __name__ == "__main__":
    from bench.measure import table

    print(table(asyncio.run(measure(5))))
