"""The text of a paper in parts that a page can show: one section with its subsections at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from markupsafe import Markup

from ...stores.library import Library
from ...tools.paper_records import OutlinedSection, merge_chunks, outline
from .html import markdown

_MOST: Final = 40_000  # characters shown at once


@dataclass(frozen=True, slots=True)
class ShownPassage:
    """A passage as HTML, with the page on which it begins."""

    title: str
    page: int | None
    body: Markup


@dataclass(frozen=True, slots=True)
class ShownSections:
    """The section tree, and the text of the section at `current` with what belongs to it."""

    tree: list[OutlinedSection]
    current: int | None
    passages: list[ShownPassage]
    earlier: int | None
    later: int | None


def shown_sections(library: Library, key: str, chosen: int | None) -> ShownSections:
    """The tree of a paper and the text of the chosen section, else of the first with text; blocks."""
    tree = outline(library, key)
    with_text = [place for place, item in enumerate(tree) if item.chunks]
    first = next((place for place in with_text if chosen is None or place >= chosen), None)
    if first is None:
        return ShownSections(tree, None, [], with_text[-1] if with_text and chosen is not None else None, None)
    last = _last(tree, first if chosen is None else min(chosen, len(tree) - 1))
    chunks = [chunk for chunk in library.paper_chunks(key) if _within(tree[first : last + 1], chunk.index)]
    passages, used = [], 0
    for passage in merge_chunks(chunks):
        if used and used + len(passage.text) > _MOST:
            last = next(place for place in with_text if tree[place].section.title == passage.section) - 1
            break
        used += len(passage.text)
        passages.append(ShownPassage(passage.section, passage.page, markdown(passage.text[: 4 * _MOST])))
    earlier = next((place for place in reversed(with_text) if place < first), None)
    later = next((place for place in with_text if place > max(last, first)), None)
    return ShownSections(tree, first if chosen is None else chosen, passages, earlier, later)


def _last(tree: list[OutlinedSection], place: int) -> int:
    """The last section below the one at `place`."""
    level = tree[place].section.level
    after = next((at for at in range(place + 1, len(tree)) if tree[at].section.level <= level), len(tree))
    return after - 1


def _within(sections: list[OutlinedSection], index: int) -> bool:
    return any(item.chunks and item.chunks[0] <= index <= item.chunks[1] for item in sections)
