"""Tables: made from a question, and shown with the words behind each cell."""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Annotated, Any, Final
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from ...api import evidence_tables
from ..routes.table_routes import Column, Key, Study, list_tables, show_cell
from ..server_state import StateOf
from .html import page, part

router = APIRouter(include_in_schema=False)
_CITATION: Final = re.compile(r"\[[^\[\]]{1,200}\]")


@router.get("/tables")
async def tables(request: Request, state: StateOf, claim: Annotated[str, Query(max_length=4_000)] = "") -> Response:
    session = state.session
    context = {
        **await list_tables(state),
        "papers": len(await asyncio.to_thread(session.library.records)),
        "judged": "reader" not in session.extractive,
        "claim": bare_claim(claim),
    }
    return page(request, "tables.html", context)


@router.get("/tables/{table_id}")
async def table(table_id: str, request: Request, state: StateOf) -> Response:
    job = await state.jobs.active_entry(table_id)
    try:
        record = await evidence_tables.aload_table(state.session, table_id)
    except evidence_tables.UnknownTableError:
        if job is None:
            raise
        order = job.order.request  # its columns are still being chosen
        context = {"table": None, "question": order["question"], "papers": order["papers"], "columns": order["columns"]}
    else:
        table_id = record["table_id"]
        tables = await evidence_tables.alist_tables(state.session)
        stored = next(item for item in tables if item.table_id == table_id)
        context = {
            "table": record,
            "question": stored.question,
            "papers": stored.plan["papers"],
            "columns": [column["name"] for column in record["columns"]],
            "counts": [evidence_tables.count_line(record), *evidence_tables.sum_lines(record)],
            "drawn": evidence_tables.draw_table(record) is not None,
            "formats": evidence_tables.TABLE_FORMATS,
            "text": evidence_tables.cell_text,
            "study_name": evidence_tables.study_name,
            "address": partial(_cell_address, table_id),
        }
    return page(request, "table.html", {**context, "table_id": table_id, "active": job is not None})


@router.get("/tables/{table_id}/cells")
async def cell(
    table_id: str, request: Request, state: StateOf, key: Key, column: Column, study: Study = ""
) -> Response:
    """What a cell rests on, and a form to edit it, for the side panel."""
    found = await show_cell(table_id, state, key, column, study)
    records = await asyncio.to_thread(state.session.library.records)
    paper = records[key].paper if key in records else None  # the user's own study
    context = {
        "cell": found,
        "table_id": table_id,
        "key": key,
        "column": column,
        "study": study,
        "paper": paper,
        "pdf": paper is not None and paper.source.lower().endswith(".pdf"),
    }
    return part(request, "table_cell.html", context)


def bare_claim(sentence: str) -> str:
    """The claim of a sentence: without citations, and of a listed passage only its quoted words."""
    text = " ".join(_CITATION.sub("", sentence).split()).replace(" .", ".")
    quoted = text.rpartition(", in “")[0].rpartition("”")[0]
    return quoted[1:] if quoted.startswith("“") else text


def _cell_address(table_id: str, row: dict[str, Any], column: str) -> str:
    place = urlencode({"key": row["key"], "study": row["study"], "column": column})
    return f"/tables/{table_id}/cells?{place}"
