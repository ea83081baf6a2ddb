"""Figures of papers: one row per paper in the catalog, and their images in files.

Images are stored before the change that refers to them, and deleted after the last change that did: a kill in between
leaves an image without a paper, never the reverse.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from pathlib import Path
from typing import Final

from ...documents.figures import PaperFigure, carry_descriptions, image_hash, is_image_hash
from ...documents.safe_files import replace_file
from ...table_columns import TEXT, TypedTable, dump_json, shaped
from ..paper_catalog import Figures, Rows
from ..paper_change import STAGED, Change, PaperRecord
from .folder_home import FolderHome

FIGURES: Final = TypedTable(
    "figures",
    ("key",),
    {"key": TEXT, "version": TEXT, "figures": shaped("a list of figures", tuple[PaperFigure, ...])},
)
_READY: Final = "FROM figures f JOIN papers p ON p.key = f.key WHERE p.state = 'ready'"


class CatalogFigures(Figures):
    """Figures in the catalog's file; `read` and `transaction` are the catalog's."""

    def __init__(
        self,
        read: Callable[..., Rows],
        transaction: Callable[[], AbstractContextManager[sqlite3.Connection]],
        files: FigureFiles,
    ) -> None:
        self._read = read
        self._transaction = transaction
        self._files = files

    def of(self, key: str) -> tuple[PaperFigure, ...]:
        rows = self._read(FIGURES, f"SELECT f.key, f.figures {_READY} AND f.key = ?", (key,))
        return rows[0][1] if rows else ()

    def counts(self) -> dict[str, tuple[int, int]]:
        counts = ((key, [figure.kind for figure in figures]) for key, figures in self._all())
        return {key: (kinds.count("figure"), kinds.count("table")) for key, kinds in counts}

    def image(self, name: str) -> bytes | None:
        return self._files.get(name)

    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        with self._transaction() as db:
            for stored in _read_figures(db, key):
                written = dump_json([asdict(figure) for figure in carry_descriptions(stored, figures)])
                db.execute("UPDATE figures SET figures = ? WHERE key = ?", (written, key))

    def _all(self) -> Rows:
        return self._read(FIGURES, f"SELECT f.key, f.figures {_READY} ORDER BY f.key")

    def put(self, changes: Iterable[Change]) -> None:
        """Store the images of changes before they are staged."""
        for change in changes:
            self._files.put(change.images)

    def incomplete(self) -> set[str]:
        wanted = self._images()
        lost = {name for name in {name for _, name in wanted} if self._files.get(name) is None}
        return {key for key, name in wanted if name in lost}

    def stray_images(self) -> set[str]:
        return self._files.names() - {name for _, name in self._images()}

    def drop(self, names: Collection[str]) -> None:
        """Delete the given images that no paper needs any more."""
        if names:
            self._files.delete(set(names) - {name for _, name in self._images()})

    def _images(self) -> list[tuple[str, str]]:
        """The images to which papers and staged changes refer, each with the paper's key."""
        figures = self._read(FIGURES, "SELECT key, figures FROM figures")
        figures += [(key, change.figures) for key, change in self._read(STAGED, "SELECT key, change FROM staged")]
        return [(key, figure.image_hash) for key, listed in figures for figure in listed if figure.image_hash]


def delete_figures(db: sqlite3.Connection, key: str) -> set[str]:
    """Delete the figures of a paper; returns the names of their images."""
    stored = _read_figures(db, key)
    db.execute("DELETE FROM figures WHERE key = ?", (key,))
    return {figure.image_hash for figures in stored for figure in figures if figure.image_hash}


def _read_figures(db: sqlite3.Connection, key: str) -> list[tuple[PaperFigure, ...]]:
    rows = FIGURES.read(db.execute("SELECT key, figures FROM figures WHERE key = ?", (key,)))
    return [figures for _, figures in rows]


def insert_figures(db: sqlite3.Connection, change: Change, record: PaperRecord) -> None:
    """Store the figures of a paper if they were read."""
    if record.figures_version:
        values = (change.key, record.figures_version, dump_json([asdict(figure) for figure in change.figures]))
        db.execute("INSERT INTO figures VALUES (?, ?, ?)", values)


class FigureFiles:
    """The folder of a home, created with the first image; a private copy never deletes images of its original."""

    def __init__(self, home: FolderHome) -> None:
        self._folder = home.figures
        self._own = home.copy_of is None

    def put(self, images: Mapping[str, bytes]) -> None:
        """Store images by hash; existing ones are left unchanged. Raises OSError."""
        missing = {name: content for name, content in images.items() if self.get(name) is None}
        if missing:
            self._folder.mkdir(exist_ok=True)
        for name, content in missing.items():
            replace_file(self._folder / name, content)

    def get(self, name: str) -> bytes | None:
        """An image; None if it is missing or damaged."""
        if not is_image_hash(name):
            return None
        try:
            content = (self._folder / name).read_bytes()
        except OSError:
            return None
        return content if image_hash(content) == name else None

    def names(self) -> set[str]:
        """The names of all files in the folder, including remnants of interrupted writes."""
        try:
            return {file.name for file in self._folder.iterdir()}
        except OSError:
            return set()

    def delete(self, names: Collection[str]) -> None:
        """Delete files; unknown names are ignored."""
        for name in names if self._own else ():
            with contextlib.suppress(OSError):
                (self._folder / Path(name).name).unlink()
