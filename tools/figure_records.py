"""Figures and tables of papers as plain records, and which of them a passage is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

from ..documents import Chunk
from ..documents.figures import PaperFigure
from ..plurals import counted
from ..stores.library import Library

_OF_THE_SEARCH: Final = frozenset({"vector", "described_chunk", "table_chunks"})


def listed_figures(library: Library, key: str) -> list[dict[str, Any]]:
    """The figures and tables of a paper, as in `papers figures --json`; raises `UnknownPaperError`. Blocks."""
    return [figure_record(figure) for figure in library.figures(key)]


def figure_record(figure: PaperFigure) -> dict[str, Any]:
    """A figure as plain data; its description is that of the model `described_by`, never the paper's words."""
    fields = {name: value for name, value in asdict(figure).items() if name not in _OF_THE_SEARCH}
    return {"name": figure.name, **fields, "no_image": "" if figure.image_hash else figure.no_image or _reason(figure)}


def _reason(figure: PaperFigure) -> str:
    """Why there was no image to be read, by where the figure stands."""
    if figure.page is not None and figure.start is None:
        return "has no caption by which it could be found on its page"
    return "is kept as the rows in the text" if figure.body else "names no image file"


def counted_kinds(kinds: Sequence[str]) -> str:
    """ "3 figures and 1 table"; empty if there are none."""
    tables = kinds.count("table")
    counts = [(len(kinds) - tables, "figure"), (tables, "table")]
    return " and ".join(counted(count, name) for count, name in counts if count)


def figure_of(figures: Sequence[PaperFigure], chunk: Chunk, sentence: str) -> dict[str, Any] | None:
    """The figure or table that a passage is part of, or that the sentence shown from it is about; None if neither."""
    for figure in figures:
        if figure.span is None or not (chunk.start < figure.span[1] and figure.span[0] < chunk.end):
            continue
        start, end = figure.span
        shown = " ".join(chunk.text[max(0, start - chunk.start) : max(0, end - chunk.start)].split())
        if (start <= chunk.start and chunk.end <= end) or chunk.text.strip() in shown or sentence in shown:
            return {"number": figure.number, "kind": figure.kind, "name": figure.name}
    return None
