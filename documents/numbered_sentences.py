"""Splits a passage into the numbered units shown to a model, each with its exact span in the text.

A unit is a sentence, a table with its caption, a panel of a figure's caption, or a formula. Images, addresses,
headings, licences, page headers, program code and entries of the reference list are skipped. The shown text is cleaned
of markup; the quote is `text[start:end]`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from ..text.sentences import sentences_between
from .boilerplate import is_furniture
from .captions import cut_caption
from .passage_parts import Part, parts_of
from .strip_markup import plain_formula, plain_text
from .table_rows import shown_table

UnitKind = Literal["sentence", "table", "caption", "equation"]

_LATEX_ITEM = re.compile(r"\\item\b(?:\[[^\[\]]{0,80}\])?\s*")
_ENDS = re.compile(r"[.!?][)\"\u201d*_]{0,3}$")
_JOINED = 1_500  # maximum characters of a sentence with formulas
_HEAD = 200  # maximum characters of a table's column names
_FEWEST_ROWS = 2  # for a table that lost its bars and has no caption
_CACHED = 512  # texts whose units are cached: what is found is shown, quoted and searched again


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
    parts = [part for part in parts_of(text) if part.kind != "picture"]
    if all(part.kind in {"title", "left out"} for part in parts):  # there are only a few words
        parts = [replace(part, kind="prose") for part in parts if part.kind == "title"]
    found: list[ReadableUnit] = []
    index = 0
    while index < len(parts):
        stop = _table_end(text, parts, index)
        if stop > index:
            found += _table(text, parts[index:stop])
            index = stop
        else:
            found += _units(text, _reclassified(text, parts, index))
            index += 1
    return tuple(_with_formulas(text, found))


def _reclassified(text: str, parts: Sequence[Part], index: int) -> Part:
    """Reclassify an apparent heading as prose if a formula or the rest of its sentence follows."""
    part, after = parts[index], parts[index + 1] if index + 1 < len(parts) else None
    follows = after is not None and (
        after.kind == "equation" or (after.kind == "prose" and text[after.start].islower())
    )
    return replace(part, kind="prose") if part.kind == "title" and follows else part


def _table_end(text: str, parts: Sequence[Part], index: int) -> int:
    """The index after the table (with its caption) that begins with `parts[index]`; `index` if none begins."""
    stop = index
    titled = parts[stop].kind in {"table caption", "title"}
    stop += titled
    if (
        titled
        and stop + 1 < len(parts)
        and parts[stop + 1].kind in {"flat", "rows"}
        and _names_columns(text, parts[stop])
    ):
        stop += 1
    first, barred = stop, 0
    while stop < len(parts) and parts[stop].kind in {"rows", "flat"} and barred + (parts[stop].kind == "rows") < 2:
        barred += parts[stop].kind == "rows"
        stop += 1
    if stop == first:
        return index
    captioned = titled
    if not titled and stop < len(parts) and parts[stop].kind == "table caption":
        stop, captioned = stop + 1, True
    rows = stop - first
    return stop if barred or captioned or (rows >= _FEWEST_ROWS and not _labels_figure(parts, stop)) else index


def _names_columns(text: str, part: Part) -> bool:
    """Whether a line that is not a sentence may be the header of a table without bars."""
    line = text[part.start : part.end]
    return part.kind in {"title", "prose"} and len(line) <= _HEAD and "\n" not in line and line[-1] not in ".?!:;,"


def _labels_figure(parts: Sequence[Part], stop: int) -> bool:
    """Whether the rows before `parts[stop]` are the axis labels of a figure."""
    return stop < len(parts) and parts[stop].kind == "figure caption"


def _table(text: str, parts: Sequence[Part]) -> Iterator[ReadableUnit]:
    start, end = parts[0].start, parts[-1].end
    named = [part for part in (parts[0], parts[-1]) if part.kind in {"table caption", "title"}][:1]
    rows = "\n".join(text[part.start : part.end] for part in parts if part not in named)
    caption = " ".join(plain_text(text[part.start : part.end]).lstrip(": ") for part in named)
    shown = shown_table(rows, caption, below=bool(named) and named[0] is not parts[0])
    if _says_something(shown):
        yield ReadableUnit(start, end, shown, "table")


def _units(text: str, part: Part) -> Iterator[ReadableUnit]:
    """The units of a part that is not in a table."""
    start, end = part.start, part.end
    if part.kind == "equation":
        yield from _unit(start, end, plain_formula(text[start:end].strip("$ \n")), "equation")
    elif part.kind in {"figure caption", "table caption"}:
        for left, right in cut_caption(text, start, end):
            yield from _unit(left, right, plain_text(text[left:right]).lstrip(": "), "caption")
    elif part.kind in {"prose", "flat"}:
        marker = _LATEX_ITEM.match(text, start, end)
        for left, right in sentences_between(text, marker.end() if marker else start, end):
            if not is_furniture(text[left:right]):
                yield from _unit(left, right, plain_text(text[left:right]), "sentence")


def _with_formulas(text: str, units: Sequence[ReadableUnit]) -> list[ReadableUnit]:
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
    if _says_something(shown):
        yield ReadableUnit(start, end, shown, kind)


def _says_something(shown: str) -> bool:
    return any(map(str.isalpha, shown))
