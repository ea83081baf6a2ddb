"""Reads columns as a user writes them: `n`, `effect:number[%]`, `blinded:yes/no`, `design:RCT|cohort|other`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from ..errors import InputError
from ..roles.cell_protocols import COLUMN_KINDS, TableColumn

_MOST_COLUMNS: Final = 20
_LONGEST: Final = 60  # characters of a name
_WORDS_OF_A_NAME: Final = 3  # in a question
_UNIT: Final = re.compile(r"\[([^\[\]]{1,30})\]\s*$")
# What common names mean, worded as a paper would state it, for tables made without a chat model.
# Each: names; the question asked; two searches.
_KNOWN: Final = (
    (
        "n, sample size, participants, patients, subjects, number of subjects, number of participants",
        "how many participants, patients, samples or items were studied",
        "a total of n participants were included; the sample consisted of patients",
    ),
    (
        "design, study design, type of study, method, methods",
        "how the study was designed",
        "we conducted a randomized controlled trial; this was a cohort, case-control or cross-sectional study",
    ),
    (
        "outcome, outcomes, main outcome, primary outcome, endpoint",
        "what was measured as the main outcome",
        "the primary outcome was; we measured",
    ),
    (
        "effect, effect size, result, results, main result, finding, findings",
        "the main result, with its size",
        "we found that; was significantly higher than in the control group",
    ),
    (
        "population, sample, data set, dataset, data",
        "who or what was studied",
        "patients with the disease were recruited; the data set consists of",
    ),
    (
        "intervention, treatment, exposure, dose",
        "what the treated group received",
        "patients were randomly assigned to receive; the treatment group received",
    ),
    (
        "comparator, comparison, control, baseline",
        "what the study compared with",
        "the control group received placebo; compared with the baseline",
    ),
    (
        "country, countries, setting, place, location",
        "where the study was done",
        "the study was conducted at the university hospital in; participants were recruited in the country",
    ),
    (
        "limitations, limitation",
        "the limitations that the authors name",
        "a limitation of this study is; our study has several limitations",
    ),
)


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
    """The question and the columns listed after its colon: "trials of aspirin: n, dose and design"."""
    subject, colon, listed = question.rstrip(" ?.").rpartition(":")
    names = [name.strip() for name in listed.replace(" and ", ",").replace(";", ",").split(",") if name.strip()]
    if not colon or len(names) < 2 or any(len(name.split()) > _WORDS_OF_A_NAME for name in names):
        return question, ()
    return subject.strip(), tuple(names)


def describe_column(column: TableColumn) -> TableColumn:
    """The column with what its name usually means; unchanged if the name is not a common one."""
    name = column.name.casefold()
    for names, asks, queries in _KNOWN:
        if name in names.split(", "):
            kind = "number" if column.kind == "text" and names.startswith("n,") else column.kind
            return replace(column, asks=asks, kind=kind, queries=tuple(queries.split("; ")))
    return column


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
