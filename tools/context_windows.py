"""Merges chunks of a paper: overlapping neighbours become passages with disjoint spans."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from ..documents import Category, Chunk


@dataclass(frozen=True, slots=True)
class Passage:
    """Neighbouring chunks of one section as one text, from `start` to `end` in the paper.

    `found` are the ids of the chunks that a search found; a passage without any is background. Where the section has
    something other than text between two chunks, an empty line takes its place.
    """

    text: str
    section: str
    category: Category
    page: int | None
    start: int
    end: int
    chunk_ids: tuple[str, ...]
    found: tuple[str, ...]


def merge_chunks(chunks: Iterable[Chunk], found: Collection[str] = ()) -> list[Passage]:
    """Passages of chunks of one paper, given in reading order; `found` are the ids that a search found."""
    return [_merged(run, found) for run in _runs(chunks)]


def _runs(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Runs of consecutive chunks of one section."""
    run: list[Chunk] = []
    for chunk in chunks:
        if run and not _continues(run[-1], chunk):
            yield run
            run = []
        run.append(chunk)
    if run:
        yield run


def _continues(one: Chunk, following: Chunk) -> bool:
    same_section = (one.section, one.parent, one.level) == (following.section, following.parent, following.level)
    # When chunks are short, this one may share words even with the next but one.
    return same_section and (following.index == one.index + 1 or following.start < one.end)


def _merged(run: Sequence[Chunk], found: Collection[str]) -> Passage:
    first = run[0]
    text, end = first.text, first.end
    for chunk in run[1:]:
        text += chunk.text[end - chunk.start :] if chunk.start <= end else "\n\n" + chunk.text
        end = max(end, chunk.end)
    ids = tuple(chunk.id for chunk in run)
    return Passage(
        text=text,
        section=first.section,
        category=first.category,
        page=first.page,
        start=first.start,
        end=end,
        chunk_ids=ids,
        found=tuple(identifier for identifier in ids if identifier in found),
    )
