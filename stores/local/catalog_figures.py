"""Figures of papers: one row per paper in the catalog, and their images in files.

Images are stored before the change that refers to them, and deleted after the last change that did: a kill in between
leaves an image without a paper, never the reverse.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Final

from ...documents.figures import PaperFigure, figure_records, figures_of, redescribed
from ..paper_change import Change, PaperRecord
from .figure_files import FigureFiles

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS figures (
    key TEXT PRIMARY KEY, version TEXT NOT NULL, figures TEXT NOT NULL
) WITHOUT ROWID;
"""
_READY: Final = "FROM figures f JOIN papers p ON p.key = f.key WHERE p.state = 'ready'"
# What a staged change refers to is needed as well.
_IMAGES: Final = """
SELECT f.key, json_extract(item.value, '$.image_hash') FROM figures f, json_each(f.figures) item
UNION
SELECT s.key, json_extract(item.value, '$.image_hash') FROM staged s, json_each(s.change, '$.figures') item
"""

Rows = Callable[..., list[tuple[Any, ...]]]
Transaction = Callable[[], AbstractContextManager[sqlite3.Connection]]


class CatalogFigures:
    """Figures in the catalog's file; `rows` and `transaction` are the catalog's."""

    def __init__(self, rows: Rows, transaction: Transaction, files: FigureFiles) -> None:
        self._rows = rows
        self._transaction = transaction
        self._files = files

    def of(self, key: str) -> tuple[PaperFigure, ...]:
        """The figures and tables of a paper, in reading order."""
        rows = self._rows(f"SELECT f.figures {_READY} AND f.key = ?", (key,))
        return _read(rows[0][0]) if rows else ()

    def counts(self) -> dict[str, tuple[int, int]]:
        """How many figures and tables each paper has, if they were read."""
        rows = self._rows(
            "SELECT f.key, (SELECT count(*) FROM json_each(f.figures) WHERE json_extract(value, '$.kind') = 'figure'),"
            f" json_array_length(f.figures) {_READY} ORDER BY f.key"
        )
        return {key: (figures, total - figures) for key, figures, total in rows}

    def image(self, name: str) -> bytes | None:
        """The image with this hash; None if it is missing or damaged."""
        return self._files.get(name)

    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        """Store the descriptions of a paper's figures; those whose number or image has changed are ignored."""
        with self._transaction() as db:
            for (stored,) in db.execute("SELECT figures FROM figures WHERE key = ?", (key,)).fetchall():
                written = _written(redescribed(_read(stored), figures))
                db.execute("UPDATE figures SET figures = ? WHERE key = ?", (written, key))

    def described(self) -> dict[str, tuple[PaperFigure, ...]]:
        """The figures with a description, by paper."""
        return self._where(lambda figure: bool(figure.description))

    def tables(self) -> dict[str, tuple[PaperFigure, ...]]:
        """The tables whose rows are in chunks, by paper."""
        return self._where(lambda figure: figure.table_chunks is not None)

    def _where(self, wanted: Callable[[PaperFigure], bool]) -> dict[str, tuple[PaperFigure, ...]]:
        rows = self._rows(f"SELECT f.key, f.figures {_READY} ORDER BY f.key")
        figures = ((key, tuple(filter(wanted, _read(stored)))) for key, stored in rows)
        return {key: items for key, items in figures if items}

    def put(self, changes: Iterable[Change]) -> None:
        """Store the images of changes that are about to be staged."""
        for change in changes:
            self._files.put(change.images)

    def incomplete(self) -> set[str]:
        """Keys of papers with an image that is missing or damaged."""
        wanted = [(key, name) for key, name in self._rows(_IMAGES) if name is not None]
        sound = {name for name in {name for _, name in wanted} if self._files.get(name) is not None}
        return {key for key, name in wanted if name not in sound}

    def stray_images(self) -> set[str]:
        """Names of stored images that belong to no paper."""
        return self._files.names() - self._needed()

    def drop(self, names: Iterable[str]) -> None:
        """Delete those of the images that no paper needs."""
        names = set(names)
        if names:
            self._files.delete(names - self._needed())

    def _needed(self) -> set[str]:
        return {name for _, name in self._rows(_IMAGES) if name is not None}


def delete_figures(db: sqlite3.Connection, key: str) -> set[str]:
    """Delete the figures of a paper; returns the names of their images."""
    rows = db.execute("SELECT figures FROM figures WHERE key = ?", (key,)).fetchall()
    db.execute("DELETE FROM figures WHERE key = ?", (key,))
    return {figure.image_hash for row in rows for figure in _read(row[0]) if figure.image_hash}


def insert_figures(db: sqlite3.Connection, change: Change, record: PaperRecord) -> None:
    """Store the figures of a paper if they were read."""
    if record.figures_version:
        values = (change.key, record.figures_version, _written(change.figures))
        db.execute("INSERT INTO figures VALUES (?, ?, ?)", values)


def _written(figures: Iterable[PaperFigure]) -> str:
    return json.dumps(figure_records(list(figures)))


def _read(stored: str) -> tuple[PaperFigure, ...]:
    """The figures of a paper; none if somebody else's catalog holds something else."""
    try:
        return figures_of(json.loads(stored))
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return ()
