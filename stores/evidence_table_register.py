"""The register of evidence tables: their questions, columns, papers and cells.

Each cell is a row with a revision: edits of different cells never conflict, and an edit of a cell that somebody else
has changed meanwhile is refused. A reading never overwrites what a person wrote.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Final

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..documents import EvidenceSpan
from ..errors import InputError
from ..table_columns import FLAG, MOMENT, NAME, TEXT, TypedTable, dump_json, integer, json_column
from .run_register import forget_comparison
from .tables import Register, TableConnection, columns_of


class TableColumnRecord(TypedDict):
    """A column of an evidence table: a question about each study."""

    name: str
    asks: str
    kind: str
    unit: str
    options: list[str]
    queries: list[str]


class _Plan(TypedDict):
    columns: list[TableColumnRecord]
    papers: list[str]


class _Decision(TypedDict):
    status: str
    reason: str
    studies: list[str]


class _CellRecord(TypedDict):
    value: str
    unit: str
    condition: str
    formula: str
    converted: str
    status: str
    spans: list[EvidenceSpan]
    alternatives: list[_CellRecord]
    searched: list[str]


_PLACE: Final = "table_id = ? AND key = ? AND study = ? AND column_name = ?"


class UnknownTableError(InputError):
    """No evidence table has the requested id."""

    default_help = "See '{citeloom} tables list' for the ids."


class CellChangedError(InputError):
    """Somebody changed the cell since it was shown."""

    default_help = "Load the table again, which shows the current value, and repeat the edit."


@dataclass(frozen=True, slots=True)
class StoredTable:
    """A table as listed; `plan` holds its columns and scope."""

    table_id: Annotated[str, NAME]
    question: Annotated[str, NAME]
    plan: Annotated[dict[str, Any], json_column("columns and papers", _Plan, as_record=False)]
    begun_at: Annotated[float, MOMENT] = 0.0
    updated_at: Annotated[float, MOMENT] = 0.0


@dataclass(frozen=True, slots=True)
class StoredPaper:
    """Whether a paper belongs in a table; `version` identifies the text that was read."""

    key: Annotated[str, NAME]
    version: Annotated[str, TEXT]
    decision: Annotated[dict[str, Any], json_column("a decision on a paper", _Decision, as_record=False)]


@dataclass(frozen=True, slots=True)
class StoredCell:
    """A cell; `column_version` identifies the version of the column description for which it was read."""

    key: Annotated[str, NAME]
    study: Annotated[str, TEXT]
    column_name: Annotated[str, NAME]
    column_version: Annotated[str, TEXT]
    cell: Annotated[dict[str, Any], json_column("a cell", _CellRecord, as_record=False)]
    edited: Annotated[bool, FLAG] = False
    revision: Annotated[int, integer()] = 0


_OF_TABLE: Final = {"table_id": NAME}
EVIDENCE_TABLES: Final = TypedTable("evidence_tables", ("table_id",), columns_of(StoredTable))
TABLE_PAPERS: Final = TypedTable("evidence_table_papers", ("table_id", "key"), _OF_TABLE | columns_of(StoredPaper))
TABLE_CELLS: Final = TypedTable(
    "evidence_table_cells", ("table_id", "key", "study", "column_name"), _OF_TABLE | columns_of(StoredCell)
)


class EvidenceTableRegister(Register):
    """The evidence tables of a home; blocking and thread-safe."""

    def save(self, table_id: str, question: str, plan: Mapping[str, Any]) -> None:
        """Store a table, or its new plan."""
        now = time.time()
        with self._tables.transaction() as connection:
            row = (question, dump_json(dict(plan)), now)
            connection.execute(EVIDENCE_TABLES.insert("ignore"), (table_id, *row, now))
            change = "UPDATE evidence_tables SET question = ?, plan = ?, updated_at = ? WHERE table_id = ?"
            connection.execute(change, (*row, table_id))

    def all(self) -> list[StoredTable]:
        """All tables, the latest first."""
        return self._select(StoredTable, EVIDENCE_TABLES, "ORDER BY updated_at DESC")

    def get(self, table_id: str) -> StoredTable:
        """The table with this id or unique id prefix; raises `UnknownTableError`."""
        return self._find(StoredTable, EVIDENCE_TABLES, table_id, "table", UnknownTableError)

    def delete(self, table_id: str) -> None:
        with self._tables.transaction() as connection:
            for table in (TABLE_CELLS, TABLE_PAPERS, EVIDENCE_TABLES):
                connection.execute(f"DELETE FROM {table.name} WHERE table_id = ?", (table_id,))
            forget_comparison(connection, table_id)

    def papers(self, table_id: str) -> dict[str, StoredPaper]:
        """The papers with a decision, by key."""
        papers = self._select(StoredPaper, TABLE_PAPERS, "WHERE table_id = ? ORDER BY key", table_id)
        return {paper.key: paper for paper in papers}

    def cells(self, table_id: str) -> list[StoredCell]:
        """All cells, by paper, study and column."""
        return self._select(StoredCell, TABLE_CELLS, "WHERE table_id = ? ORDER BY key, study, column_name", table_id)

    def save_decisions(self, table_id: str, papers: Sequence[StoredPaper]) -> None:
        """Store the decisions on papers before they are read, in one transaction."""
        with self._tables.transaction() as connection:
            for paper in papers:
                _write_paper(connection, table_id, paper)

    def save_row(self, table_id: str, paper: StoredPaper, cells: Sequence[StoredCell]) -> None:
        """Store the reading of a paper in one transaction; cells that a person edited stay as they are."""
        with self._tables.transaction() as connection:
            _write_paper(connection, table_id, paper)
            for cell in cells:
                stored = self._load_cell(connection, table_id, cell)
                if stored is None or not stored.edited:
                    _write(connection, table_id, replace(cell, revision=0 if stored is None else stored.revision + 1))

    def edit_cell(self, table_id: str, cell: StoredCell) -> StoredCell:
        """Store a person's value in place of the revision that was shown; raises `CellChangedError`."""
        with self._tables.transaction() as connection:
            stored = self._load_cell(connection, table_id, cell)
            if (0 if stored is None else stored.revision) != cell.revision:
                raise CellChangedError(f"{cell.key}, {cell.column_name}: somebody else changed this cell.")
            changed = replace(cell, edited=True, revision=cell.revision + 1)
            _write(connection, table_id, changed)
            connection.execute("UPDATE evidence_tables SET updated_at = ? WHERE table_id = ?", (time.time(), table_id))
        return changed

    def _load_cell(self, connection: TableConnection, table_id: str, cell: StoredCell) -> StoredCell | None:
        """The stored cell at this place, its row locked against other edits."""
        place = (table_id, cell.key, cell.study, cell.column_name)
        # Writing first locks the row on PostgreSQL and the file on SQLite.
        connection.execute(f"UPDATE evidence_table_cells SET revision = revision WHERE {_PLACE}", place)
        rows = connection.execute(f"SELECT * FROM evidence_table_cells WHERE {_PLACE}", place)
        found = TABLE_CELLS.records(rows)
        return StoredCell(**{name: found[0][name] for name in found[0] if name != "table_id"}) if found else None


def _write(connection: TableConnection, table_id: str, cell: StoredCell) -> None:
    place = (table_id, cell.key, cell.study, cell.column_name)
    values = (cell.column_version, dump_json(cell.cell), int(cell.edited), cell.revision)
    connection.execute(TABLE_CELLS.insert("update"), (*place, *values))


def _write_paper(connection: TableConnection, table_id: str, paper: StoredPaper) -> None:
    row = (table_id, paper.key, paper.version, dump_json(paper.decision))
    connection.execute(TABLE_PAPERS.insert("update"), row)
