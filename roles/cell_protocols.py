"""What is read for an evidence table: its columns, and what papers state for them in their own words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final, Literal, get_args

from ..documents import Chunk

ColumnKind = Literal["text", "number", "yes/no", "choice", "p-value", "interval"]
COLUMN_KINDS: Final[tuple[ColumnKind, ...]] = get_args(ColumnKind)


@dataclass(frozen=True, slots=True)
class TableColumn:
    """A column of an evidence table: what it holds for each study.

    `asks` says it in a sentence, `unit` is the unit that all its numbers are converted to (empty: as printed),
    `options` are the allowed values of a choice, `queries` are searches worded as a paper would word its contents.
    """

    name: str
    asks: str = ""
    kind: ColumnKind = "text"
    unit: str = ""
    options: tuple[str, ...] = ()
    queries: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The plain form, as stored and as in the JSON of a table."""
        return {**asdict(self), "options": list(self.options), "queries": list(self.queries)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> TableColumn:
        return cls(**{**record, "options": tuple(record["options"]), "queries": tuple(record["queries"])})


@dataclass(frozen=True, slots=True)
class CellReading:
    """What a paper states for one column of one study: the value as printed, and the words it rests on.

    `unit` and `condition` are empty where there are none; `formula` is set if the value is computed from printed
    numbers. `spans` are runs of words, `chunk.text[start:end]` each, never empty.
    """

    column: str
    value: str
    unit: str
    condition: str
    formula: str
    spans: tuple[tuple[Chunk, int, int], ...]


@dataclass(frozen=True, slots=True)
class StudyReading:
    """The cells of one study of a paper, unnamed if it is the only one; two readings of a column conflict."""

    study: str
    cells: tuple[CellReading, ...]


@dataclass(frozen=True, slots=True)
class RowReading:
    """What the passages of one paper say: whether it belongs in the table, why, and its studies."""

    belongs: bool
    reason: str
    studies: tuple[StudyReading, ...] = ()
