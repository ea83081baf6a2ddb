"""The tables of the catalog, and the rows of one paper in them."""

from __future__ import annotations

import sqlite3
from dataclasses import asdict
from typing import Final

from ...documents import text_hash
from ...table_columns import dump_json
from ..paper_change import Change, PaperRecord
from .catalog_contents import SCHEMA as CONTENTS_SCHEMA
from .catalog_contents import insert_contents
from .catalog_figures import SCHEMA as FIGURES_SCHEMA
from .catalog_figures import insert_figures

SCHEMA_VERSION: Final = 3  # those below were never released

SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS papers (
    key TEXT PRIMARY KEY, state TEXT NOT NULL CHECK (state IN ('indexing', 'ready')), record TEXT NOT NULL,
    content_hash TEXT NOT NULL, metadata_hash TEXT NOT NULL, chunking TEXT NOT NULL,
    summary TEXT NOT NULL, summary_kind TEXT NOT NULL, chunk_count INTEGER NOT NULL, year INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sections (
    key TEXT NOT NULL, idx INTEGER NOT NULL, title TEXT NOT NULL, parent TEXT NOT NULL,
    level INTEGER NOT NULL, category INTEGER NOT NULL, start INTEGER NOT NULL, stop INTEGER NOT NULL,
    searchable INTEGER NOT NULL,
    PRIMARY KEY (key, idx)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS chunks (
    key TEXT NOT NULL, idx INTEGER NOT NULL, category INTEGER NOT NULL, start INTEGER NOT NULL,
    stop INTEGER NOT NULL, tokens INTEGER NOT NULL, text_hash TEXT NOT NULL, PRIMARY KEY (key, idx)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS chunks_by_text ON chunks (text_hash);
CREATE TABLE IF NOT EXISTS notes (key TEXT PRIMARY KEY, note TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS staged (
    key TEXT PRIMARY KEY, change TEXT NOT NULL, vectors BLOB NOT NULL
) WITHOUT ROWID;
{CONTENTS_SCHEMA}{FIGURES_SCHEMA}"""


def insert_paper(db: sqlite3.Connection, change: Change, record: PaperRecord) -> None:
    """Insert a paper with all its parts as ready."""
    key, paper = change.key, record.paper
    if record.note is not None:
        db.execute("INSERT INTO notes VALUES (?, ?)", (key, dump_json(asdict(record.note))))
    insert_figures(db, change, record)
    insert_contents(db, change)
    db.execute(
        "INSERT INTO papers VALUES (?, 'ready', ?, ?, ?, ?, ?, ?, ?, ?)",
        (
            key,
            dump_json(asdict(paper)),
            paper.content_hash,
            record.metadata_hash,
            record.chunking,
            record.summary,
            record.summary_kind,
            len(change.chunks),
            paper.year,
        ),
    )
    db.executemany(
        "INSERT INTO sections VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        [
            (key, s.index, s.title, s.parent, s.level, int(s.category), s.start, s.end, s.searchable)
            for s in change.sections
        ],
    )
    db.executemany(
        "INSERT INTO chunks VALUES (?, ?, ?, ?, ?, ?, ?)",
        [(key, c.index, int(c.category), c.start, c.end, c.tokens, text_hash(c.text)) for c in change.chunks],
    )
