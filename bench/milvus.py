"""Searches and writes of a library in PostgreSQL with Milvus, beside the bare clients on the same rows in the same run.

    python -m bench.milvus DATABASE VECTORS [PAPERS]    an empty schema, and a Milvus; 50 chunks a paper, 400 papers

Texts are made of words with the frequencies of a natural language, vectors of clusters.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import psycopg

from citeloom.database_url import home_of
from citeloom.documents import Category, Chunk, Paper, Section, chunk_id, text_hash
from citeloom.models.embeddings.local import LocalEmbedding
from citeloom.stores.home import find_home
from citeloom.stores.library import Library
from citeloom.stores.milvus.milvus_catalog import MilvusCatalog
from citeloom.stores.milvus.milvus_rows import MilvusRows
from citeloom.stores.milvus.paper_rows import stored_papers, write_papers
from citeloom.stores.milvus.row_records import IndexedChunk
from citeloom.stores.milvus.word_weights import chunk_vector, fields_of, query_vector
from citeloom.stores.paper_change import Change, PaperRecord
from citeloom.stores.postgres.bm25 import analyze
from citeloom.vectors_url import vectors_of

CHUNKS = 50  # of a paper
TERMS = 200  # of a chunk, nearly those of 400 tokens
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


def bare_write(database: str, rows: MilvusRows, library: Library, changes: list[Change]) -> float:
    """Seconds to write the same rows with pymilvus, and the same texts and vectors with psycopg's COPY."""
    catalog = library.catalog
    assert isinstance(catalog, MilvusCatalog)
    means = catalog.means({})
    made = [
        IndexedChunk(number, chunk.index, 1, 1, row, chunk_vector(terms, means)).as_row()
        for number, each in enumerate(changes)
        for chunk, row in zip(each.chunks, each.vectors, strict=True)
        for terms in [{field: Counter(analyze(text)) for field, text in fields_of(chunk).items()}]
    ]
    rows.create(DIMENSIONS)
    client = rows._connection.client()
    began = time.perf_counter()
    for start in range(0, len(made), 1000):
        client.upsert(rows._collection("chunks"), made[start : start + 1000])
    with psycopg.connect(database) as connection, connection.cursor() as cursor:
        cursor.execute("CREATE TEMP TABLE bare (id text PRIMARY KEY, text text, hash text, vector bytea)")
        with cursor.copy("COPY bare FROM STDIN") as copy:
            for each in changes:
                for chunk, row in zip(each.chunks, each.vectors, strict=True):
                    copy.write_row((chunk.id, chunk.text, text_hash(chunk.text), row.tobytes()))
    return time.perf_counter() - began


def compared(name: str, ours: Sequence[Callable[[], Any]], bare: Sequence[Callable[[], Any]]) -> None:
    """Print the medians of searches that alternate, and their ratio."""
    times: tuple[list[float], list[float]] = [], []
    for mine, other in zip(ours, bare, strict=True):
        for call, kept in ((mine, times[0]), (other, times[1])):
            began = time.perf_counter()
            call()
            kept.append(time.perf_counter() - began)
    first, second = (1000 * median(kept[1:]) for kept in times)
    print(f"| {name} | {first:.1f} ms | {second:.1f} ms | {first / second:.2f} |", flush=True)


def searches(library: Library, client: Any, collection: str) -> None:
    """Compare dense, filtered and word searches."""
    vectors = unit(CENTRES[RANDOM.integers(0, 200, TIMES)] + RANDOM.normal(size=(TIMES, DIMENSIONS)))
    questions = [RANDOM.choice(WORDS, 6, p=COMMON / COMMON.sum()).tolist() for _ in range(TIMES)]
    keys = sorted(library.records())[:300]
    catalog = library.catalog
    assert isinstance(catalog, MilvusCatalog)
    versions = catalog.searched()
    scope = f"paper in {[versions[key] for key in keys]} and category in [1, 3]"

    def bare(field: str, query: Any, filter_: str, params: dict[str, int]) -> Any:
        return client.search(
            collection, [query], anns_field=field, limit=40, filter=filter_, output_fields=["id"],
            search_params={"params": params}, consistency_level="Strong",
        )  # fmt: skip

    ef = {"ef": 128}
    compared(
        "40 nearest",
        [lambda v=v: library.nearest_ids(v, 40) for v in vectors],
        [lambda v=v: bare("vector", v, "", ef) for v in vectors],
    )
    kinds = [Category(1), Category(3)]
    compared(
        f"40 nearest in {len(keys)} papers and two categories",
        [lambda v=v: library.nearest_ids(v, 40, keys=keys, categories=kinds) for v in vectors],
        [lambda v=v: bare("vector", v, scope, ef) for v in vectors],
    )
    sums = catalog.sums()
    queries = [query_vector(catalog.counts(set(terms)), sums) for terms in questions]
    compared(
        "BM25, 40 best for 6 terms",
        [lambda t=t: library.matching(t, 40) for t in questions],
        [lambda q=q: bare("words", q, "", {}) for q in queries],
    )


def main(database: str, vectors: str, papers: int = 400) -> None:
    home = find_home(home_of(database), vectors=vectors_of(vectors))
    library = Library.open(home, LocalEmbedding())
    library.finish_staged()
    changes = [change(number) for number in range(papers)]
    began = time.perf_counter()
    for start in range(60, papers, 60):
        write(library, changes[start : start + 60])
    print(f"{papers} papers, {papers * CHUNKS} chunks; written in {time.perf_counter() - began:.0f} s\n")
    ours = write(library, changes[:60])
    stores: Any = library._stores
    rows = stores._rows()
    client, collection = rows._connection.client(), rows._collection("chunks")
    catalog = library.catalog
    assert isinstance(catalog, MilvusCatalog)
    bare = bare_write(database, MilvusRows(rows._connection, "bare"), library, changes[:60])
    print("| what | Citeloom | bare clients | ratio |\n|---|---|---|---|")
    print(f"| write {60 * CHUNKS} embedded chunks | {ours:.1f} s | {bare:.1f} s | {ours / bare:.2f} |")
    searches(library, client, collection)
    began = time.perf_counter()
    some = sorted(library.records())[:60]
    write_papers(stored_papers(some, library.records(), catalog.searched(), stores.vectors), rows, catalog.means)
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
