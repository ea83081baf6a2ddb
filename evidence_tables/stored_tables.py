"""A stored evidence table: its id, columns, JSON, and its form in a text.

The cells of a table that a text is based on are findings that the text can cite.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import TypedDict

from ..citations.checks.number_parsing import given_numbers
from ..citations.html_escaping import inert
from ..documents import Chunk, Paper
from ..documents.marker_escaping import escape_markers
from ..documents.paper_names import in_text_name
from ..documents.plain_text import plain_text
from ..plurals import counted
from ..roles.protocols import PassageFinding, TableColumn
from ..stores.evidence_table_register import EvidenceTableRegister, StoredCell, StoredTable
from ..stores.library import Library
from ..text.words import one_line
from ..tools.found_evidence import FindingWords, FoundEvidence, find_same
from ..tools.scope import Scope, plain_question
from .cells import TableCell, are_numbers_printed, column_summaries, describe_column, format_cell, split_columns
from .extraction import OWN_STUDY, Decision, paper_version

if TYPE_CHECKING:
    from ..roles.chat.chat_cell_reader import ChatCellReader

_NOT_JUDGED: Final = "Without a chat model each cell holds the sentence nearest to its column; nothing is judged."
_COLUMNS_WITHOUT_MODEL: Final = ("design", "n", "outcome", "effect")


def id_of_table(question: str, papers: Sequence[str], kind: str = "table") -> str:
    """Return the id of the table for a question over these papers (all if empty)."""
    named = json.dumps([plain_question(question), sorted(papers)]).encode()
    return f"{kind}-{hashlib.sha256(named).hexdigest()[:12]}"


async def describe_columns(
    library: Library,
    stored: StoredTable | None,
    reader: ChatCellReader | None,
    question: str,
    wanted: Sequence[TableColumn] = (),
) -> tuple[TableColumn, ...]:
    """Return the wanted columns with descriptions; without any, the stored table's columns, else proposed ones."""
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
    """Override the planned column by the kind, unit and options that the user gave."""
    return replace(
        planned,
        name=wanted.name,
        kind=planned.kind if wanted.kind == "text" else wanted.kind,
        unit=wanted.unit or planned.unit,
        options=wanted.options or planned.options,
    )


def load_table(library: Library, register: EvidenceTableRegister, table_id: str) -> dict[str, Any]:
    """Return the JSON of a stored table; blocks. Raises `UnknownTableError`."""
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
        "sums": column_summaries({"columns": shown, "rows": rows}),
        "screened": sum(counts.values()),
        "included": counts["included"],
        "rows": rows,
        "left_out": left_out,
        "removed": removed,
        "notice": _NOT_JUDGED if "not_judged" in statuses else "",
    }


def cell_record(stored: StoredCell | None) -> dict[str, Any]:
    """Return the JSON of a stored cell, or of an unread one."""
    cell = TableCell(status="unread").as_dict() if stored is None else stored.cell
    return {**cell, "edited": bool(stored and stored.edited), "revision": stored.revision if stored else 0}


def find_table(register: EvidenceTableRegister, name: str) -> StoredTable:
    """Find the table with this title (its question), id or id prefix; blocks. Raises `UnknownTableError`."""
    titled = [table for table in register.all() if table.question.casefold() == " ".join(name.split()).casefold()]
    return titled[0] if titled else register.get(name)


def count_line(table: Mapping[str, Any]) -> str:
    """Format how many papers were screened, included and excluded, and which were not screened or are gone."""
    screened, included, near = table["screened"], table["included"], len(table["left_out"])
    line = f"{counted(screened, 'paper')} screened, {included} included, {screened - included} excluded"
    line += f" ({near} of them near the question)." if near else "."
    if unscreened := table["papers"] - screened:
        line += f" {counted(unscreened, 'paper')} not screened, being new or farther from the question."
    if table["removed"]:
        line += f" No longer in the library: {', '.join(table['removed'])}."
    return line


_READ: Final = 0.9  # score of a cell that a model read
_NEAR: Final = 0.5  # score of a sentence found without a model
_NOTHING: Final = ("not_reported", "unread")


class GivenTable(TypedDict):
    """A table that a text is based on; `shown` is true if the text includes it.

    Each row has the paper's key, the study's `name` in running text, and its `cells` in column order: each with its
    `text`, `score`, `spans`, and the value as printed (`said`), empty if the paper's words say nothing.
    """

    table_id: str
    question: str
    columns: list[str]
    rows: list[dict[str, Any]]
    shown: bool


def give_table(table: Mapping[str, Any], library: Library, *, shown: bool) -> GivenTable:
    """Convert a table's JSON to the form that a text is based on; blocks."""
    papers = {paper.key: paper for paper in library.papers()}
    return {
        "table_id": table["table_id"],
        "question": table["question"],
        "columns": [column["name"] for column in table["columns"]],
        "rows": [
            {
                "key": row["key"],
                "name": _name_in_text(row, papers.get(row["key"])),
                "cells": [
                    _give(row["cells"][column["name"]], own=row["key"] == OWN_STUDY) for column in table["columns"]
                ],
            }
            for row in table["rows"]
        ],
        "shown": shown,
    }


def _name_in_text(row: Mapping[str, Any], paper: Paper | None) -> str:
    if paper is None:
        return "This study"
    study = f", {row['study']}" if row["study"] else ""
    return f"{in_text_name(paper)} ({paper.year or 'n.d.'}){study}"


def _give(cell: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
    every = [cell, *cell["alternatives"]]
    spans = [] if own or cell["status"] in _NOTHING else [span for item in every for span in item["spans"]]
    as_printed = {"converted": "", "status": "reported"}
    said = format_cell(
        {**cell, **as_printed, "alternatives": [{**item, **as_printed} for item in cell["alternatives"]]}
    )
    if cell["status"] == "edited":  # a person's value must be supported by the words
        printed = {number.value for span in spans for number in given_numbers(span["quote"])}
        said = said if are_numbers_printed(cell["value"], printed) else ""
    score = _NEAR if cell["status"] == "not_judged" else _READ
    return {"text": format_cell(cell), "said": said if spans else "", "score": score, "spans": spans}


def cell_findings(table: GivenTable, needs: Sequence[str], library: Library) -> list[FoundEvidence]:
    """Make a finding for each cell whose words still exist; cells of one study on the same words share one. Blocks."""
    names = [span["chunk_id"] for row in table["rows"] for cell in row["cells"] for span in cell["spans"]]
    chunks = {chunk.id: chunk for chunk in library.chunks(names)}
    papers = {paper.key: paper for paper in library.papers()}
    found: list[FoundEvidence] = []
    for row in table["rows"]:
        cells: dict[tuple[tuple[Chunk, int, int], ...], list[tuple[str, str, dict[str, Any]]]] = {}
        for column, need, cell in zip(table["columns"], needs, row["cells"], strict=True):
            spans = tuple(_locate(span, row["key"], chunks, library) for span in cell["spans"])
            held = tuple(span for span in spans if span is not None)
            if cell["said"] and held and len(held) == len(spans) and row["key"] in papers:
                cells.setdefault(held, []).append((column, need, cell))
        for held, of_words in cells.items():
            statement = "; ".join(f"{column}: {cell['said']}" for column, _, cell in of_words)
            first, *also = dict.fromkeys(need for _, need, _ in of_words)
            score = max(cell["score"] for _, _, cell in of_words)
            finding = PassageFinding(papers[row["key"]], statement, score, first, held, 0.0)
            found.append(FoundEvidence(finding, score, table["question"], tuple(also)))
    return found


def _locate(
    span: Mapping[str, Any], key: str, chunks: Mapping[str, Chunk], library: Library
) -> tuple[Chunk, int, int] | None:
    """Find a cell's words in the current paper; None if they are gone."""
    chunk, quote = chunks.get(span["chunk_id"]), span["quote"]
    if chunk is not None and chunk.text[span["start"] : span["end"]] == quote:
        return chunk, span["start"], span["end"]
    if key not in library.records():
        return None
    places = ((item, item.text.find(quote)) for item in library.paper_chunks(key))
    return next(((item, start, start + len(quote)) for item, start in places if start >= 0), None)


def table_lines(table: GivenTable, evidence: Sequence[Mapping[str, Any]]) -> str:
    """Format the table in Markdown; each study has the markers of its cells found in the `evidence` records."""
    words = [FindingWords.of_record(record) for record in evidence]

    def markers(row: Mapping[str, Any]) -> str:
        spans = [cell["spans"] for cell in row["cells"] if cell["spans"]]
        quotes = [tuple((span["chunk_id"], one_line(span["quote"])) for span in of_cell) for of_cell in spans]
        places = dict.fromkeys(find_same(FindingWords(row["key"], own), words) for own in quotes)
        return "".join(f"[{evidence[place]['id']}]" for place in places if place is not None)

    rows = [
        [f"{_table_text(row['name'])} {markers(row)}".strip(), *(_table_text(cell["text"]) for cell in row["cells"])]
        for row in table["rows"]
    ]
    head = ["Study", *map(_table_text, table["columns"])]
    lines = [f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines) + f"\n\nTable: {_table_text(table['question'])}"


def _table_text(text: str) -> str:
    return escape_markers(one_line(plain_text(text)).replace("|", "\\|"))
