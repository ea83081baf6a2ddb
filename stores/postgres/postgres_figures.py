"""Figures of papers and their images in PostgreSQL, written in the transaction of their paper."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, Final

from ...documents.figures import PaperFigure, carry_descriptions
from ...table_columns import TEXT, TypedTable, dump_json, integer
from ..paper_change import FIGURE, Change
from .database import PooledTables, revise

_STAGED_IMAGE: Final = """
item->>'image_hash' FROM staged s, json_array_elements(s.change::json->'figures') item
WHERE item->>'image_hash' IS NOT NULL"""

_FIGURES: Final = TypedTable("figures", ("key", "idx"), {"key": TEXT, "idx": integer(), "record": FIGURE})


class PostgresFigures(PooledTables):
    """Figures and images of a library; thread-safe."""

    def of(self, key: str) -> tuple[PaperFigure, ...]:
        rows = self._read(_FIGURES, "SELECT key, idx, record FROM figures WHERE key = %s ORDER BY idx", (key,))
        return tuple(figure for _, _, figure in rows)

    def counts(self) -> dict[str, tuple[int, int]]:
        rows = self.rows(
            "SELECT p.key, count(*) FILTER (WHERE kind = 'figure'), count(*) FILTER (WHERE kind = 'table')"
            " FROM papers p LEFT JOIN figures USING (key) WHERE figures_version <> '' GROUP BY p.key ORDER BY p.key"
        )
        return {key: (figures, tables) for key, figures, tables in rows}

    def image(self, name: str) -> bytes | None:
        rows = self.rows("SELECT content FROM images WHERE hash = %s", (name,))
        return bytes(rows[0][0]) if rows else None

    def describe(self, key: str, figures: Sequence[PaperFigure]) -> None:
        with self._connection() as connection, connection.transaction():
            revise(connection)
            query = "SELECT key, idx, record FROM figures WHERE key = %s AND idx = ANY(%s) ORDER BY idx FOR UPDATE"
            rows = _FIGURES.read(connection.execute(query, (key, [figure.number for figure in figures])))
            for item in carry_descriptions([figure for _, _, figure in rows], figures):
                connection.execute(
                    "UPDATE figures SET record = %s WHERE key = %s AND idx = %s",
                    (dump_json(asdict(item)), key, item.number),
                )

    def described(self) -> dict[str, tuple[PaperFigure, ...]]:
        return self._where(lambda figure: bool(figure.description))

    def tables(self) -> dict[str, tuple[PaperFigure, ...]]:
        return self._where(lambda figure: figure.table_chunks is not None)

    def _where(self, wanted: Callable[[PaperFigure], bool]) -> dict[str, tuple[PaperFigure, ...]]:
        found: dict[str, tuple[PaperFigure, ...]] = {}
        for key, _, figure in self._read(_FIGURES, "SELECT key, idx, record FROM figures ORDER BY key, idx"):
            if wanted(figure):
                found[key] = (*found.get(key, ()), figure)
        return found

    def incomplete(self) -> set[str]:
        """None: foreign keys keep the images of figures."""
        return set()

    def stray_images(self) -> set[str]:
        """None: an image is deleted with its last figure."""
        return set()


def images_of(connection: Any, keys: Sequence[str]) -> list[str]:
    """The images of these papers, before they are changed."""
    rows = connection.execute("SELECT image FROM figures WHERE key = ANY(%s) AND image IS NOT NULL", (list(keys),))
    return sorted({name for (name,) in rows.fetchall()})


def staged_images(connection: Any, keys: Sequence[str]) -> list[str]:
    """The images to which the staged changes of these papers refer."""
    rows = connection.execute(f"SELECT DISTINCT {_STAGED_IMAGE} AND s.key = ANY(%s)", (list(keys),))
    return [name for (name,) in rows.fetchall()]


def write_images(cursor: Any, changes: Sequence[Change]) -> None:
    """Write the images of papers that are about to be staged or inserted."""
    images = {name: content for change in changes for name, content in change.images.items()}
    if images:
        cursor.executemany("INSERT INTO images VALUES (%s, %s) ON CONFLICT DO NOTHING", list(images.items()))


def write_figures(cursor: Any, changes: Sequence[Change]) -> None:
    """Write figures and images of papers that were just inserted."""
    write_images(cursor, changes)
    rows = [
        (change.key, figure.number, figure.kind, dump_json(asdict(figure)), figure.image_hash)
        for change in changes
        for figure in change.figures
    ]
    if rows:
        cursor.executemany("INSERT INTO figures (key, idx, kind, record, image) VALUES (%s, %s, %s, %s, %s)", rows)


def drop_images(connection: Any, names: Sequence[str]) -> None:
    """Delete the given images that no figure, current or staged, refers to any longer."""
    if not names:
        return
    connection.execute(
        "DELETE FROM images WHERE hash = ANY(%s) AND NOT EXISTS (SELECT 1 FROM figures WHERE image = images.hash)"
        f" AND hash NOT IN (SELECT {_STAGED_IMAGE})",
        (list(names),),
    )
