"""Records of a paper's figures and tables; separate from figure search, so that listings load quickly."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from .types import Chunk, Span

FigureKind = Literal["figure", "table"]

# Figures of another version are read again when their paper is ingested.
FIGURES_VERSION: Final = "2"
# The only types that are stored; an SVG could carry scripts.
IMAGE_TYPES: Final[Mapping[bytes, str]] = MappingProxyType({b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"})
# Files that may be the image of a figure; not all of these types can be stored.
IMAGE_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".pdf", ".tif", ".tiff", ".gif", ".webp", ".svg", ".eps")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or table; `number` counts them from 0 in reading order.

    `label` is "Figure 2" as printed, empty if there is none. `caption`, with its label, equals `text[start:end]` of the
    paper if it occurs there verbatim. `body` is the span of a table's rows in that text. `page` is None for a source
    without pages. `image_hash` is the sha256 of the stored image; without one, `no_image` may say why.

    `description` was written by the vision model `described_by`, never by the paper's authors; `vector` is its
    embedding, and `described_chunk` the index of the chunk that a search finds by it.

    `table_chunks` are the indices of the first and last chunk with rows of a table; None if there are none.
    """

    number: int
    kind: FigureKind
    label: str
    caption: str
    page: int | None = None
    start: int | None = None
    end: int | None = None
    body: Span | None = None
    image_hash: str | None = None
    media_type: str = ""
    width: int = 0
    height: int = 0
    no_image: str = ""
    description: str = ""
    described_by: str = ""
    vector: str = ""
    described_chunk: int | None = None
    table_chunks: Span | None = None

    def __post_init__(self) -> None:
        if self.image_hash is not None and not is_image_hash(self.image_hash):
            raise ValueError(f"not the hash of an image: {self.image_hash!r:.80}")
        if self.media_type not in {"", *IMAGE_TYPES.values()}:
            raise ValueError(f"not the type of a stored image: {self.media_type!r:.80}")

    @property
    def name(self) -> str:
        """The label, or the kind and place in the paper: "figure without a number (3)"."""
        return self.label or f"{self.kind} without a number ({self.number + 1})"

    @property
    def span(self) -> Span | None:
        """The part of the paper's text with caption and rows; None if it contains neither."""
        caption = () if self.start is None or self.end is None else (self.start, self.end)
        ends = (*caption, *(self.body or ()))
        return (min(ends), max(ends)) if ends else None

    def with_description(self, other: PaperFigure) -> PaperFigure:
        """The figure with the description of another one that has the same image."""
        copied = ("description", "described_by", "vector", "described_chunk")
        return replace(self, **{name: getattr(other, name) for name in copied})

    def with_table_chunks(self, chunks: Sequence[Chunk]) -> PaperFigure:
        """Set the first and last of the paper's chunks that contain rows of this table."""
        start, end = self.body or (0, 0)
        held = [chunk.index for chunk in chunks if chunk.start < end and start < chunk.end]
        return replace(self, table_chunks=(min(held), max(held)) if held else None)

    def with_described_chunk(self, chunks: Sequence[Chunk]) -> PaperFigure:
        """Set the described chunk to the chunk with the caption, else the first chunk on the figure's page."""
        span = self.span
        if span is not None:
            # Chunks overlap: take the one with most of the caption, the first if equal.
            held = [(min(chunk.end, span[1]) - max(chunk.start, span[0]), -chunk.index) for chunk in chunks]
            most, index = max(held, default=(0, 0))
            return replace(self, described_chunk=-index if most > 0 else None)
        on_page = (
            chunk.index
            for chunk in chunks
            if self.page and chunk.page and chunk.page <= self.page <= (chunk.page_at(len(chunk.text)) or 0)
        )
        return replace(self, described_chunk=next(on_page, None))


def carry_descriptions(figures: Sequence[PaperFigure], by: Sequence[PaperFigure]) -> tuple[PaperFigure, ...]:
    """Copy descriptions from the figures in `by` with the same number and image."""
    known = {(figure.number, figure.image_hash): figure for figure in by}
    return tuple(
        figure.with_description(known[place]) if (place := (figure.number, figure.image_hash)) in known else figure
        for figure in figures
    )


def image_hash(content: bytes) -> str:
    """The name under which an image is stored."""
    return hashlib.sha256(content).hexdigest()


def is_image_hash(name: str) -> bool:
    """Whether a name can be that of a stored image."""
    return _HASH.fullmatch(name) is not None


def image_type(content: bytes) -> str:
    """The media type of an image by its first bytes; empty for a type that is never stored."""
    return next((kind for magic, kind in IMAGE_TYPES.items() if content.startswith(magic)), "")
