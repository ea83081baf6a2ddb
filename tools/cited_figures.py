"""The figures whose caption or rows a piece of evidence rests on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..documents.figures import PaperFigure
from ..stores.library import Library


def cited_figures(library: Library, evidence: Iterable[Mapping[str, Any]]) -> dict[str, PaperFigure]:
    """The figure that each piece of evidence stands in, by the id of the evidence; blocks.

    `evidence` are records with `id`, `key`, `chunk_id`, `start`, `end` and `quote`. Evidence of a paper that has
    changed since, or left the library, has none.
    """
    found: dict[str, PaperFigure] = {}
    known = library.records()
    of_paper: dict[str, tuple[PaperFigure, ...]] = {}
    wanted = [record for record in evidence if record["key"] in known]
    for key in {record["key"] for record in wanted}:
        of_paper[key] = library.catalog.figures.of(key)
    wanted = [record for record in wanted if of_paper[record["key"]]]
    chunks = {chunk.id: chunk for chunk in library.chunks([record["chunk_id"] for record in wanted])}
    for record in wanted:
        chunk = chunks.get(record["chunk_id"])
        if chunk is None or chunk.text[record["start"] : record["end"]] != record["quote"]:
            continue
        start, end = chunk.start + record["start"], chunk.start + record["end"]
        if (figure := _at(of_paper[record["key"]], start, end)) is not None:
            found[record["id"]] = figure
    return found


def _at(figures: Iterable[PaperFigure], start: int, end: int) -> PaperFigure | None:
    """The figure with most of the characters in its caption and rows, if that is at least half of them."""
    held = [(_overlap(figure, start, end), -figure.number, figure) for figure in figures]
    most, _, figure = max(held, key=lambda item: item[:2])
    return figure if 2 * most >= end - start > 0 else None


def _overlap(figure: PaperFigure, start: int, end: int) -> int:
    caption = None if figure.start is None or figure.end is None else (figure.start, figure.end)
    return sum(max(0, min(end, span[1]) - max(start, span[0])) for span in (caption, figure.body) if span)
