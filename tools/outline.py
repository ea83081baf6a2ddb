"""A paper as a tree of sections, each with its chunks and pages, and its text as stored in the library."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass

from ..documents import Chunk, Section
from ..stores.library import Library
from .context_windows import Passage, merge_chunks


@dataclass(frozen=True, slots=True)
class OutlinedSection:
    """A section with the first and last index of its own chunks, and their first and last page; None without."""

    section: Section
    chunks: tuple[int, int] | None
    pages: tuple[int, int] | None

    @property
    def chunk_count(self) -> int:
        """The number of the section's own chunks, not counting its subsections."""
        return self.chunks[1] - self.chunks[0] + 1 if self.chunks else 0


def outline(library: Library, key: str) -> list[OutlinedSection]:
    """The sections of a paper in reading order; raises `UnknownPaperError`. Blocks."""
    sections = library.sections(key)
    starts = [section.start for section in sections]
    held: dict[int, list[Chunk]] = {}
    for chunk in library.paper_chunks(key):
        # Of sections that start at the same offset, all but the last are empty.
        held.setdefault(bisect_right(starts, chunk.start) - 1, []).append(chunk)
    return [_outlined(section, held.get(place, [])) for place, section in enumerate(sections)]


def _outlined(section: Section, chunks: Iterable[Chunk]) -> OutlinedSection:
    indices = [chunk.index for chunk in chunks]
    pages = [chunk.page for chunk in chunks if chunk.page is not None]
    return OutlinedSection(
        section,
        (min(indices), max(indices)) if indices else None,
        (min(pages), max(pages)) if pages else None,
    )


def indexed_text(library: Library, key: str) -> list[Passage]:
    """The searchable text of a paper, in reading order and without repeated words; raises `UnknownPaperError`. Blocks.

    Sections that are not searched, such as reference lists, are not stored in the library and so not included.
    """
    return merge_chunks(library.paper_chunks(key))
