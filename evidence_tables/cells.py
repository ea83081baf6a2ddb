"""The cells of a table: accepted if their words have each number, or a formula of printed numbers yields it."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal, DivisionByZero, InvalidOperation, Overflow, localcontext
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from ..citations.checks.number_parsing import Number, given_numbers
from ..documents import Chunk
from ..documents.blocks import is_table_rule
from ..documents.types import EvidenceSpan
from ..roles.cell_protocols import CellReading, TableColumn

if TYPE_CHECKING:
    from pint import UnitRegistry

CellStatus = Literal["reported", "computed", "conflicting", "not_reported", "not_judged", "unread", "edited"]
STATUSES: Final[tuple[CellStatus, ...]] = get_args(CellStatus)

STATUS_LABELS: Final = {"not_reported": "not reported", "unread": "not read", "not_judged": "nothing near"}
_MARKS: Final = {"conflicting": "[conflicting]", "edited": "[edited]", "not_judged": "[not judged]"}

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

    `value` is as printed, `converted` the same in the column's unit, empty if it could not be converted or needs no
    conversion. `alternatives` are further values that the paper states for the same thing; then the status is
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
        """The plain form of the JSON of a table."""
        spans = [asdict(span) for span in self.spans]
        nowhere = {"page": None, "chunk_id": "", "start": None, "end": None}
        return {
            **{name: getattr(self, name) for name in (*_PLAIN, "quote")},
            **{name: (spans or [nowhere])[0][name] for name in nowhere},
            "spans": spans,
            "alternatives": [cell.as_dict() for cell in self.alternatives],
            "searched": list(self.searched),
        }


def cell_text(cell: Mapping[str, Any]) -> str:
    """The text of a cell: value (converted if it was), condition, how it was got, further values."""
    if cell["status"] in STATUS_LABELS and not cell["value"]:
        return STATUS_LABELS[cell["status"]]
    value = cell["converted"] or cell["value"]
    printed = f"{cell['value']} {cell['unit']}".strip()
    parts = [f"{value} [{printed}]" if cell["converted"] else printed]
    parts += [f"({cell['condition']})"] * bool(cell["condition"])
    mark = f"[= {cell['formula']}]" if cell["status"] == "computed" else _MARKS.get(cell["status"])
    parts += [mark] if mark else []
    return " / ".join([" ".join(parts), *map(cell_text, cell["alternatives"])])


def study_name(row: Mapping[str, Any]) -> str:
    """The paper's key, with the name of the study if the paper has several."""
    return f"{row['key']}: {row['study']}" if row["study"] else str(row["key"])


def accept_cells(readings: Sequence[CellReading], column: TableColumn) -> TableCell | None:
    """The cell of one column of a study; None if no reading is borne out by its words."""
    cells = [cell for reading in readings if (cell := _accept(reading, column)) is not None]
    distinct = list({(cell.value.casefold(), cell.unit.casefold(), cell.condition): cell for cell in cells}.values())
    if not distinct:
        return None
    first, *others = distinct
    return replace(first, status="conflicting", alternatives=tuple(others)) if others else first


def _accept(reading: CellReading, column: TableColumn) -> TableCell | None:
    spans = tuple(EvidenceSpan.of(*part) for span in reading.spans for part in _narrowed(*span, reading.value))
    printed = {number.value for span in spans for number in given_numbers(span.quote)}
    unit = reading.unit
    converted = convert_value(reading.value, unit, column.unit)
    cell = TableCell(reading.value, unit, reading.condition, "", converted, "reported", spans)
    if column.kind in ("choice", "yes/no") or stands_in(reading.value, printed):
        return cell
    wanted = outermost(given_numbers(reading.value))
    by_formula = len(wanted) == 1 and stands_in(reading.formula, printed | _FACTORS)
    result = evaluate_formula(reading.formula) if by_formula else None
    # It has to yield the number, rounded as it is printed.
    if result is not None and abs(result - wanted[0].value) <= wanted[0].unit / 2:
        return replace(cell, formula=reading.formula, status="computed")
    return None


def _narrowed(chunk: Chunk, start: int, end: int, value: str) -> list[tuple[Chunk, int, int]]:
    """Of a table, its caption and header, and the row that holds the numbers of the value; anything else is whole."""
    lines = list(_LINE.finditer(chunk.text, start, end))
    rule = next((place for place, line in enumerate(lines) if place and is_table_rule(line[0])), None)
    wanted = {number.value for number in outermost(given_numbers(value))}
    if rule is None or not wanted:
        return [(chunk, start, end)]
    rows = [row for row in lines[rule + 1 :] if wanted <= {number.value for number in given_numbers(row[0])}]
    if not rows:
        return [(chunk, start, end)]
    return [(chunk, start, lines[rule - 1].end()), (chunk, rows[0].start(), rows[0].end())]


def stands_in(text: str, printed: Collection[Decimal]) -> bool:
    """Whether all numbers of a text are printed; "12 of 48" and "10 000" also count by their parts."""
    numbers = given_numbers(text)
    parts = {
        whole: [item for item in numbers if item != whole and whole.start <= item.start and item.end <= whole.end]
        for whole in outermost(numbers)
    }
    return all(
        whole.value in printed or (bool(inside) and all(item.value in printed for item in inside))
        for whole, inside in parts.items()
    )


def outermost(numbers: Sequence[Number]) -> list[Number]:
    """The numbers that are no part of another one: of "10 000" not 10."""
    return [
        item
        for item in numbers
        if not any(
            other.start <= item.start and item.end <= other.end and (other.start, other.end) != (item.start, item.end)
            for other in numbers
        )
    ]


def evaluate_formula(formula: str) -> Decimal | None:
    """The result of numbers, + - * / and brackets; None for anything else."""
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
    """The value in another unit, exactly; empty if it needs or allows no conversion, or has several numbers."""
    numbers = outermost(given_numbers(value))
    if not wanted or not unit or unit.casefold() == wanted.casefold() or len(numbers) != 1:
        return ""
    import pint  # half a second, for tables with units only

    number = numbers[0]
    amount = number.value * 100 if number.scale == "percent" and "%" not in value else number.value
    try:
        quantity = _units().Quantity(amount, _units().parse_units(unit)).to(wanted)
    except (pint.PintError, ValueError, ArithmeticError, AttributeError, TypeError):
        return ""
    return f"{quantity.magnitude.normalize():f}"


@cache
def _units() -> UnitRegistry[Decimal]:
    import pint

    return pint.UnitRegistry(non_int_type=Decimal)
