"""Finds the figures and tables of a paper from adjacent captions, images and rows."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from typing import Final, Literal

from .figures import FigureKind, PaperFigure
from .markdown import ParsedPaper
from .paragraph_kinds import caption_kind, caption_label
from .passages import Part, split_parts
from .plain_text import TABLE_RULE, plain_text
from .types import Span

MAX_FIGURES: Final = 300  # per paper
_CAPTIONS: Final = ("figure caption", "table caption")
_LEAST_ROWS: Final = 3
_FULL: Final = 0.9
_MAX_CAPTION: Final = 5_000  # characters
_OTHER_FLOATS = re.compile(r"\b(?:box|algorithm|video|movie)", re.IGNORECASE)
_LABEL_EDGES: Final = " \t\n*_>.:|\u2013\u2014"
_SENTENCE_END = re.compile(r"[.!?][)\"\u201d]?\s")
_ENDED = re.compile(r"[.!?:][)\]\"\u201d]?\Z")
_TARGET = re.compile(r"\]\(\s{0,3}<?([^()\[\]\s<>]{1,1000}(?:\([^()\[\]\s]{0,200}\)[^()\[\]\s]{0,200}){0,5})")
_EMBEDDED = re.compile(r"!\[([^\[\]]{0,5000})\]\((data:image/[\w.+-]{1,40};base64,[\w+/=%-]+)\s?\)")
_IMG = re.compile(r"<img\b[^<>]{0,500}?\bsrc\s{0,3}=\s{0,3}[\"']([^\"'<>]{1,20000000})[\"']", re.IGNORECASE)
_ALT = re.compile(r"<img\b[^<>]{0,2000}?\balt\s{0,3}=\s{0,3}\"([^\"<>]{1,5000})\"", re.IGNORECASE)
_FIGCAPTION = re.compile(
    r"<figcaption\b[^<>]{0,200}>\s*+(?:<p>)?"
    r"((?:[^\s<]|\s++(?!</figcaption)|<(?!/?figcaption\b|/p>\s*+</figcaption)){0,5000}+)(?:</p>)?\s*+</figcaption\s?>",
    re.IGNORECASE,
)
_TABLE_CAPTION = re.compile(r"<caption\b[^<>]{0,200}>((?:[^<]|<(?!/?caption\b)){1,5000}+)</caption\s?>", re.IGNORECASE)
_TAGS_ONLY = re.compile(r"(?:\s|<[^<>]{0,20000000}>)*")


@dataclass(frozen=True, slots=True)
class FoundFigure:
    """A figure without its image, and the image's address as the paper writes it; empty for a PDF."""

    figure: PaperFigure
    address: str = ""


@dataclass(frozen=True, slots=True)
class _Item:
    """A part of a figure; `start` and `end` are the span of the caption's words, or of a table's rows."""

    what: Literal["caption", "image", "table", "flat", "title", "text"]
    start: int
    end: int
    kind: FigureKind = "figure"
    address: str = ""
    caption: Span | None = None  # of an image or table, within it
    labelled: bool = False  # whether that caption has a label


def find_figures(paper: ParsedPaper) -> list[FoundFigure]:
    """The figures and tables of a paper in reading order, including those in sections that are not searched."""
    items: list[_Item] = []
    for item in _items(paper):
        if items and items[-1].what == item.what == "table":
            # A table in a PDF may continue at the top of the next page with the same number of columns.
            before = items[-1]
            page, following = paper.page_at(max(before.start, before.end - 1)), paper.page_at(item.start)
            rows = [paper.text[one.start : one.end].partition("\n")[0].count("|") for one in (before, item)]
            if page is not None and following == page + 1 and rows[0] == rows[1]:
                items[-1] = replace(before, end=item.end)
                continue
        items.append(item)
    captions = _captions_of_tables(items, titles=not paper.page_starts)
    captions |= _captions_of_images(items, set(captions.values()))
    claimed = set(captions.values())
    found: list[FoundFigure] = []
    for index, item in enumerate(items):
        if item.what == "caption" and index not in claimed:
            found.append(_figure(paper, item.kind, (item.start, item.end)))
        elif item.what in {"table", "image"}:
            own = items[captions[index]] if index in captions else None
            caption = (own.start, own.end) if own else item.caption
            if item.what == "table" and (caption or not paper.page_starts or _is_plain_table(paper.text, items, index)):
                body = item.start, items[_after_rows(items, index) - 1].end
                found.append(_figure(paper, "table", caption, body=body))
            elif item.what == "image" and caption:
                found.append(_figure(paper, own.kind if own else item.kind, caption, address=item.address))
    found.sort(key=lambda each: each.figure.span or (0, 0))
    return [
        replace(each, figure=replace(each.figure, number=number)) for number, each in enumerate(found[:MAX_FIGURES])
    ]


def _is_plain_table(text: str, items: Sequence[_Item], index: int) -> bool:
    """Whether an uncaptioned table in a PDF has at least three rows and hardly any empty cells, and is not part of a
    drawing with its caption below."""
    table, after = items[index], items[index + 1] if index + 1 < len(items) else None
    if after and after.what == "caption" and after.kind == "figure":
        return False
    rows = [row for row in text[table.start : table.end].split("\n") if not TABLE_RULE.fullmatch(row)]
    cells = [cell for row in rows for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]
    return len(rows) >= _LEAST_ROWS and sum(bool(cell.strip()) for cell in cells) >= _FULL * len(cells)


def read_label(caption: str) -> str:
    """The label of a caption, such as "Figure 2", without marks; empty if there is none."""
    label = plain_text(caption[: caption_label(caption)]).strip(_LABEL_EDGES)
    return " ".join(label.split()) if any(map(str.isalnum, label)) else ""


def _figure(
    paper: ParsedPaper, kind: FigureKind, caption: Span | None, *, body: Span | None = None, address: str = ""
) -> FoundFigure:
    start, end = caption or (None, None)
    written = paper.text[start:end] if caption else ""
    place = (caption or body or (0, 0))[0]
    shown = " ".join(plain_text(written).split()).removeprefix("Table: ").lstrip(": ")
    label = "" if written.startswith("Table:") else read_label(written)
    figure = PaperFigure(0, kind, label, shown[:_MAX_CAPTION], paper.page_at(place), start, end, body)
    return FoundFigure(figure, address)


def _items(paper: ParsedPaper) -> Iterator[_Item]:
    starts = [section.start for section in paper.sections]
    parts = list(split_parts(paper.text))
    for part in _rejoin_captions(paper.text, parts) if paper.page_starts else parts:
        place = bisect_right(starts, part.start) - 1
        raw = paper.text[part.start : part.end]
        if place < 0 or part.start >= paper.sections[place].end:
            yield _Item("text", part.start, part.end)
        elif part.kind in {"rows", "flat"}:
            inner = _TABLE_CAPTION.search(raw) if part.kind == "rows" else None
            caption = (part.start + inner.start(1), part.start + inner.end(1)) if inner else None
            yield _Item("table" if part.kind == "rows" else "flat", part.start, part.end, "table", "", caption)
        elif image := _image(paper.text, part, raw):
            yield image
        elif part.kind in _CAPTIONS and (label := caption_label(raw)) and not _OTHER_FLOATS.search(raw, 0, label):
            yield _Item("caption", part.start, part.end, "table" if part.kind == "table caption" else "figure")
        elif part.kind == "title":
            yield _Item("title", part.start, part.end, "table")
        elif part.kind != "picture" or any(map(str.isalnum, raw)):
            yield _Item("text", part.start, part.end)


def _rejoin_captions(text: str, parts: Sequence[Part]) -> Iterator[Part]:
    """The parts of a PDF, with captions rejoined that were cut by a page or column break."""
    taken = 0
    last = "."  # the paragraph before
    for part, after in zip_longest(parts, parts[1:]):
        if part.start < taken:
            continue
        written, rest = text[part.start : part.end], text[after.start : after.end] if after else ""
        # A caption made of sentences is unfinished and the next paragraph starts mid-sentence; if the paragraph before
        # the caption is unfinished too, it may continue there.
        if (
            after
            and part.kind in _CAPTIONS
            and after.kind == "prose"
            and rest[0].islower()
            and _SENTENCE_END.search(written, caption_label(written))
            and not _ENDED.search(written)
            and _ENDED.search(last)
            and _ENDED.search(rest)
            and not text[part.end : after.start].strip()
        ):
            part = replace(part, end=after.end)
            taken = after.end
        last = text[part.start : part.end] if part.kind in {"prose", *_CAPTIONS} else last
        yield part


def _image(text: str, part: Part, raw: str) -> _Item | None:

    def item(address: str, words: str, start: int | None) -> _Item:
        caption = None if start is None else (start, start + len(words))
        kind: FigureKind = "table" if caption_kind(words) == "table" else "figure"
        return _Item("image", part.start, part.end, kind, address, caption, bool(read_label(words)))

    if part.kind == "figure caption" and text[part.start - 2 : part.start] == "![":
        target = _TARGET.match(text, part.end)
        return item(target.group(1) if target else "", raw, part.start)
    if raw.startswith(("![", "[![")):
        embedded = _EMBEDDED.search(raw)
        target = embedded or _TARGET.search(raw)
        if not target or not (embedded or part.kind == "picture" or raw.startswith("[![")):
            return None  # the image is within a sentence
        opening = raw.index("![") + 2
        alt = raw[opening : embedded.end(1) if embedded else target.start()]
        return item(target.groups()[-1], alt, part.start + opening if any(map(str.isalpha, alt)) else None)
    source = _IMG.search(raw) if "<img" in raw.lower() else None
    if source is None:
        return None
    inner = _FIGCAPTION.search(raw) or (_ALT.search(raw) if _TAGS_ONLY.fullmatch(raw) else None)
    if inner is None and not _TAGS_ONLY.fullmatch(raw):
        return None
    words = inner.group(1) if inner else ""
    return item(source.group(1), words, part.start + inner.start(1) if inner and any(map(str.isalpha, words)) else None)


def _captions_of_tables(items: Sequence[_Item], *, titles: bool) -> dict[int, int]:
    """The caption next to each table; if there are two, the one on the side that the paper prefers.

    With `titles`, a line that reads like a heading is the caption of the table below it.
    """

    def captions_table(near: int, table: int) -> bool:
        item = items[near] if 0 <= near < len(items) else None
        titled = titles and near < table and item is not None and item.what == "title"
        return titled or (item is not None and item.what == "caption" and item.kind == "table")

    sides: dict[int, list[int]] = {}
    for index, item in enumerate(items):
        if item.what == "table" and item.caption is None:
            sides[index] = [near for near in (index - 1, _after_rows(items, index)) if captions_table(near, index)]
    alone = [(found[0], index) for index, found in sides.items() if len(found) == 1]
    below, above = sum(near > index for near, index in alone), sum(near < index for near, index in alone)
    taken: dict[int, int] = {}
    for index, found in sorted(sides.items(), key=lambda side: len(side[1])):
        free = [near for near in found if near not in taken.values()]
        if free:
            taken[index] = free[-1] if below > above else free[0]
    return taken


def _after_rows(items: Sequence[_Item], index: int) -> int:
    while index + 1 < len(items) and items[index + 1].what == "flat":
        index += 1
    return index + 1


def _captions_of_images(items: Sequence[_Item], claimed: set[int]) -> dict[int, int]:
    """The caption below, or else above, each image that has no labelled caption; each caption is used once."""
    taken: dict[int, int] = {}
    for step in (1, -1):
        for index, item in enumerate(items):
            near = index + step
            if item.what != "image" or item.labelled or index in taken or not 0 <= near < len(items):
                continue
            if items[near].what == "caption" and near not in claimed:
                taken[index] = near
                claimed.add(near)
    return taken
