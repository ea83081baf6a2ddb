"""The figures and tables of a paper, found where captions, images and rows stand next to each other."""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from types import MappingProxyType
from typing import Any, Final, Literal

from .blocks import TABLE_RULE
from .markdown import ParsedPaper
from .paragraph_kinds import caption_kind, caption_label
from .passages import Part, parts_of
from .plain_text import plain_text
from .types import Chunk

FigureKind = Literal["figure", "table"]
Span = tuple[int, int]

# Figures of another version are read again when their paper is ingested.
FIGURES_VERSION: Final = "2"
# The only types that are stored; an SVG could carry scripts.
IMAGE_TYPES: Final[Mapping[bytes, str]] = MappingProxyType({b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg"})
# Of the files that may be the image of a figure; not all of them can be stored.
IMAGE_ENDINGS: Final = (".png", ".jpg", ".jpeg", ".pdf", ".tif", ".tiff", ".gif", ".webp", ".svg", ".eps")
_HASH: Final = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, slots=True)
class PaperFigure:
    """A figure or table; `number` counts them from 0 in reading order.

    `label` is "Figure 2" as printed, empty without one. `caption`, with its label, is `text[start:end]` of the paper if
    it stands there as such. `body` is the span of a table's rows in that text. `page` is None for a source without
    pages. `image_hash` is the sha256 of the stored image; without one, `no_image` may say why.

    `description` is what the vision model `described_by` says, never the paper's words; `vector` is its embedding,
    and `described_chunk` the index of the chunk that it leads a search to.

    `table_chunks` are the indices of the first and last chunk with rows of a table; None without any, or if the
    paper was ingested by a version that did not store them.
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
        """Raise ValueError for what no stored image is called."""
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
        """The part of the paper's text with caption and rows; None if neither stands there."""
        caption = () if self.start is None or self.end is None else (self.start, self.end)
        ends = (*caption, *(self.body or ()))
        return (min(ends), max(ends)) if ends else None

    def with_description(self, other: PaperFigure) -> PaperFigure:
        """The figure with the description of another one that has the same image."""
        return replace(
            self,
            description=other.description,
            described_by=other.described_by,
            vector=other.vector,
            described_chunk=other.described_chunk,
        )

    def with_table_chunks(self, chunks: Sequence[Chunk]) -> PaperFigure:
        """The figure with the first and last of the paper's chunks that have rows of it."""
        start, end = self.body or (0, 0)
        held = [chunk.index for chunk in chunks if chunk.start < end and start < chunk.end]
        return replace(self, table_chunks=(min(held), max(held)) if held else None)

    def with_described_chunk(self, chunks: Sequence[Chunk]) -> PaperFigure:
        """The figure with the chunk of its caption, else the first one on its page, among the paper's chunks."""
        span = self.span
        if span is not None:
            # Chunks overlap: the one with most of the caption, the first of equals.
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
    """The figures with the descriptions of those in `by` that have their number and image."""
    known = {(figure.number, figure.image_hash): figure for figure in by}
    return tuple(
        figure.with_description(known[place]) if (place := (figure.number, figure.image_hash)) in known else figure
        for figure in figures
    )


def image_hash(content: bytes) -> str:
    """The name under which an image is stored."""
    return hashlib.sha256(content).hexdigest()


def is_image_hash(name: str) -> bool:
    """Whether it can be the name of a stored image."""
    return _HASH.fullmatch(name) is not None


def image_type(content: bytes) -> str:
    """The media type of an image by its first bytes; empty for a type that is never stored."""
    return next((kind for magic, kind in IMAGE_TYPES.items() if content.startswith(magic)), "")


def figure_records(figures: Sequence[PaperFigure]) -> list[dict[str, Any]]:
    """Figures as plain data."""
    return [asdict(figure) for figure in figures]


MAX_FIGURES: Final = 300  # per paper
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
    """What a figure consists of; `start` and `end` are the span of the caption's words, or of a table's rows."""

    what: Literal["caption", "image", "table", "flat", "title", "text"]
    start: int
    end: int
    kind: FigureKind = "figure"
    address: str = ""
    caption: Span | None = None  # of an image or table, within it
    labelled: bool = False  # whether that caption has a label


def find_figures(paper: ParsedPaper) -> list[FoundFigure]:
    """The figures and tables of a paper in reading order, also of sections that are not searched."""
    items: list[_Item] = []
    for item in _items(paper):
        if items and items[-1].what == item.what == "table" and _continues(paper, items[-1], item):
            items[-1] = replace(items[-1], end=item.end)
        else:
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


def _continues(paper: ParsedPaper, table: _Item, other: _Item) -> bool:
    """Whether a table of a PDF goes on at the top of the next page, with as many columns."""
    pages = paper.page_at(max(table.start, table.end - 1)), paper.page_at(other.start)
    columns = [paper.text[item.start : item.end].split("\n", 1)[0].count("|") for item in (table, other)]
    return pages[0] is not None and pages[1] == pages[0] + 1 and columns[0] == columns[1]


def _is_plain_table(text: str, items: Sequence[_Item], index: int) -> bool:
    """Whether a table of a PDF without a caption has at least three rows and hardly an empty cell, and is no part of a
    drawing with its caption below."""
    table, after = items[index], items[index + 1] if index + 1 < len(items) else None
    if after and after.what == "caption" and after.kind == "figure":
        return False
    rows = [row for row in text[table.start : table.end].split("\n") if not TABLE_RULE.fullmatch(row)]
    cells = [cell for row in rows for cell in row.strip().removeprefix("|").removesuffix("|").split("|")]
    return len(rows) >= _LEAST_ROWS and sum(bool(cell.strip()) for cell in cells) >= _FULL * len(cells)


def read_label(caption: str) -> str:
    """ "Figure 2" of a caption, without marks; empty if it has no label."""
    label = plain_text(caption[: caption_label(caption)]).strip(_LABEL_EDGES)
    return " ".join(label.split()) if any(map(str.isalnum, label)) else ""


def _figure(
    paper: ParsedPaper, kind: FigureKind, caption: Span | None, *, body: Span | None = None, address: str = ""
) -> FoundFigure:
    start, end = caption or (None, None)
    written = paper.text[start:end] if caption else ""
    place = start if start is not None else body[0] if body else 0
    shown = " ".join(plain_text(written).split()).removeprefix("Table: ").lstrip(": ")
    label = "" if written.startswith("Table:") else read_label(written)
    figure = PaperFigure(0, kind, label, shown[:_MAX_CAPTION], paper.page_at(place), start, end, body)
    return FoundFigure(figure, address)


def _items(paper: ParsedPaper) -> Iterator[_Item]:
    """Captions, images and tables of the sections, and what separates them."""
    starts = [section.start for section in paper.sections]
    parts = list(parts_of(paper.text))
    for part in _with_whole_captions(paper.text, parts) if paper.page_starts else parts:
        place = bisect_right(starts, part.start) - 1
        section = paper.sections[place] if place >= 0 else None
        if section is None or part.start >= section.end:
            yield _Item("text", part.start, part.end)
        else:
            yield from _items_of(paper.text, part)


def _with_whole_captions(text: str, parts: Sequence[Part]) -> Iterator[Part]:
    """The parts of a PDF, with captions that a page or column break cut joined to their rest."""
    taken = 0
    for index, part in enumerate(parts):
        after = parts[index + 1] if index + 1 < len(parts) else None
        if part.start < taken:
            continue
        if (
            after
            and _is_caption(part)
            and _is_cut(text, (parts[place] for place in range(index - 1, -1, -1)), part, after)
        ):
            part = replace(part, end=after.end)
            taken = after.end
        yield part


def _is_caption(part: Part) -> bool:
    return part.kind in {"figure caption", "table caption"}


def _is_cut(text: str, before: Iterable[Part], caption: Part, after: Part) -> bool:
    """Whether a caption made of sentences has no end and the next paragraph no beginning.

    Not if the last paragraph before the caption, the first of `before`, is open too, since that may be what continues.
    """
    written, rest = text[caption.start : caption.end], text[after.start : after.end]
    texts = (text[part.start : part.end] for part in before if part.kind == "prose" or _is_caption(part))
    last = next(texts, ".")
    in_sentences = _SENTENCE_END.search(written, caption_label(written)) is not None
    return (
        after.kind == "prose"
        and rest[0].islower()
        and in_sentences
        and not _ENDED.search(written)
        and bool(_ENDED.search(last) and _ENDED.search(rest))
        and not text[caption.end : after.start].strip()
    )


def _items_of(text: str, part: Part) -> Iterator[_Item]:
    raw = text[part.start : part.end]
    if part.kind in {"rows", "flat"}:
        inner = _TABLE_CAPTION.search(raw) if part.kind == "rows" else None
        caption = (part.start + inner.start(1), part.start + inner.end(1)) if inner else None
        yield _Item("table" if part.kind == "rows" else "flat", part.start, part.end, "table", "", caption)
    elif image := _image(text, part, raw):
        yield image
    elif part.kind in {"figure caption", "table caption"}:
        if not _OTHER_FLOATS.search(raw, 0, caption_label(raw)) and caption_label(raw):
            yield _Item("caption", part.start, part.end, "table" if part.kind == "table caption" else "figure")
        else:
            yield _Item("text", part.start, part.end)
    elif part.kind == "title":
        yield _Item("title", part.start, part.end, "table")
    elif part.kind != "picture" or any(map(str.isalnum, raw)):
        yield _Item("text", part.start, part.end)


def _image(text: str, part: Part, raw: str) -> _Item | None:
    """The image of which a part consists, with its caption if that is inside."""
    if part.kind == "figure caption" and text[part.start - 2 : part.start] == "![":
        target = _TARGET.match(text, part.end)
        caption = (part.start, part.end) if raw.strip() else None
        return _Item(
            "image", part.start, part.end, _kind(raw), target.group(1) if target else "", caption, bool(read_label(raw))
        )
    if raw.startswith(("![", "[![")):
        embedded = _EMBEDDED.search(raw)
        target = embedded or _TARGET.search(raw)
        if not target or not (embedded or part.kind == "picture" or raw.startswith("[![")):
            return None  # in a sentence
        opening = raw.index("![") + 2
        alt = raw[opening : embedded.end(1) if embedded else target.start()]
        caption = (part.start + opening, part.start + opening + len(alt)) if _says(alt) else None
        return _Item("image", part.start, part.end, _kind(alt), target.groups()[-1], caption, bool(read_label(alt)))
    source = _IMG.search(raw) if "<img" in raw.lower() else None
    if source is None:
        return None
    inner = _FIGCAPTION.search(raw) or (_ALT.search(raw) if _TAGS_ONLY.fullmatch(raw) else None)
    if inner is None and not _TAGS_ONLY.fullmatch(raw):
        return None
    words = inner.group(1) if inner else ""
    caption = (part.start + inner.start(1), part.start + inner.end(1)) if inner and _says(words) else None
    return _Item("image", part.start, part.end, _kind(words), source.group(1), caption, bool(read_label(words)))


def _kind(caption: str) -> FigureKind:
    return "table" if caption_kind(caption) == "table" else "figure"


def _says(caption: str) -> bool:
    return any(map(str.isalpha, caption))


def _captions_of_tables(items: Sequence[_Item], *, titles: bool) -> dict[int, int]:
    """The caption next to each table; where both neighbours are captions, the side that the paper prefers.

    A line that reads like a heading is the caption of a table below it if `titles`.
    """
    sides: dict[int, list[int]] = {}
    for index, item in enumerate(items):
        if item.what == "table" and item.caption is None:
            sides[index] = [
                near for near in (index - 1, _after_rows(items, index)) if _captions_table(items, near, index, titles)
            ]
    below = sum(near > index for index, found in sides.items() if len(found) == 1 for near in found)
    above = sum(near < index for index, found in sides.items() if len(found) == 1 for near in found)
    taken: dict[int, int] = {}
    for index, found in sorted(sides.items(), key=lambda side: len(side[1])):
        free = [near for near in found if near not in taken.values()]
        if free:
            taken[index] = free[-1] if below > above else free[0]
    return taken


def _captions_table(items: Sequence[_Item], near: int, table: int, titles: bool) -> bool:
    if not 0 <= near < len(items):
        return False
    item = items[near]
    return (item.what == "caption" and item.kind == "table") or (titles and item.what == "title" and near < table)


def _after_rows(items: Sequence[_Item], index: int) -> int:
    while index + 1 < len(items) and items[index + 1].what == "flat":
        index += 1
    return index + 1


def _captions_of_images(items: Sequence[_Item], claimed: set[int]) -> dict[int, int]:
    """The caption below each image without a labelled one of its own, or else above it; each is used once."""
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
