"""Evidence tables in a text: their cells as findings that it can cite, and the table as it stands in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from typing_extensions import TypedDict  # as in `graph/state.py`, which holds these

from ..citations.checks.number_parsing import given_numbers
from ..documents import Chunk, Paper
from ..documents.marker_escaping import as_text
from ..documents.paper_names import in_text_name
from ..documents.plain_text import plain_text
from ..roles.protocols import PassageFinding
from ..stores.library import Library
from ..tools.found_evidence import FindingWords, FoundEvidence, find_same
from .cells import cell_text, stands_in
from .extraction import OWN_STUDY

_READ: Final = 0.9  # score of a cell that a model read: it meets what its column asks
_NEAR: Final = 0.5  # of a sentence that was found without one
_NOTHING: Final = ("not_reported", "unread")


class GivenTable(TypedDict):
    """A table that a text rests on; `shown` if it stands in the text.

    Each row has the key of its paper, the study's `name` in a text, and its `cells` in the order of the columns: each
    with its `text`, its `score`, its `spans`, and what is `said` there as printed, empty where the words say nothing.
    """

    table_id: str
    question: str
    columns: list[str]
    rows: list[dict[str, Any]]
    shown: bool


def give_table(table: Mapping[str, Any], library: Library, *, shown: bool) -> GivenTable:
    """What a text needs of the JSON of a table; blocks."""
    papers = {paper.key: paper for paper in library.papers()}
    return {
        "table_id": table["table_id"],
        "question": table["question"],
        "columns": [column["name"] for column in table["columns"]],
        "rows": [
            {
                "key": row["key"],
                "name": _study_name(row, papers.get(row["key"])),
                "cells": [
                    _give(row["cells"][column["name"]], own=row["key"] == OWN_STUDY) for column in table["columns"]
                ],
            }
            for row in table["rows"]
        ],
        "shown": shown,
    }


def _study_name(row: Mapping[str, Any], paper: Paper | None) -> str:
    if paper is None:
        return "This study"
    study = f", {row['study']}" if row["study"] else ""
    return f"{in_text_name(paper)} ({paper.year or 'n.d.'}){study}"


def _give(cell: Mapping[str, Any], *, own: bool) -> dict[str, Any]:
    every = [cell, *cell["alternatives"]]
    spans = [] if own or cell["status"] in _NOTHING else [span for item in every for span in item["spans"]]
    as_printed = {"converted": "", "status": "reported"}
    said = cell_text({**cell, **as_printed, "alternatives": [{**item, **as_printed} for item in cell["alternatives"]]})
    if cell["status"] == "edited":  # a person's value needs words that bear it out
        printed = {number.value for span in spans for number in given_numbers(span["quote"])}
        said = said if stands_in(cell["value"], printed) else ""
    score = _NEAR if cell["status"] == "not_judged" else _READ
    return {"text": cell_text(cell), "said": said if spans else "", "score": score, "spans": spans}


def cell_findings(table: GivenTable, needs: Sequence[str], library: Library) -> list[FoundEvidence]:
    """A finding for each cell whose words still exist, those of a study on the same words joined; blocks."""
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
    """The words of a cell in the paper as it is now; None if they are gone."""
    chunk, quote = chunks.get(span["chunk_id"]), span["quote"]
    if chunk is not None and chunk.text[span["start"] : span["end"]] == quote:
        return chunk, span["start"], span["end"]
    if key not in library.records():
        return None
    places = ((item, item.text.find(quote)) for item in library.paper_chunks(key))
    return next(((item, start, start + len(quote)) for item, start in places if start >= 0), None)


def table_lines(table: GivenTable, evidence: Sequence[Mapping[str, Any]]) -> str:
    """The table in Markdown; each study has the markers of its cells, of those among the `evidence` records."""
    words = [FindingWords.of_record(record) for record in evidence]

    def line(cells: Sequence[str]) -> str:
        return f"| {' | '.join(cells)} |"

    def markers(row: Mapping[str, Any]) -> str:
        runs = [
            FindingWords(
                row["key"], tuple((span["chunk_id"], " ".join(span["quote"].split())) for span in cell["spans"])
            )
            for cell in row["cells"]
            if cell["spans"]
        ]
        places = dict.fromkeys(place for own in runs if (place := find_same(own, words)) is not None)
        return "".join(f"[{evidence[place]['id']}]" for place in places)

    rows = [
        [f"{_shown(row['name'])} {markers(row)}".strip(), *(_shown(cell["text"]) for cell in row["cells"])]
        for row in table["rows"]
    ]
    head = ["Study", *map(_shown, table["columns"])]
    lines = [line(head), line(["---"] * len(head)), *map(line, rows)]
    return "\n".join(lines) + f"\n\nTable: {_shown(table['question'])}"


def _shown(text: str) -> str:
    return as_text(" ".join(plain_text(text).split()).replace("|", "\\|"))
