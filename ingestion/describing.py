"""Describes figures with a vision model, after the papers are committed; stores each description immediately."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from ..documents.figures import PaperFigure
from ..errors import CiteloomError
from ..models.concurrency import gather_all
from ..models.embeddings.protocol import encode_vector
from ..stores.library import Library
from .indexing import run_to_end
from .ingest_events import Described

Describe = Callable[[PaperFigure, bytes], Awaitable[str]]
_REFUSALS: Final = 3  # consecutive refusals after which the model is assumed to accept no images


class FigureRefusedError(CiteloomError):
    """The model's server refused this figure, or gave no valid answer for it."""

    default_help = "Other figures are described; run '{citeloom} papers describe' to try this one again."


@dataclass(frozen=True, slots=True)
class FigureRefusal:
    """A figure without a description, and why."""

    key: str
    figure: str
    reason: str


@dataclass(frozen=True, slots=True)
class DescribeReport:
    """How many figures were described, had a description already, or were refused; printed by `papers describe`."""

    described: int = 0
    already_described: int = 0
    refused: list[FigureRefusal] = field(default_factory=list)


def describable(figure: PaperFigure) -> bool:
    """Whether a figure has an image to describe; a table whose rows are text needs no description."""
    return figure.image_hash is not None and figure.body is None


def figure_counts(library: Library) -> tuple[int, int]:
    """The numbers of figures in a library that can be described and that already are; blocks."""
    figures = [figure for _, listed in library.catalog.figures_by_paper() for figure in listed if describable(figure)]
    return len(figures), sum(bool(figure.description) for figure in figures)


async def describe_figures(
    library: Library,
    describe: Describe,
    model: str,
    *,
    keys: Collection[str] | None = None,
    refresh: bool = False,
    concurrency: int = 4,
    on_event: Callable[[Described], None] | None = None,
) -> DescribeReport:
    """Describe the figures of the papers `keys`, or of all papers; skips described figures unless `refresh`.

    Raises what `describe` raises, keeping finished descriptions. Refused figures are skipped, but if the first three
    are all refused, the cause is raised.
    """
    images, already = await asyncio.to_thread(_to_describe, library, keys, refresh)
    pending, refused = iter(images), list[FigureRefusal]()
    described = in_a_row = 0
    stopped = False

    async def describe_image(key: str, figures: Sequence[PaperFigure]) -> str:
        """Describe an image and store the description; returns why there is none, or an empty text."""
        content = await asyncio.to_thread(library.figure_image, figures[0])
        if content is None:
            return "its image is missing or damaged; ingest the paper again"
        said = await describe(figures[0], content)
        if not said:
            return "the model gave no description"
        (vector,) = await library.embedding.embed_documents([said])
        by = replace(figures[0], description=said, described_by=model, vector=encode_vector(vector))
        new = [replace(figure.with_description(by), described_chunk=figure.described_chunk) for figure in figures]
        await run_to_end(library.catalog.describe, key, new)
        return ""

    async def work() -> None:
        """Describe pending images; after the first error all workers finish calls in flight and stop."""
        nonlocal described, in_a_row, stopped
        while not stopped and (image := next(pending, None)) is not None:
            key, figures = image
            try:
                why = await describe_image(key, figures)
            except FigureRefusedError as error:
                why, in_a_row = error.message.rstrip("."), in_a_row + 1
                if in_a_row >= _REFUSALS and not described:
                    stopped = True
                    raise error.__cause__ or error from None
            except BaseException:
                stopped = True
                raise
            if why:
                refused.append(FigureRefusal(key, figures[0].name, why))
            else:
                described, in_a_row = described + 1, 0
            if on_event is not None:
                on_event(Described(described + len(refused), len(images)))

    await gather_all(work() for _ in range(min(concurrency, len(images))))
    return DescribeReport(described, already, refused)


def _to_describe(
    library: Library, keys: Collection[str] | None, refresh: bool
) -> tuple[list[tuple[str, Sequence[PaperFigure]]], int]:
    """The images to describe, each with its paper's key and figures, and the number already described."""
    images: list[tuple[str, Sequence[PaperFigure]]] = []
    already = 0
    for key in library.records() if keys is None else dict.fromkeys(keys):
        figures = [figure for figure in library.figures(key) if describable(figure)]
        wanted = [figure for figure in figures if refresh or not figure.description]
        already += len(figures) - len(wanted)
        chunks = library.paper_chunks(key) if wanted else []
        by_image: dict[str | None, list[PaperFigure]] = {}
        for figure in wanted:
            by_image.setdefault(figure.image_hash, []).append(figure.with_described_chunk(chunks))
        images += [(key, of_image) for of_image in by_image.values()]
    return images, already
