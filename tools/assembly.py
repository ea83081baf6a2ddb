"""Puts found chunks back into their papers: with neighbours, the paper's introduction, and no words twice.

Chunks of a section overlap, and the windows of two hits often meet; shown as they are, a reader would be paid
for the same sentences several times. Here each paper becomes passages in reading order with disjoint spans.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from citeloom.documents import Category, Chunk, Paper, chunk_id
from citeloom.stores.library import Library

WINDOW = 1
INTRODUCTION_TOKENS = 500


@dataclass(frozen=True, slots=True)
class Passage:
    """Neighbouring chunks of one section as one text, from `start` to `end` in the paper.

    `found` are the ids of the chunks that were searched for; a passage without any is background. Where the
    section holds something between two chunks that is no text, an empty line stands for it.
    """

    text: str
    section: str
    category: Category
    page: int | None
    start: int
    end: int
    chunk_ids: tuple[str, ...]
    found: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PaperContext:
    """What is shown of one paper, in reading order."""

    paper: Paper
    passages: tuple[Passage, ...]


def assemble_context(
    library: Library,
    chunk_ids: Sequence[str],
    *,
    window: int = WINDOW,
    introduction_tokens: int = INTRODUCTION_TOKENS,
) -> list[PaperContext]:
    """The papers of the chunks, in the order of their first chunk, with windows and introductions; blocks.

    Args:
        library: where the chunks are.
        chunk_ids: the chunks found, best first; ids that are not in the library are left out.
        window: neighbours shown on either side of each.
        introduction_tokens: about so much of the introduction is shown of each paper; 0 for none.
    """
    if window < 0:
        raise ValueError("window is the number of neighbours on either side, 0 or more")
    of_paper: dict[str, list[int]] = {}
    for chunk in library.chunks(list(dict.fromkeys(chunk_ids))):
        of_paper.setdefault(chunk.key, []).append(chunk.index)
    contexts: list[PaperContext] = []
    for key, found in of_paper.items():
        count = library.chunk_count(key)
        wanted = {near for index in found for near in range(max(0, index - window), min(count, index + window + 1))}
        if introduction_tokens > 0:
            wanted.update(chunk.index for chunk in library.introduction(key, introduction_tokens))
        chunks = library.chunks([chunk_id(key, index) for index in sorted(wanted)])
        ids = {chunk_id(key, index) for index in found}
        contexts.append(PaperContext(library.paper(key), tuple(merge_chunks(chunks, ids))))
    return contexts


def merge_chunks(chunks: Iterable[Chunk], found: Collection[str] = ()) -> list[Passage]:
    """Passages of chunks of one paper that are given in reading order; `found` are ids that were searched for."""
    return [_merged(run, found) for run in _runs(chunks)]


def _runs(chunks: Iterable[Chunk]) -> Iterator[list[Chunk]]:
    """Chunks that follow each other in one section."""
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
    # Where chunks are short, the next but one may still share words with this one.
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
