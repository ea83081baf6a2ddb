"""What a home holds, on either backend, so that a test can tell what a deletion has left."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from citeloom.settings.addresses import DatabaseUrl
from citeloom.stores.folder_home import find_home
from citeloom.stores.home import Home
from tests.support.folder_state import contents

Inventory = set[tuple[str, str]]
# Answers of models stay for other runs; the rest are counters, and the queue that Chroma prunes by itself.
_KEPT = frozenset({"answers", "written", "revision", "servers", "schema_versions", "checkpoint_migrations"})
_CHROMA = frozenset({"embeddings", "embedding_metadata", "embedding_fulltext_search_content"})
_FOLDERS = ("fulltext/", "locks/")


def inventory(home: Path | DatabaseUrl) -> Inventory:
    """Every row and file of a home, with its content; not the vectors and words, which `doctor` compares."""
    found = find_home(home)
    rows = _of_database(home.secret) if isinstance(home, DatabaseUrl) else iter(())
    return {*rows, *_of_folder(found)}


def _of_folder(home: Home) -> Iterator[tuple[str, str]]:
    for name, content in contents(home.root).items():
        if name.startswith(_FOLDERS):
            continue
        if isinstance(content, bytes):
            yield name, hashlib.sha256(content).hexdigest()
        elif isinstance(content, list) and _is_content(*name.rsplit(":", 1)):
            yield from ((name, repr(tuple(row))) for row in content)


def _is_content(file: str, table: str) -> bool:
    return table in _CHROMA if file.startswith("chroma/") else table not in _KEPT


def _of_database(url: str) -> Iterator[tuple[str, str]]:
    import psycopg

    with psycopg.connect(url) as connection:
        (schema,) = connection.execute("SELECT current_schema()").fetchone() or ("",)
        tables: list[Any] = connection.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
        ).fetchall()
        for (table,) in tables:
            if table not in _KEPT:
                yield from (
                    (table, row[0]) for row in connection.execute(f'SELECT t::text FROM "{table}" t').fetchall()
                )
