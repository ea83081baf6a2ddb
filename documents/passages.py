"""Splits a passage into the numbered units shown to a model, each with its exact span in the text.

A passage may begin and end anywhere in a paper, so captions and tables may be incomplete. A unit is a sentence, a table
with its caption, a panel of a caption, or a formula. Images, addresses, headings, licences, page headers, program code
and entries of the reference list are skipped. The shown text is cleaned of markup; the quote is `text[start:end]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal

from ..text.sentences import sentences_between, trim_span
from .blocks import DEEP_HEADING, LIST_ITEM, parse_blocks
from .paragraph_kinds import caption_kind, is_boilerplate, is_lone_heading, is_panelled, is_reference, split_caption
from .plain_text import TARGET, format_table, is_table_rule, plain_formula, plain_text

# "title" is a table's title if one follows, else a heading and left out; a "picture" between a table and its caption
# does not separate them; "flat" is a row whose bars were lost in a PDF; "left out" separates its neighbours.
PartKind = Literal[
    "prose", "figure caption", "table caption", "title", "rows", "flat", "equation", "picture", "left out"
]


@dataclass(frozen=True, slots=True)
class Part:
    """A span of the passage, without surrounding whitespace."""

    kind: PartKind
    start: int
    end: int


_KINDS: Final[Mapping[str, PartKind]] = MappingProxyType(
    {"rows": "rows", "html_table": "rows", "comment": "picture", "underline": "picture"}
)
_NO_TAIL = re.compile(r"(?<!\s)\s*+\{[^{}\n]{0,200}\}\s*\Z")
_PICTURE_END = re.compile(rf"\]{TARGET}(?:\{{[^{{}}]{{0,400}}\}})?")
_FIGCAPTION = re.compile(r"<figcaption\b[^<>]{0,200}>", re.IGNORECASE)
_BARE_RULE = re.compile(r"\A[ \t]*+-{2,}+(?:[ \t]++-{2,}+)++[ \t]*+")
_NUMERIC: Final = re.compile(
    r"[(\[<>\u2264\u2265~\u00b1+\u2212\u2013-]*\d[\d.,%\u00b1()\[\]\u2212\u2013/e\u00d7x*-]*[a-z]?"
)
_SIGN = re.compile(r"[=\u2236\u223c\u2264\u2265\u2208\u2211\u222b]")
_LONG_WORD = re.compile(r"[^\W\d_]{3,}")
_FLAT_SHARE = 0.3  # share of numbers among the words of a row
_FLAT_WORDS = 30
_REGISTERED = re.compile(r"(?m)^[^:\n]*+:.*\d{5}")  # "Trial registration: NCT00624286" is no heading
_CAPTION_WORDS = 4  # fewer words next to an image are its name
_FORMULA_WORDS = 3
_NESTED = 8  # maximum nesting of brackets around an image


def split_parts(text: str) -> Iterator[Part]:
    """The parts of `text`, in order and without overlap."""
    for block in parse_blocks(text, "passage"):
        if block.kind != "paragraph_open":
            formula = block.kind == "display_math" and not block.token.info.startswith("algorithm")
            kind = "equation" if formula else _KINDS.get(block.kind, "left out")
            yield from _part(text, kind, block.start, block.end)
            continue
        # A paragraph or list item: captions of its images separately, the rest by kind.
        place = block.start
        for left, right, alt in _pictures(text, block.start, block.end):
            yield from _part(text, None, place, left)
            yield from _part(text, "figure caption" if alt else "picture", *(alt or (left, right)))
            place = right
        yield from _part(text, None, place, block.end)


def _pictures(text: str, start: int, end: int) -> list[tuple[int, int, tuple[int, int] | None]]:
    """Each image, even if truncated, with its caption's span; skips images without one inside a sentence."""
    raw = text[start:end]
    if "](" not in raw and "![" not in raw:
        return []
    first, last = len(raw) - len(raw.lstrip()), len(raw.rstrip())
    found: list[tuple[int, int, tuple[int, int] | None]] = []
    opened: list[int] = []
    headless = False
    for match in re.finditer(r"(?<!\\)[\[\]]", raw):
        at = match.start()
        if match.group() == "[":
            opened.append(at)
            continue
        began = opened.pop() if opened else None
        is_picture = began is not None and raw[began - 1 : began] == "!"
        # At most one image is truncated at its beginning.
        may_end = (is_picture and len(opened) <= _NESTED) or (began is None and not headless)
        headless = headless or began is None
        closing = _PICTURE_END.match(raw, at) if may_end else None
        if closing is None:
            continue
        left, inner = (began - 1, began + 1) if began is not None else (0, 0)
        alone = left <= first and closing.end() >= last
        if len(raw[inner:at].split()) >= _CAPTION_WORDS:
            found.append((start + left, start + closing.end(), (start + inner, start + at)))
        elif alone:
            found.append((start + left, start + closing.end(), None))
    cut = next((at for at in opened if raw[at - 1 : at] == "!"), None)
    if cut is not None and not any(left < start + cut < right for left, right, _ in found):
        found.append((start + cut - 1, end, (start + cut + 1, end)))
    kept: list[tuple[int, int, tuple[int, int] | None]] = []
    for item in sorted(found, key=lambda one: (one[0], -one[1])):
        if not kept or item[0] >= kept[-1][1]:
            kept.append(item)
    return kept


def _part(text: str, kind: PartKind | None, start: int, end: int) -> Iterator[Part]:
    """The span without surrounding whitespace; its kind is inferred from its words unless given."""
    start, end = trim_span(text, start, end)
    if start == end:
        return
    if kind is not None:
        yield Part(kind, start, end)
        return
    deep = DEEP_HEADING.match(text, start, end)
    if deep:
        yield Part("prose" if "\n" in text[deep.end() : end] else "title", deep.end(), end)
        return
    found = _kind(text[start:end])
    if found.endswith("caption") and (tail := _NO_TAIL.search(text, start, end)) and tail.start() > start:
        end = tail.start()
    yield Part(found, start, end)


def _kind(raw: str) -> PartKind:
    if is_boilerplate(raw):
        return "picture"
    if is_reference(raw):
        return "left out"
    if caption := caption_kind(raw):
        return "table caption" if caption == "table" else "figure caption"
    if _FIGCAPTION.search(raw) or is_panelled(raw):
        return "figure caption"
    if any(map(_BARE_RULE.fullmatch, raw.split("\n"))):
        return "rows"
    if not any(map(str.isalnum, raw)):
        return "left out"
    # A table that lost its bars in a PDF: every line, but perhaps for a header, is a row of numbers with labels.
    lines = raw.split("\n")
    if not LIST_ITEM.match(raw) and all(map(_is_flat_row, lines[1:] if len(lines) > 2 else lines)):
        return "flat"
    if "\n" not in raw and len(raw) <= 200 and "|" not in raw:  # it may be a formula of a PDF, or a fragment of one
        signed, words = _SIGN.search(raw) is not None, len(_LONG_WORD.findall(raw))
        if words < _FORMULA_WORDS and (signed or not words):
            return "equation" if signed and len(raw) > 12 else "left out"
    heading = is_lone_heading(raw) and not (LIST_ITEM.match(raw) or "$" in raw or _REGISTERED.search(raw))
    return "title" if heading else "prose"


def _is_flat_row(line: str) -> bool:
    words = line.split()
    if not 2 <= len(words) <= _FLAT_WORDS or _SIGN.search(line) or line.rstrip().endswith((".", ":", ";", ",")):
        return False
    numbers = sum(_NUMERIC.fullmatch(word) is not None for word in words)
    return numbers >= 2 and numbers >= _FLAT_SHARE * len(words)


UnitKind = Literal["sentence", "table", "caption", "equation"]

_LATEX_ITEM = re.compile(r"\\item\b(?:\[[^\[\]]{0,80}\])?\s*")
_ENDS = re.compile(r"[.!?][)\"\u201d*_]{0,3}$")
_JOINED = 1_500  # maximum characters of a sentence with formulas
_HEAD = 200  # maximum characters of a table's column names
_FEWEST_ROWS = 2  # minimum rows of a table that lost its bars and has no caption
_CACHED = 512  # texts whose units are cached, since results are shown, quoted and searched again


@dataclass(frozen=True, slots=True)
class ReadableUnit:
    """A span of a text, and its shown form: `text`, on one line, without markup."""

    start: int
    end: int
    text: str
    kind: UnitKind


@lru_cache(maxsize=_CACHED)
def readable_units(text: str) -> tuple[ReadableUnit, ...]:
    """The units of `text` in order, without overlap; each shows at least one letter."""
    parts = [part for part in split_parts(text) if part.kind != "picture"]
    if all(part.kind in {"title", "left out"} for part in parts):  # there are only a few words
        parts = [replace(part, kind="prose") for part in parts if part.kind == "title"]
    found: list[ReadableUnit] = []
    index = 0
    while index < len(parts):
        stop = _table_end(text, parts, index)
        if stop > index:
            table = parts[index:stop]
            named = [part for part in (table[0], table[-1]) if part.kind in {"table caption", "title"}][:1]
            rows = "\n".join(text[part.start : part.end] for part in table if part not in named)
            caption = " ".join(plain_text(text[part.start : part.end]).lstrip(": ") for part in named)
            shown = format_table(rows, caption, below=bool(named) and named[0] is not table[0])
            found += _unit(table[0].start, table[-1].end, shown, "table")
            index = stop
        else:
            after = parts[index + 1] if index + 1 < len(parts) else None
            # What looks like a heading is prose if a formula or the rest of its sentence follows.
            continued = after and (after.kind == "equation" or (after.kind == "prose" and text[after.start].islower()))
            part = replace(parts[index], kind="prose") if parts[index].kind == "title" and continued else parts[index]
            found += _units(text, part)
            index += 1
    return tuple(_join_formulas(text, found))


def _table_end(text: str, parts: Sequence[Part], index: int) -> int:
    """The index after the table (with its caption) that begins with `parts[index]`; `index` if none begins."""
    titled = parts[index].kind in {"table caption", "title"}
    stop = index + titled
    if titled and stop + 1 < len(parts) and parts[stop + 1].kind in {"flat", "rows"}:
        # A line that is not a sentence may be the header of a table without bars.
        line = text[parts[stop].start : parts[stop].end]
        names_columns = len(line) <= _HEAD and "\n" not in line and line[-1] not in ".?!:;,"
        stop += names_columns and parts[stop].kind in {"title", "prose"}
    first, barred = stop, 0
    while stop < len(parts) and parts[stop].kind in {"rows", "flat"} and barred + (parts[stop].kind == "rows") < 2:
        barred += parts[stop].kind == "rows"
        stop += 1
    if stop == first:
        return index
    following = parts[stop].kind if stop < len(parts) else None
    if not titled and following == "table caption":
        return stop + 1
    # Such rows above a figure's caption are axis labels.
    is_table = stop - first >= _FEWEST_ROWS and following != "figure caption"
    return stop if barred or titled or is_table else index


def _units(text: str, part: Part) -> Iterator[ReadableUnit]:
    start, end = part.start, part.end
    if part.kind == "equation":
        yield from _unit(start, end, plain_formula(text[start:end].strip("$ \n")), "equation")
    elif part.kind in {"figure caption", "table caption"}:
        for left, right in split_caption(text, start, end):
            yield from _unit(left, right, plain_text(text[left:right]).lstrip(": "), "caption")
    elif part.kind in {"prose", "flat"}:
        marker = _LATEX_ITEM.match(text, start, end)
        for left, right in sentences_between(text, marker.end() if marker else start, end):
            if not is_boilerplate(text[left:right]):
                yield from _unit(left, right, plain_text(text[left:right]), "sentence")


def _join_formulas(text: str, units: Sequence[ReadableUnit]) -> list[ReadableUnit]:
    """Join display formulas to the sentence that precedes and continues after them."""
    joined: list[ReadableUnit] = []
    formula = False  # whether the last unit ends in a formula
    for unit in units:
        last = joined[-1] if joined else None
        leads = unit.kind == "equation" and last is not None and last.kind == "sentence" and not _ENDS.search(last.text)
        goes_on = formula and unit.kind == "sentence" and unit.text[:1].islower()
        if last and (leads or goes_on) and unit.end - last.start <= _JOINED and not text[last.end : unit.start].strip():
            joined[-1] = ReadableUnit(last.start, unit.end, f"{last.text} {unit.text}", last.kind)
        else:
            joined.append(unit)
        formula = unit.kind == "equation"
    return joined


def _unit(start: int, end: int, shown: str, kind: UnitKind) -> Iterator[ReadableUnit]:
    if any(map(str.isalpha, shown)):
        yield ReadableUnit(start, end, shown, kind)


_ROW = re.compile(r"[ \t]*\|")


@dataclass(frozen=True, slots=True)
class TableHead:
    """The column names of a table: `text[start:end]` of the chunk `chunk_id`, and on one line."""

    chunk_id: str
    start: int
    end: int
    row: str


def continues_table(text: str) -> bool:
    """Whether a passage begins inside a table whose column names are in an earlier passage."""
    lines = [line for line in text.splitlines() if line.strip()][:2]
    return bool(lines) and bool(_ROW.match(lines[0])) and not any(map(is_table_rule, lines[1:]))


def open_table_head(chunk_id: str, text: str) -> TableHead | None:
    """The column names of the table in which a passage ends; None if it has none."""
    lines = list(re.finditer(r"[^\n]+", text.rstrip()))
    first = len(lines)
    while first and _ROW.match(lines[first - 1][0]):
        first -= 1
    for place in range(first + 1, len(lines)):
        if is_table_rule(lines[place][0]):
            start, end = lines[first].start(), lines[place - 1].end()
            return TableHead(chunk_id, start, end, format_table(text[start:end], "", below=False))
    return None
