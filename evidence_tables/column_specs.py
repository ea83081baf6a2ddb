"""Reads columns as a user writes them: `n`, `effect:number[%]`, `blinded:yes/no`, `design:RCT|cohort|other`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from importlib.resources import files
from typing import Final

from ..errors import InputError
from ..roles.cell_protocols import COLUMN_KINDS, TableColumn

_MOST_COLUMNS: Final = 20
_LONGEST: Final = 60  # characters of a name
_WORDS_OF_A_NAME: Final = 3  # in a question
_UNIT: Final = re.compile(r"\[([^\[\]]{1,30})\]\s*$")


class ColumnError(InputError):
    """A column cannot be understood."""

    default_help = (
        "Write a name, and after a colon its kind: text, number, number[unit], yes/no, p-value, interval, or the "
        "allowed values divided by |."
    )


def parse_columns(written: Sequence[str]) -> tuple[TableColumn, ...]:
    """The columns in their order; raises `ColumnError` for an empty or repeated name, an unknown kind, or too many."""
    columns = tuple(_parse(item) for item in written)
    names = [column.name.casefold() for column in columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ColumnError(f"The column {twice!r} is named twice.")
    if len(columns) > _MOST_COLUMNS:
        raise ColumnError(f"A table has at most {_MOST_COLUMNS} columns, not {len(columns)}.")
    return columns


def split_columns(question: str) -> tuple[str, tuple[str, ...]]:
    """A question without the columns listed after its colon, and these: "trials of aspirin: n, dose and design"."""
    subject, colon, listed = question.rstrip(" ?.").rpartition(":")
    names = [name.strip() for name in listed.replace(" and ", ",").replace(";", ",").split(",") if name.strip()]
    if not colon or len(names) < 2 or any(len(name.split()) > _WORDS_OF_A_NAME for name in names):
        return question, ()
    return subject.strip(), tuple(names)


def describe_column(column: TableColumn) -> TableColumn:
    """The column with what a common name usually means in papers, else unchanged; for tables without a chat model."""
    if (known := _known(column)) is None:
        return column
    names, asks, queries, _ = known
    kind = "number" if column.kind == "text" and names.startswith("n,") else column.kind
    return replace(column, asks=asks, kind=kind, queries=tuple(queries.split("; ")))


def stated_as(column: TableColumn) -> str:
    """The rule of `find_statement` by which papers state what a common name means, else empty."""
    known = _known(column)
    return known[3] if known else ""


def _known(column: TableColumn) -> list[str] | None:
    table = files("citeloom.evidence_tables").joinpath("templates", "known_columns.tsv").read_text(encoding="utf-8")
    lines = [line.split("\t") for line in table.splitlines()]
    return next((line for line in lines if column.name.casefold() in line[0].split(", ")), None)


def _parse(written: str) -> TableColumn:
    name, _, given = (part.strip() for part in " ".join(written.split()).partition(":"))
    if not any(character.isalnum() for character in name) or len(name) > _LONGEST:
        raise ColumnError(f"The column {written!r} needs a name of at most {_LONGEST} characters.")
    unit = _UNIT.search(given) if given else _UNIT.search(name)
    if unit and not given:
        return TableColumn(name[: unit.start()].strip() or name, kind="number", unit=unit[1].strip())
    kind = given[: unit.start()].strip() if unit else given
    if "|" in kind:
        options = tuple(dict.fromkeys(option.strip() for option in kind.split("|") if option.strip()))
        return TableColumn(name, kind="choice", options=options)
    if kind and kind.casefold() not in COLUMN_KINDS:
        raise ColumnError(f"The column {name!r} has the unknown kind {kind!r}.")
    known = next((item for item in COLUMN_KINDS if item == kind.casefold()), COLUMN_KINDS[0])
    return TableColumn(name, kind=known, unit=unit[1].strip() if unit else "")
