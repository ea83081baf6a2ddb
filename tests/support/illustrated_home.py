"""Puts figures into the papers of a library, as an ingest stores them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from citeloom.documents.figures import FIGURES_VERSION, PaperFigure, image_hash
from citeloom.ingestion.home_copy import build_change
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.support.vision_answers import png


def colour_of(number: int) -> str:
    """A colour for each number."""
    return f"#{number * 40503 % 0xFFFFFF:06x}"


def illustrate(library: Library, key: str, captions: Sequence[str], first: int = 1) -> list[PaperFigure]:
    """Give a paper one figure for each caption, which is found in its text if it is there; returns them."""
    change = build_change(library, key)
    assert change.record is not None
    figures: list[PaperFigure] = []
    images: dict[str, bytes] = {}
    for number, caption in enumerate(captions):
        content = png(colour_of(first + number))
        images[image_hash(content)] = content
        place = next(
            (chunk.start + chunk.text.index(caption) for chunk in change.chunks if caption in chunk.text), None
        )
        figures.append(
            PaperFigure(
                number,
                "figure",
                f"Figure {number + 1}",
                caption,
                page=None,
                start=place,
                end=None if place is None else place + len(caption),
                image_hash=image_hash(content),
                media_type="image/png",
                width=120,
                height=80,
            )
        )
    record = replace(change.record, figures_version=FIGURES_VERSION)
    library.catalog.stage([replace(change, record=record, figures=tuple(figures), images=images)])
    library.finish_staged()
    return figures


def illustrate_home(root: Path, key: str, captions: Sequence[str]) -> list[PaperFigure]:
    """`illustrate` for a home in a folder."""
    library = Library.open(FolderHome(root), LocalEmbedding())
    try:
        return illustrate(library, key, captions)
    finally:
        library.close()
