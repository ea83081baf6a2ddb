"""Inputs and outputs of the role that fills the cells of an evidence table from the papers' own words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, get_args

from ..documents import Chunk

if TYPE_CHECKING:
    from ..documents.chunking import Window
    from .protocols import PaperCard

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


class CellReader(Protocol):
    """Proposes the columns of a table, and reads its rows from papers."""

    async def propose_columns(
        self, question: str, names: Sequence[str], titles: Sequence[str]
    ) -> tuple[TableColumn, ...]:
        """Describe the named columns, or if none is named, propose those that answer the question.

        `titles` are papers that the table is about. A column without a valid answer is described by its name alone.
        """

    async def propose_claims(self, topic: str, cards: Sequence[PaperCard], most: int) -> tuple[str, ...]:
        """At most `most` claims on which the papers with these cards may disagree."""

    async def read_row(
        self, question: str, columns: Sequence[TableColumn], windows: Sequence[Window], studies: Sequence[str] = ()
    ) -> RowReading | None:
        """Read one paper's windows, using only the `studies` given; None without a valid answer in two attempts."""
