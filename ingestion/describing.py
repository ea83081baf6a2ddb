"""Describes the figures of ingested papers with a vision model; each description is stored as soon as it arrives.

It runs after the papers are committed: whatever happens to the model, no paper is lost, and a later call continues with
the figures that have no description yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from ..documents.figures import PaperFigure
from ..errors import CiteloomError
from ..models.concurrency import gather_all
from ..stores.described_figures import encode_vector
from ..stores.library import Library
from .indexing import run_to_end
from .ingest_events import Described

Describe = Callable[[PaperFigure, bytes], Awaitable[str]]
_REFUSALS: Final = 3  # consecutive refusals: the model accepts no images, or none of ours


class FigureRefusedError(CiteloomError):
    """The model's server refused this figure, or gave no valid answer for it."""

    default_help = "Other figures are described; run '{citeloom} papers describe' to try it again."


@dataclass(frozen=True, slots=True)
class FigureRefusal:
    """A figure without a description, and why."""

    key: str
    figure: str
    reason: str


@dataclass(frozen=True, slots=True)
class DescribeReport:
    """How many figures were described, which were not, and how many already had a description."""

    described: int = 0
    refused: tuple[FigureRefusal, ...] = ()
    already: int = 0

    def as_dict(self) -> dict[str, Any]:
        """The report as printed by `papers describe --json`."""
        refused = [asdict(item) for item in self.refused]
        return {"described": self.described, "already_described": self.already, "refused": refused}


@dataclass(frozen=True, slots=True)
class _Image:
    """An image of a paper and the figures (mostly one) that show it."""

    key: str
    figures: tuple[PaperFigure, ...]


def describable(figure: PaperFigure) -> bool:
    """Whether a figure has an image to describe; a table whose rows are text needs none."""
    return figure.image_hash is not None and figure.body is None


def figure_counts(library: Library) -> tuple[int, int]:
    """How many figures of a library can be described, and how many already are; blocks."""
    figures = [figure for key in library.records() for figure in library.catalog.figures.of(key) if describable(figure)]
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
    """Describe the figures of these papers, or of all, that have no description yet; with `refresh` all of them.

    Raises what `describe` raises, keeping finished descriptions. Refusals stop it only if the first three figures are
    all refused; the cause is then raised.
    """
    images, already = await asyncio.to_thread(_to_describe, library, keys, refresh)
    work = _Describing(library, describe, model, len(images), on_event or (lambda _: None))
    pending = iter(images)
    await gather_all(work.run(pending) for _ in range(min(concurrency, len(images))))
    return DescribeReport(work.described, tuple(work.refused), already)


class _Describing:
    """The state of one call, shared by its workers; after the first error they finish calls in flight and stop."""

    def __init__(
        self, library: Library, describe: Describe, model: str, total: int, emit: Callable[[Described], None]
    ) -> None:
        self._library = library
        self._describe = describe
        self._model = model
        self._total = total
        self._emit = emit
        self._stopped = False
        self._in_a_row = 0
        self.described = 0
        self.refused: list[FigureRefusal] = []

    async def run(self, pending: Iterator[_Image]) -> None:
        """Describe pending images until there are none, or until an error."""
        while not self._stopped and (image := next(pending, None)) is not None:
            try:
                await self._one(image)
            except FigureRefusedError as error:
                self._in_a_row += 1
                self._refuse(image, error.message.rstrip("."))
                if self._in_a_row >= _REFUSALS and not self.described:
                    self._stopped = True
                    raise error.__cause__ or error from None
            except BaseException:
                self._stopped = True
                raise
            self._emit(Described(self.described + len(self.refused), self._total))

    async def _one(self, image: _Image) -> None:
        first = image.figures[0]
        content = await asyncio.to_thread(self._library.figure_image, first)
        if content is None:
            self._refuse(image, "its image is missing or damaged; ingest the paper again")
            return
        said = await self._describe(first, content)
        if not said:
            self._refuse(image, "the model gave no description")
            return
        (vector,) = await self._library.embedding.embed_documents([said])
        by = replace(first, description=said, described_by=self._model, vector=encode_vector(vector))
        figures = [
            replace(figure.with_description(by), described_chunk=figure.described_chunk) for figure in image.figures
        ]
        await run_to_end(self._library.catalog.figures.describe, image.key, figures)
        self.described += 1
        self._in_a_row = 0

    def _refuse(self, image: _Image, reason: str) -> None:
        self.refused.append(FigureRefusal(image.key, image.figures[0].name, reason))


def _to_describe(library: Library, keys: Collection[str] | None, refresh: bool) -> tuple[list[_Image], int]:
    """The images to describe, in the order of papers and figures, and how many are described already."""
    images: list[_Image] = []
    already = 0
    for key in library.records() if keys is None else dict.fromkeys(keys):
        figures = [figure for figure in library.figures(key) if describable(figure)]
        wanted = [figure for figure in figures if refresh or not figure.description]
        already += len(figures) - len(wanted)
        chunks = library.paper_chunks(key) if wanted else []
        by_image: dict[str | None, list[PaperFigure]] = {}
        for figure in wanted:
            by_image.setdefault(figure.image_hash, []).append(figure.with_described_chunk(chunks))
        images += [_Image(key, tuple(of_image)) for of_image in by_image.values()]
    return images, already
