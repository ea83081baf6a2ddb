"""Columns as a user writes them, the cells of a table, and the numbers in them.

A column is `n`, `effect:number[%]`, `blinded:yes/no`, `design:RCT|cohort|other`. A cell is accepted if its words
contain each number, or a formula of printed numbers yields it.

A stance column tells which studies agree with a claim as stated: a result for other people, doses, times or settings is
neither for nor against it, and finding no difference is not a result in the other direction.
"""

from __future__ import annotations

import ast
import operator
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import asdict, dataclass, replace
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import cache
from importlib.resources import files
from statistics import median
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from ..citations.checks.number_parsing import Number, given_numbers
from ..documents import Chunk
from ..documents.plain_text import is_table_rule
from ..documents.types import EvidenceSpan
from ..errors import InputError
from ..plurals import counted
from ..roles.protocols import COLUMN_KINDS, CellReading, Need, TableColumn

if TYPE_CHECKING:
    from pint import UnitRegistry


CellStatus = Literal["reported", "computed", "conflicting", "not_reported", "not_judged", "unread", "edited"]
STATUSES: Final[tuple[CellStatus, ...]] = get_args(CellStatus)

STATUS_LABELS: Final = {"not_reported": "not reported", "unread": "not read", "not_judged": "nothing near"}
_MARKS: Final = {"conflicting": "[conflicting]", "edited": "[edited]", "not_judged": "[not judged]"}

_NAMED: Final = re.compile(r"[^\W\d_]{3}$")  # a value that ends in a word needs no unit after it
_PLAIN: Final = ("value", "unit", "condition", "formula", "converted", "status")  # fields of a cell
_MOST_CHARACTERS: Final = 200  # of a formula
_FACTORS: Final = frozenset(map(Decimal, (1, 2, 100)))  # numbers that a formula may use though no paper prints them
_WRITTEN_AS: Final = str.maketrans("×−÷·", "*-/.")
_LINE: Final = re.compile(r"[^\n]+")
_OPERATORS: Final[dict[type[ast.operator], Callable[[Decimal, Decimal], Decimal]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


@dataclass(frozen=True, slots=True)
class TableCell:
    """A value with the words it rests on.

    `value` is as printed, `converted` is in the column's unit, empty if not converted. `alternatives` are further
    values that the paper states for the same thing; if two values are for the same condition, the status is
    "conflicting". `searched` are the searches made before a value was called not reported.
    """

    value: str = ""
    unit: str = ""
    condition: str = ""
    formula: str = ""
    converted: str = ""
    status: CellStatus = "not_reported"
    spans: tuple[EvidenceSpan, ...] = ()
    alternatives: tuple[TableCell, ...] = ()
    searched: tuple[str, ...] = ()

    @property
    def quote(self) -> str:
        """The words of all spans on one line, with three dots between them."""
        return " ... ".join(" ".join(span.quote.split()) for span in self.spans)

    def as_dict(self) -> dict[str, Any]:
        """Convert to plain data for the JSON of a table."""
        spans = [asdict(span) for span in self.spans]
        nowhere = {"page": None, "chunk_id": "", "start": None, "end": None}
        return {
            **{name: getattr(self, name) for name in (*_PLAIN, "quote")},
            **{name: (spans or [nowhere])[0][name] for name in nowhere},
            "spans": spans,
            "alternatives": [cell.as_dict() for cell in self.alternatives],
            "searched": list(self.searched),
        }


def format_cell(cell: Mapping[str, Any]) -> str:
    """Format a cell: value (converted if possible), condition, formula or status, further values."""
    if cell["status"] in STATUS_LABELS and not cell["value"]:
        return STATUS_LABELS[cell["status"]]
    value = cell["converted"] or cell["value"]
    named = cell["value"].endswith(cell["unit"]) or _NAMED.search(cell["value"])
    printed = cell["value"] if named else f"{cell['value']} {cell['unit']}"
    parts = [f"{value} [{printed}]" if cell["converted"] else printed]
    parts += [f"({cell['condition']})"] * bool(cell["condition"])
    mark = f"[= {cell['formula']}]" if cell["status"] == "computed" else _MARKS.get(cell["status"])
    parts += [mark] if mark else []
    return " / ".join([" ".join(parts), *map(format_cell, cell["alternatives"])])


def study_name(row: Mapping[str, Any]) -> str:
    """Return the paper's key, with the study's name if the paper has several."""
    return f"{row['key']}: {row['study']}" if row["study"] else str(row["key"])


def accept_cells(readings: Sequence[CellReading], column: TableColumn) -> TableCell | None:
    """Return the cell of one column of a study; None if no reading is supported by its words."""
    cells = [cell for reading in readings if (cell := _accept(reading, column)) is not None]
    distinct = list({(cell.value.casefold(), cell.unit.casefold(), cell.condition): cell for cell in cells}.values())
    if not distinct:
        return None
    first, *others = distinct
    conditions = Counter(cell.condition.casefold() for cell in distinct)
    # Values under different conditions do not conflict.
    status = "conflicting" if conditions.total() > len(conditions) else first.status
    return replace(first, status=status, alternatives=tuple(others))


def _accept(reading: CellReading, column: TableColumn) -> TableCell | None:
    spans = tuple(EvidenceSpan.of(*part) for span in reading.spans for part in _narrow_to_row(*span, reading.value))
    printed = {number.value for span in spans for number in given_numbers(span.quote)}
    unit = reading.unit
    converted = convert_value(reading.value, unit, column.unit)
    cell = TableCell(reading.value, unit, reading.condition, "", converted, "reported", spans)
    if column.kind in ("choice", "yes/no") or are_numbers_printed(reading.value, printed):
        return cell
    wanted = outermost_numbers(given_numbers(reading.value))
    by_formula = len(wanted) == 1 and are_numbers_printed(reading.formula, printed | _FACTORS)
    result = evaluate_formula(reading.formula) if by_formula else None
    # The formula must yield the number, rounded as printed.
    if result is not None and abs(result - wanted[0].value) <= wanted[0].unit / 2:
        return replace(cell, formula=reading.formula, status="computed")
    return None


def _narrow_to_row(chunk: Chunk, start: int, end: int, value: str) -> list[tuple[Chunk, int, int]]:
    """Narrow a table to its caption and header, and the row with the value's numbers; other text stays whole."""
    lines = list(_LINE.finditer(chunk.text, start, end))
    rule = next((place for place, line in enumerate(lines) if place and is_table_rule(line[0])), None)
    wanted = {number.value for number in outermost_numbers(given_numbers(value))}
    if rule is None or not wanted:
        return [(chunk, start, end)]
    rows = [row for row in lines[rule + 1 :] if wanted <= {number.value for number in given_numbers(row[0])}]
    if not rows:
        return [(chunk, start, end)]
    return [(chunk, start, lines[rule - 1].end()), (chunk, rows[0].start(), rows[0].end())]


def are_numbers_printed(text: str, printed: Set[Decimal]) -> bool:
    """Whether all numbers of a text are printed, whole or, as in "12 of 48" and "10 000", by their parts."""
    numbers = given_numbers(text)
    parts = {
        whole: [item for item in numbers if item != whole and whole.start <= item.start and item.end <= whole.end]
        for whole in outermost_numbers(numbers)
    }
    return all(
        printed >= {whole.value} or (inside and printed >= {item.value for item in inside})
        for whole, inside in parts.items()
    )


def outermost_numbers(numbers: Sequence[Number]) -> list[Number]:
    """Return the numbers that are not part of another number: in "10 000" not 10."""
    return [item for item in numbers if not any(_is_inside(item, other) for other in numbers)]


def _is_inside(item: Number, other: Number) -> bool:
    return other.start <= item.start and item.end <= other.end and item.end - item.start < other.end - other.start


def evaluate_formula(formula: str) -> Decimal | None:
    """Evaluate numbers, + - * / and brackets; None for anything else."""
    plain = formula.partition("=")[0].translate(_WRITTEN_AS).replace(",", "").strip()
    if not plain or len(plain) > _MOST_CHARACTERS:
        return None
    try:
        with localcontext() as context:
            context.prec = 28
            return _evaluate(ast.parse(plain, mode="eval").body)
    except (SyntaxError, ValueError, DivisionByZero, InvalidOperation, Overflow, RecursionError):
        return None


def _evaluate(node: ast.expr) -> Decimal:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        return Decimal(str(node.value))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluate(node.operand)
    if isinstance(node, ast.BinOp) and type(node.op) in _OPERATORS:
        return _OPERATORS[type(node.op)](_evaluate(node.left), _evaluate(node.right))
    raise ValueError("only numbers, + - * / and brackets are evaluated")


def convert_value(value: str, unit: str, wanted: str) -> str:
    """Convert a value to another unit, rounded; empty if it needs or allows no conversion, or has several numbers."""
    numbers = outermost_numbers(given_numbers(value))
    if not wanted or not unit or unit.casefold() == wanted.casefold() or len(numbers) != 1:
        return ""
    import pint  # takes half a second, needed only for units

    number = numbers[0]
    amount = number.value * 100 if number.scale == "percent" and "%" not in value else number.value
    try:
        quantity = _units().Quantity(amount, _units().parse_units(unit)).to(wanted)
    except (pint.PintError, ValueError, ArithmeticError, AttributeError, TypeError):
        return ""
    digits = Context(prec=max(6, len(amount.as_tuple().digits)))  # a year is 52.1786 weeks
    return f"{quantity.magnitude.normalize(digits):f}"


@cache
def _units() -> UnitRegistry[Decimal]:
    import pint

    return pint.UnitRegistry(non_int_type=Decimal)


_LEVEL: Final = re.compile(r"\s?%?\s?(?:C[rI]?I\b|confidence|credible)", re.IGNORECASE)  # after "95"
_SPREAD: Final = re.compile(r"\s?(?:\(|\[|±|$)")  # after a value: "12.4 (SD 3.1)"


@dataclass(frozen=True, slots=True)
class CellValue:
    """A cell's number with its unit; `low` and `high` are the ends of its interval, if it has one."""

    label: str
    at: float
    unit: str
    low: float | None = None
    high: float | None = None


def column_values(table: Mapping[str, Any], column: Mapping[str, Any]) -> Iterator[CellValue]:
    """Yield the values of a number or interval column, in row order; cells without a value are skipped."""
    if column["kind"] not in ("number", "interval"):
        return
    for row in table["rows"]:
        cell = row["cells"][column["name"]]
        if cell["status"] in ("reported", "computed", "conflicting", "edited"):
            unit = column["unit"] if cell["converted"] or cell["status"] == "edited" else cell["unit"]
            if (found := _read(cell["converted"] or cell["value"], column["kind"])) is not None:
                yield CellValue(study_name(row), found[0], unit, *found[1:])


def _read(text: str, kind: str) -> tuple[float, ...] | None:
    """Read a cell's estimate, and the ends of its interval if it has one; None if it is ambiguous."""
    numbers = [number for number in outermost_numbers(given_numbers(text)) if not _LEVEL.match(text, number.end)]
    values = [float(number.value) for number in numbers]
    if kind == "interval" and len(values) == 3 and values[1] <= values[0] <= values[2]:
        return tuple(values)
    if len(values) == 1 or (values and _SPREAD.match(text, numbers[0].end)):
        return (values[0],)
    return None


def column_summaries(table: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Summarise each number column by unit: count, median and range."""
    found: dict[str, list[dict[str, Any]]] = {}
    for column in table["columns"]:
        by_unit: dict[str, list[float]] = defaultdict(list)
        for value in column_values(table, column):
            by_unit[value.unit].append(value.at)
        if by_unit:
            found[column["name"]] = [
                {"unit": unit, "count": len(given), "median": median(given), "low": min(given), "high": max(given)}
                for unit, given in by_unit.items()
            ]
    return found


def column_summary_lines(table: Mapping[str, Any]) -> list[str]:
    """Format the summaries of a table's columns, a line for each unit."""
    return [
        f"{name}: {counted(item['count'], 'value')}, median {item['median']:.6g}, "
        f"{item['low']:.6g} to {item['high']:.6g} {item['unit']}".rstrip()
        for name, units in table["sums"].items()
        for item in units
    ]


_MOST_COLUMNS: Final = 20
_LONGEST: Final = 60  # characters of a column's name
_WORDS_OF_A_NAME: Final = 3  # of a column's name in a question
_UNIT: Final = re.compile(r"\[([^\[\]]{1,30})\]\s*$")


class ColumnError(InputError):
    """A column cannot be understood."""

    default_help = (
        "Write a name, and after a colon its kind: text, number, number[unit], yes/no, p-value, interval, or the "
        "allowed values divided by |."
    )


def parse_columns(written: Sequence[str]) -> tuple[TableColumn, ...]:
    """Parse columns; raises `ColumnError` for an empty or repeated name, an unknown kind, or too many columns."""
    columns = tuple(_parse(item) for item in written)
    names = [column.name.casefold() for column in columns]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ColumnError(f"The column {twice!r} is named twice.")
    if len(columns) > _MOST_COLUMNS:
        raise ColumnError(f"A table has at most {_MOST_COLUMNS} columns, not {len(columns)}.")
    return columns


def split_columns(question: str) -> tuple[str, tuple[str, ...]]:
    """Split a question from the columns listed after its colon: "trials of aspirin: n, dose and design"."""
    subject, colon, listed = question.rstrip(" ?.").rpartition(":")
    names = [name.strip() for name in listed.replace(" and ", ",").replace(";", ",").split(",") if name.strip()]
    if not colon or len(names) < 2 or any(len(name.split()) > _WORDS_OF_A_NAME for name in names):
        return question, ()
    return subject.strip(), tuple(names)


def describe_column(column: TableColumn) -> TableColumn:
    """Describe a column by the usual meaning of a common name, for tables without a chat model."""
    if (known := _common_column(column)) is None:
        return column
    names, asks, queries, _ = known
    kind = "number" if column.kind == "text" and names.startswith("n,") else column.kind
    return replace(column, asks=asks, kind=kind, queries=tuple(queries.split("; ")))


def statement_rule(column: TableColumn) -> str:
    """Return the rule for `find_statement` that finds statements of a column with a common name, else empty."""
    known = _common_column(column)
    return known[3] if known else ""


def _common_column(column: TableColumn) -> list[str] | None:
    return next((line for line in _known_columns() if column.name.casefold() in line[0].split(", ")), None)


@cache
def _known_columns() -> list[list[str]]:
    table = files("citeloom.evidence_tables").joinpath("templates", "known_columns.tsv").read_text(encoding="utf-8")
    return [line.split("\t") for line in table.splitlines()]


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


# From against to for, as ordered in the picture.
STANCES: Final = ("against", "no difference", "other condition", "mixed", "for")
STANCE: Final = "stance"
_NOT_JUDGED: Final = "not judged"
_DIRECTION: Final = "which way the outcome of the claim went in this study"
_DIRECTIONS: Final = ("increased", "decreased", "no difference", "other")


def stance_column(claim: str, name: str = STANCE) -> TableColumn:
    """Make the column for the studies' stances on a claim."""
    asks = (
        f"the paper's stance on the claim “{claim}”: for, if its results bear the claim out; against, if they go the "
        "other way; no difference, if none was found where the claim says that there is one; mixed, if its own results "
        "disagree; other condition, if they bear on it only for other people, doses, times, comparisons or settings. "
        "The condition says what the result holds for. No cell if it reports nothing on the claim"
    )
    return TableColumn(name, asks, "choice", options=STANCES[::-1], queries=(claim,))


def agreement_columns(claim: str, *, judged: bool) -> tuple[TableColumn, ...]:
    """Make the columns for a claim; unless `judged` by a chat model, only the one for the nearest sentences."""
    direction = TableColumn("direction", _DIRECTION, "choice", options=_DIRECTIONS, queries=(claim,))
    about = [direction, *(describe_column(TableColumn(name)) for name in ("design", "n"))]
    return (stance_column(claim), *(about if judged else ()))


def claim_needs(claims: Sequence[str]) -> tuple[Need, ...]:
    """Make the needs by which papers are screened for claims."""
    return tuple(Need(f"N{number}", claim, (claim,)) for number, claim in enumerate(claims, 1))


def is_stance(column: Mapping[str, Any]) -> bool:
    """Whether a column of a table's JSON holds stances on a claim, which is its query."""
    return tuple(column["options"]) == STANCES[::-1] and bool(column["queries"])


def stance_of(cell: Mapping[str, Any]) -> str:
    """Return the stance in a cell; empty if its paper says nothing on the claim."""
    if cell["status"] == "not_judged":
        return _NOT_JUDGED if cell["value"] else ""
    found = {item["value"].casefold() for item in (cell, *cell["alternatives"])} & {*STANCES}
    return "mixed" if len(found) > 1 else next(iter(found), "")


def stances(table: Mapping[str, Any], column: str = STANCE) -> Iterator[dict[str, Any]]:
    """Yield the studies that say something on a column's claim, those for it first, with the words that decide."""
    order = {name: place for place, name in enumerate((*STANCES[::-1], _NOT_JUDGED))}
    found = [(stance, row) for row in table["rows"] if (stance := stance_of(row["cells"][column]))]
    for stance, row in sorted(found, key=lambda item: order[item[0]]):
        cell = row["cells"][column]
        others = {name: other for name, other in row["cells"].items() if name in ("direction", "design", "n")}
        yield {
            **{name: row[name] for name in ("key", "title", "year", "study", "changed")},
            "stance": stance,
            "condition": cell["condition"],
            **{name: format_cell(others[name]) if name in others else "" for name in ("direction", "design", "n")},
            **{name: cell[name] for name in ("quote", "page", "chunk_id", "start", "end", "edited")},
            "spans": [span for item in (cell, *cell["alternatives"]) for span in item["spans"]],
        }


def agreement_record(table: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a table's JSON to the JSON of `agree`."""
    studies = list(stances(table))
    telling = {study["key"] for study in studies}
    read = {row["key"]: row for row in table["rows"] if row["key"] not in telling}
    papers: dict[str, set[str]] = defaultdict(set)
    for study in studies:
        papers[study["stance"]].add(study["key"])
    silent = [{**{name: row[name] for name in ("key", "title", "year")}, "reason": ""} for row in read.values()]
    return {
        "claim": table["question"],
        **{name: table[name] for name in ("table_id", "papers", "screened", "removed", "notice")},
        "counts": {name: len(papers[name]) for name in (*STANCES[::-1], _NOT_JUDGED) if papers[name]},
        "studies": studies,
        "silent": [*silent, *table["left_out"]],
    }


def disagreements(table: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Find the claims on which a table's papers disagree, each with the stances and passages of both sides."""
    found: list[dict[str, Any]] = []
    for column in filter(is_stance, table["columns"]):
        studies = list(stances(table, column["name"]))
        sides = [[item for item in studies if item["stance"] in side] for side in (("for",), STANCES[:2])]
        if len({item["key"] for item in studies if item["stance"] in ("for", *STANCES[:2])}) > 1 and all(sides):
            reason = "; ".join(f"{item['key']}: {item['stance']}" for side in sides for item in side)
            found.append({"claim": column["queries"][0], "reason": reason, "passages": [*sides[0], *sides[1]]})
    return found


def agreement_lines(record: Mapping[str, Any]) -> list[str]:
    """Format the counts of an agreement."""
    counts = [f"{number} {name}" for name, number in record["counts"].items()]
    others = record["screened"] - len(record["silent"]) - len({study["key"] for study in record["studies"]})
    line = (
        f"{', '.join(counts) or 'No paper says anything'}; {len(record['silent'])} read without a result on the claim"
    )
    more = f", {others} excluded by their cards" if others > 0 else ""
    return [f"{line}{more}, of {record['papers']} papers in scope."]
