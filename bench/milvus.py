"""Searches and writes of a library in PostgreSQL with Milvus, against the bare clients on the same rows.

    python -m bench.milvus DATABASE VECTORS [PAPERS]    an empty schema, and a Milvus; 50 chunks a paper, 400 papers

Texts are made of words with the frequencies of a natural language, vectors of clusters.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
import psycopg
from pgvector.psycopg import register_vector

from citeloom.documents import Category, Chunk, Paper, Section, chunk_id, text_hash
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.settings.addresses import parse_home, parse_vectors
from citeloom.stores.folder_home import find_home
from citeloom.stores.library import Library
from citeloom.stores.milvus.milvus_catalog import (
    MilvusCatalog,
    Terms,
    add_counts,
    chunk_vector,
    count_terms,
    query_vector,
    write_papers,
)
from citeloom.stores.milvus.milvus_rows import MilvusRows, index_chunk, index_texts
from citeloom.stores.paper_catalog import Change, PaperRecord, section_rows
from citeloom.stores.postgres import postgres_catalog
from citeloom.stores.store_protocols import TextScope, read_change

CHUNKS = 50  # of a paper
TERMS = 200  # of a chunk: about 400 tokens
DIMENSIONS = 384
TIMES = 15
RANDOM = np.random.default_rng(7)
WORDS = np.array([f"term{number}" for number in range(30_000)])
COMMON = 1 / np.arange(10, 30_010)
CENTRES = RANDOM.normal(size=(200, DIMENSIONS))


def unit(rows: Any) -> Any:
    return (rows / np.linalg.norm(rows, axis=-1, keepdims=True)).astype(np.float32)


def text() -> str:
    return " ".join(RANDOM.choice(WORDS, TERMS, p=COMMON / COMMON.sum()))


def change(number: int) -> Change:
    """A paper of made-up chunks."""
    key = f"paper{number:06d}"
    chunks = tuple(
        Chunk(chunk_id(key, i), key, i, text(), "Methods", "", Category(1 + i % 5), 1, None, i, i + 1, 400)
        for i in range(CHUNKS)
    )
    vectors = unit(CENTRES[RANDOM.integers(0, 200, CHUNKS)] + RANDOM.normal(size=(CHUNKS, DIMENSIONS)))
    record = PaperRecord(Paper(key, key, content_hash=key), "", "400/100", chunks[0].text[:300], "extractive", CHUNKS)
    sections = (Section(0, "Methods", "", 1, Category.METHOD, 0, CHUNKS, True),)
    return Change(key, record, sections, chunks, vectors, vectors[0])


def write(library: Library, changes: Sequence[Change]) -> float:
    """Seconds for a change of several papers, committed in both engines."""
    began = time.perf_counter()
    library.catalog.stage(changes)
    library.carry_out(changes)
    return time.perf_counter() - began


class BareClients:
    """Writes papers with pymilvus and psycopg alone, into a separate collection and schema."""

    def __init__(self, database: str, rows: MilvusRows, means: Mapping[int, float]) -> None:
        self._rows = rows
        self._means = means
        self._version = 0
        rows.create(DIMENSIONS)
        self.connection = psycopg.connect(database, autocommit=True)
        register_vector(self.connection)
        self.connection.execute("DROP SCHEMA IF EXISTS citeloom_bare CASCADE")
        self.connection.execute("CREATE SCHEMA citeloom_bare")
        for table in ("papers", "sections", "chunks", "word_counts", "word_sums"):
            self.connection.execute(f"CREATE TABLE citeloom_bare.{table} (LIKE {table} INCLUDING ALL)".encode())
        self.connection.execute(
            "SELECT set_config('search_path', 'citeloom_bare,' || current_setting('search_path'), false)"
        )

    def close(self) -> None:
        """Drop what was written."""
        self._rows.drop()
        self.connection.execute("DROP SCHEMA citeloom_bare CASCADE")
        self.connection.close()

    def write(self, changes: Sequence[Change]) -> float:
        """Seconds for all that a search and a reader need: words analysed, weighed and counted, rows in both engines.

        This write lacks what makes ours safe: staging, versions, and the order of both engines.
        """
        began = time.perf_counter()
        words: list[Terms] = []
        chunks = self._chunk_rows(changes, words)
        papers = [index_texts(self._version + n, each.summary_vector, [])[0] for n, each in enumerate(changes)]
        self._upsert(chunks, papers)
        with self.connection.transaction(), self.connection.cursor() as cursor:
            records = [(each, each.record) for each in changes if each.record is not None]
            cursor.executemany(postgres_catalog.ROW, [postgres_catalog.full_paper_row(*pair) for pair in records])
            sections = [row for each in changes for row in section_rows(each)]
            cursor.executemany(postgres_catalog.SECTION_ROW, sections)
            postgres_catalog.copy_rows(
                cursor, (row for each in changes for row in postgres_catalog.build_chunk_rows(each))
            )
            add_counts(cursor, words, 1)
        return time.perf_counter() - began

    def transfer(self, changes: Sequence[Change]) -> float:
        """Seconds to send prepared rows: to Milvus, and four columns to a temporary table."""
        made = self._chunk_rows(changes, [])
        self.connection.execute("CREATE TEMP TABLE bare (id text PRIMARY KEY, text text, hash text, vector bytea)")
        began = time.perf_counter()
        self._upsert(made, [])
        with self.connection.cursor() as cursor, cursor.copy("COPY bare FROM STDIN") as copy:
            for each in changes:
                for chunk, row in zip(each.chunks, each.vectors, strict=True):
                    copy.write_row((chunk.id, chunk.text, text_hash(chunk.text), row.tobytes()))
        seconds = time.perf_counter() - began
        self.connection.execute("DROP TABLE bare")
        return seconds

    def _chunk_rows(self, changes: Sequence[Change], words: list[Terms]) -> list[dict[str, Any]]:
        self._version += len(changes)
        made = []
        for number, each in enumerate(changes):
            for chunk, row in zip(each.chunks, each.vectors, strict=True):
                terms = count_terms(chunk.text, chunk.parent, chunk.section)
                words.append(terms)
                vector = chunk_vector(terms, self._means)
                made.append(index_chunk(self._version + number, chunk, text_hash(chunk.text), row, vector))
        return made

    def _upsert(self, chunks: list[dict[str, Any]], papers: list[dict[str, Any]]) -> None:
        client = self._rows._connection.client().__enter__()
        for start in range(0, len(chunks), 1000):
            client.upsert(self._rows._names["chunks"], chunks[start : start + 1000])
        client.upsert(self._rows._names["papers"], papers)


def compare_writes(library: Library, bare: BareClients, rounds: int) -> None:
    """Print the medians of writing 60 new papers alternately, and their ratios."""
    times: dict[str, list[float]] = {"ours": [], "bare": [], "transfer": []}
    for number in range(rounds):
        changes = [change(1_000_000 + 60 * number + place) for place in range(60)]
        for name in ("ours", "bare") if number % 2 else ("bare", "ours"):
            times[name].append(write(library, changes) if name == "ours" else bare.write(changes))
        times["transfer"].append(bare.transfer(changes))
    for what, name in (("the same work by hand", "bare"), ("only sending rows made before", "transfer")):
        ours, other = median(times["ours"]), median(times[name])
        ratios = [mine / its for mine, its in zip(times["ours"], times[name], strict=True)]
        print(
            f"| write {60 * CHUNKS} embedded chunks : {what} | {ours:.1f} s | {other:.1f} s | {ours / other:.2f}"
            f" | {min(ratios):.2f}-{max(ratios):.2f} |",
            flush=True,
        )


def compare(name: str, ours: Sequence[Callable[[], Any]], bare: Sequence[Callable[[], Any]]) -> None:
    """Print the medians of searches that alternate, and their ratio."""
    times: tuple[list[float], list[float]] = [], []
    for mine, other in zip(ours, bare, strict=True):
        for call, kept in ((mine, times[0]), (other, times[1])):
            began = time.perf_counter()
            call()
            kept.append(time.perf_counter() - began)
    first, second = (1000 * median(kept[1:]) for kept in times)
    print(f"| {name} | {first:.1f} ms | {second:.1f} ms | {first / second:.2f} |", flush=True)


def compare_searches(library: Library, client: Any, collection: str) -> None:
    """Compare dense, filtered and word searches."""
    vectors = unit(CENTRES[RANDOM.integers(0, 200, TIMES)] + RANDOM.normal(size=(TIMES, DIMENSIONS)))
    questions = [RANDOM.choice(WORDS, 6, p=COMMON / COMMON.sum()).tolist() for _ in range(TIMES)]
    keys = sorted(library.records())[:300]
    catalog = library.catalog
    assert isinstance(catalog, MilvusCatalog)
    versions = catalog.searched_versions()
    scope = f"paper in {[versions[key] for key in keys]} and category in [1, 3]"

    def bare(field: str, query: Any, filter_: str, params: dict[str, int]) -> Any:
        return client.search(
            collection, [query], anns_field=field, limit=40, filter=filter_, output_fields=["id"],
            search_params={"params": params}, consistency_level="Strong",
        )  # fmt: skip

    ef = {"ef": 128}
    compare(
        "40 nearest",
        [lambda v=v: library.nearest_ids(v, 40) for v in vectors],
        [lambda v=v: bare("vector", v, "", ef) for v in vectors],
    )
    kinds = [Category(1), Category(3)]
    compare(
        f"40 nearest in {len(keys)} papers and two categories",
        [lambda v=v: library.nearest_ids(v, 40, TextScope(keys, kinds)) for v in vectors],
        [lambda v=v: bare("vector", v, scope, ef) for v in vectors],
    )
    sums = catalog.sums()
    queries = [query_vector(catalog.counts(set(terms)), sums) for terms in questions]
    compare(
        "BM25, 40 best for 6 terms",
        [lambda t=t: library.matching(t, 40) for t in questions],
        [lambda q=q: bare("words", q, "", {}) for q in queries],
    )


def main(database: str, vectors: str, papers: int = 400, rounds: int = 7) -> None:
    home = find_home(parse_home(database), vectors=parse_vectors(vectors))
    library = Library.open(home, LocalEmbedding())
    library.finish_staged()
    changes = [change(number) for number in range(papers)]
    began = time.perf_counter()
    for start in range(60, papers, 60):
        write(library, changes[start : start + 60])
    print(f"{papers} papers, {papers * CHUNKS} chunks; written in {time.perf_counter() - began:.0f} s\n")
    write(library, changes[:60])
    stores: Any = library.stores
    rows = stores.rows()
    client, collection = rows._connection.client().__enter__(), rows._names["chunks"]
    catalog = library.catalog
    assert isinstance(catalog, MilvusCatalog)
    print("| what | Citeloom | bare clients | ratio | single pairs |\n|---|---|---|---|---|")
    bare = BareClients(database, MilvusRows(rows._connection, "bare"), catalog.means({}))
    compare_writes(library, bare, rounds)
    bare.close()
    compare_searches(library, client, collection)
    began = time.perf_counter()
    some = sorted(library.records())[:60]
    stored = filter(None, (read_change(library.records()[key], stores.vectors) for key in some))
    write_papers(stored, catalog.searched_versions(), rows, catalog.means)
    print(f"\n{60 * CHUNKS} chunks written again from PostgreSQL: {time.perf_counter() - began:.1f} s")
    with psycopg.connect(database) as connection:
        sizes = connection.execute(
            "SELECT relname, pg_total_relation_size(oid) / 1e6 FROM pg_class WHERE relkind = 'r' AND relnamespace ="
            " current_schema()::regnamespace ORDER BY 2 DESC LIMIT 4"
        ).fetchall()
    print("MB in PostgreSQL:", ", ".join(f"{name} {float(size):.0f}" for name, size in sizes))
    library.close()


async def embedding_time(count: int = 64) -> None:
    """Print the seconds that the bundled model takes for a chunk of 400 tokens."""
    model = LocalEmbedding()
    texts = [" ".join(["measured"] * 400) + str(number) for number in range(count)]
    began = time.perf_counter()
    await model.embed_documents(texts)
    print(f"embedding: {(time.perf_counter() - began) / count * 1000:.0f} ms for a chunk")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]) if len(sys.argv) > 3 else 400)
    asyncio.run(embedding_time())
