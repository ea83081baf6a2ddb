"""Checks a database for `doctor`: versions, indexes, and whether its tables agree on the library's contents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from ...plurals import counted
from .postgres_catalog import INDEX, INDEXABLE
from .postgres_vectors import EXACT_LIMIT

Rows = Callable[[str], list[tuple[Any, ...]]]
State = tuple[bool, str, str]
_OLDEST_SERVER: Final = 130_000  # as `server_version_num` counts: 13.0
_OLDEST_VECTORS: Final = (0, 8)
_VERSIONS: Final = """
SELECT current_setting('server_version'), current_setting('server_version_num')::int,
    (SELECT extversion FROM pg_extension WHERE extname = 'vector'), (SELECT max(number) FROM schema_versions)
"""
_INDEXES: Final = (
    "answers_by_key",
    "checkpoints_by_id",
    "chunks_by_text",
    "postings_by_paper",
    "runs_by_fingerprint",
    "uses_by_answer",
    "uses_by_run",
)
_VALID: Final = """
SELECT i.relname, x.indisvalid FROM pg_index x JOIN pg_class i ON i.oid = x.indexrelid
WHERE i.relnamespace = current_schema()::regnamespace
"""
_WITHOUT_KEY: Final = """
SELECT c.relname FROM pg_class c
WHERE c.relkind = 'r' AND c.relnamespace = current_schema()::regnamespace AND c.relname <> 'revision'
    AND NOT EXISTS (SELECT 1 FROM pg_index x WHERE x.indrelid = c.oid AND x.indisprimary)
"""
_COUNTS: Final = """
SELECT (SELECT count(*) FROM papers), (SELECT count(*) FROM word_totals),
    (SELECT count(*) FROM papers WHERE summary_vector IS NOT NULL), (SELECT coalesce(sum(chunk_count), 0) FROM papers),
    (SELECT count(*) FROM chunks), (SELECT coalesce(sum(octet_length(categories)), 0) FROM word_totals)
"""
_DIMENSION: Final = "SELECT coalesce((SELECT value::int FROM facts WHERE name = 'dimension'), 0)"


def database_state(rows: Rows) -> list[State]:
    """The findings, each as (fine, topic, message)."""
    counts = [int(count) for count in rows(_COUNTS)[0]]
    return [_versions(rows), *_indexes(rows), _vector_index(rows, counts[4]), _counts(*counts)]


def _versions(rows: Rows) -> State:
    server, number, vectors, tables = rows(_VERSIONS)[0]
    shown = f"PostgreSQL {server.split()[0]}, pgvector {vectors}, tables of version {tables}"
    if number < _OLDEST_SERVER:
        return False, "database", f"{shown}: PostgreSQL 13 or newer is needed"
    if tuple(int(part) for part in vectors.split(".")[:2]) < _OLDEST_VECTORS:
        return False, "database", f"{shown}: pgvector 0.8 or newer is needed; ALTER EXTENSION vector UPDATE"
    return True, "database", shown


def _indexes(rows: Rows) -> list[State]:
    valid: dict[str, bool] = dict(rows(_VALID))
    missing = [name for name in _INDEXES if name not in valid] + [
        f"the key of {name}" for (name,) in rows(_WITHOUT_KEY)
    ]
    broken = sorted(name for name, good in valid.items() if not good and name != INDEX)
    findings = [(False, "indexes", f"missing: {name}; restore a backup") for name in missing]
    findings += [(False, "indexes", f"{name} is not valid: REINDEX INDEX {name}") for name in broken]
    return findings or [(True, "indexes", f"{len(valid)} indexes are there and valid")]


def _vector_index(rows: Rows, chunks: int) -> State:
    valid: dict[str, bool] = dict(rows(_VALID))
    if INDEX in valid:
        message = "vectors are indexed (HNSW)" if valid[INDEX] else f"{INDEX} is not valid: REINDEX INDEX {INDEX}"
        return valid[INDEX], "index", message
    wanted = chunks > EXACT_LIMIT and rows(_DIMENSION)[0][0] <= INDEXABLE
    exact = f"none; exact search of {counted(chunks, 'chunk')}"
    return not wanted, "index", f"{exact}; the next ingest builds it" if wanted else exact


def _counts(papers: int, words: int, summaries: int, listed: int, chunks: int, indexed: int) -> State:
    if papers == words == summaries and listed == chunks == indexed:
        return True, "tables", f"all agree on {counted(papers, 'paper')} and {counted(chunks, 'chunk')}"
    of_papers = f"{counted(papers, 'paper')}, {words} with words, {summaries} with summaries"
    return False, "tables", f"{of_papers}; {counted(listed, 'chunk')} listed, {chunks} stored, {indexed} with words"
