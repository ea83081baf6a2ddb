"""What a model is shown of a passage: numbered units that say something, each with its exact place in the text.

A unit is a sentence, a table with its caption, a panel of a figure's caption, or a formula. Pictures, addresses,
headings, licences, page headers, program code and entries of the reference list are none. What is shown is cleaned
of markup; what is quoted is `text[start:end]`.
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
_JOINED = 1_500  # characters of the longest sentence with formulas
_HEAD = 200  # characters of the names of a table's columns
_KEPT = 512  # texts whose units are cached: what is searched for is shown, quoted and searched for again
_FEWEST_ROWS = 2  # of a table that lost its bars and has no caption


@dataclass(frozen=True, slots=True)
class ReadableUnit:
    """A stretch of a text, `text[start:end]`, and how it is shown: `text`, on one line, without markup."""

    start: int
    end: int
    text: str
    kind: UnitKind


@lru_cache(maxsize=_KEPT)
def readable_units(text: str) -> tuple[ReadableUnit, ...]:
    """The units of `text` in order; they do not overlap, and each shows at least one letter."""
    parts = [part for part in parts_of(text) if part.kind != "picture"]
    if all(part.kind in {"title", "left out"} for part in parts):  # a few words are all there is
        parts = [replace(part, kind="prose") for part in parts if part.kind == "title"]
    found: list[ReadableUnit] = []
    index = 0
    while index < len(parts):
        stop = _table_end(text, parts, index)
        if stop > index:
            found += _table(text, parts[index:stop])
            index = stop
        else:
            found += _units(text, _read_on(text, parts, index))
            index += 1
    return tuple(_with_formulas(text, found))


def _read_on(text: str, parts: Sequence[Part], index: int) -> Part:
    """The part; one that looks like a heading is prose where a formula or the rest of its sentence follows."""
    part, after = parts[index], parts[index + 1] if index + 1 < len(parts) else None
    follows = after is not None and (
        after.kind == "equation" or (after.kind == "prose" and text[after.start].islower())
    )
    return replace(part, kind="prose") if part.kind == "title" and follows else part


def _table_end(text: str, parts: Sequence[Part], index: int) -> int:
    """The part behind the table that begins with `parts[index]`, with its caption; `index` where none begins."""
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
    """Whether a line that is no sentence may be the head of a table, which has no bars and no numbers."""
    line = text[part.start : part.end]
    return part.kind in {"title", "prose"} and len(line) <= _HEAD and "\n" not in line and line[-1] not in ".?!:;,"


def _labels_figure(parts: Sequence[Part], stop: int) -> bool:
    """Whether the rows before `parts[stop]` are the words and numbers along the axes of a figure."""
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
    """The units of a part that belongs to no table."""
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
    """Formulas on lines of their own joined to the sentence that leads to them and goes on behind them."""
    joined: list[ReadableUnit] = []
    formula = False  # the last one ends in a formula
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
