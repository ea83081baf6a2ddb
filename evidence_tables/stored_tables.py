"""A stored evidence table: its id, the columns of its next reading, and its JSON."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ..citations.html_escaping import inert
from ..documents import Paper
from ..plurals import counted
from ..roles.cell_protocols import TableColumn
from ..stores.evidence_table_register import EvidenceTableRegister, StoredCell, StoredTable
from ..stores.library import Library
from ..tools.scope import Scope, plain_question
from .cells import TableCell
from .column_specs import describe_column, split_columns
from .column_values import column_sums
from .extraction import OWN_STUDY, Decision, paper_version

if TYPE_CHECKING:
    from ..roles.chat.chat_cell_reader import ChatCellReader

_NOT_JUDGED: Final = "Without a chat model each cell holds the sentence nearest to its column; nothing is judged."
_COLUMNS_WITHOUT_MODEL: Final = ("design", "n", "outcome", "effect")


def id_of_table(question: str, papers: Sequence[str], kind: str = "table") -> str:
    """The id of the table that answers a question from these papers, or from all if there are none."""
    named = json.dumps([plain_question(question), sorted(papers)]).encode()
    return f"{kind}-{hashlib.sha256(named).hexdigest()[:12]}"


async def describe_columns(
    library: Library,
    stored: StoredTable | None,
    reader: ChatCellReader | None,
    question: str,
    wanted: Sequence[TableColumn] = (),
) -> tuple[TableColumn, ...]:
    """The wanted columns with what they ask for; those of the stored table if none is wanted."""
    kept = [TableColumn.from_dict(item) for item in stored.plan["columns"]] if stored else []
    known = {column.name.casefold(): column for column in kept}
    if not wanted and known:
        return tuple(kept)
    new = [column.name for column in wanted if column.name.casefold() not in known]
    if not wanted or new:
        if reader is None:
            names = new or split_columns(question)[1] or _COLUMNS_WITHOUT_MODEL
            planned = tuple(describe_column(TableColumn(name)) for name in names)
        else:
            titles = [paper.title for paper in (await asyncio.to_thread(library.papers))[:40]]
            planned = await reader.propose_columns(question, new, titles)
        known |= {column.name.casefold(): column for column in planned}
        if not wanted:
            return planned
    return tuple(_merge(column, known[column.name.casefold()]) for column in wanted)


def _merge(wanted: TableColumn, planned: TableColumn) -> TableColumn:
    """The planned column with what the user fixed: kind, unit and options win."""
    return replace(
        planned,
        name=wanted.name,
        kind=planned.kind if wanted.kind == "text" else wanted.kind,
        unit=wanted.unit or planned.unit,
        options=wanted.options or planned.options,
    )


def load_table(library: Library, register: EvidenceTableRegister, table_id: str) -> dict[str, Any]:
    """The JSON of a stored table; blocks. Raises `UnknownTableError`."""
    table = register.get(table_id)
    columns = [TableColumn.from_dict(item) for item in table.plan["columns"]]
    present = {paper.key: paper for paper in library.papers()}
    known = {**present, OWN_STUDY: Paper(OWN_STUDY, "The user's own study")}
    by_row: dict[tuple[str, str], dict[str, StoredCell]] = defaultdict(dict)
    for cell in register.cells(table.table_id):
        by_row[cell.key, cell.study][cell.column_name] = cell
    rows: list[dict[str, Any]] = []
    left_out, removed, counts = [], list[str](), Counter[str]()
    for key, stored in register.papers(table.table_id).items():
        if key not in known:
            removed.append(key)
            continue
        decision, paper = Decision(**stored.decision), known[key]
        counts[decision.status] += key != OWN_STUDY and decision.status != "named"
        named = {"key": key, "title": inert(paper.title), "year": paper.year}
        if decision.status == "near":
            left_out.append({**named, "reason": inert(decision.reason)})
        if decision.status == "included":
            changed = not stored.version.startswith(paper_version(paper))
            rows += [
                {
                    **named,
                    "study": inert(study),
                    "reason": inert(decision.reason),
                    "changed": changed,
                    "cells": {column.name: cell_record(by_row[key, study].get(column.name)) for column in columns},
                }
                for study in decision.studies
            ]
    scope = Scope(tuple(table.plan["papers"]))
    shown = [item.as_dict() for item in columns]
    statuses = {cell["status"] for row in rows for cell in row["cells"].values()}
    return {
        "table_id": table.table_id,
        "question": inert(table.question),
        "papers": sum(scope.holds(paper) for paper in present.values()),
        "columns": shown,
        "sums": column_sums({"columns": shown, "rows": rows}),
        "screened": sum(counts.values()),
        "included": counts["included"],
        "rows": rows,
        "left_out": left_out,
        "removed": removed,
        "notice": _NOT_JUDGED if "not_judged" in statuses else "",
    }


def cell_record(stored: StoredCell | None) -> dict[str, Any]:
    """The JSON of a stored cell, or of one that was not read yet."""
    cell = TableCell(status="unread").as_dict() if stored is None else stored.cell
    return {**cell, "edited": bool(stored and stored.edited), "revision": stored.revision if stored else 0}


def find_table(register: EvidenceTableRegister, name: str) -> StoredTable:
    """The table with this title (the question), id or beginning of an id; blocks. Raises `UnknownTableError`."""
    titled = [table for table in register.all() if table.question.casefold() == " ".join(name.split()).casefold()]
    return titled[0] if titled else register.get(name)


def count_line(table: Mapping[str, Any]) -> str:
    """How many papers were screened, included and left out, and how many were not screened or are gone."""
    screened, included, near = table["screened"], table["included"], len(table["left_out"])
    line = f"{counted(screened, 'paper')} screened, {included} included, {screened - included} excluded"
    line += f" ({near} of them near the question)." if near else "."
    if unscreened := table["papers"] - screened:
        line += f" {counted(unscreened, 'paper')} not screened: others are nearer to the question, or they are new."
    if table["removed"]:
        line += f" No longer in the library: {', '.join(table['removed'])}."
    return line
