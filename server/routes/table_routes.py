"""Endpoints and pages to make, list, edit, download and delete evidence tables; no edit of a cell is lost."""

from __future__ import annotations

import asyncio
import re
from dataclasses import asdict
from typing import Annotated, Final, cast
from urllib.parse import urlencode

from fastapi import APIRouter, Query, Request, Response

from ...api import evidence_tables
from ...api.results import CellRecord
from .. import response_models
from ..job import active_record
from ..job_requests import JobCall, event_stream
from ..problems import ProblemResponse, ServerError, to_problem
from ..request_models import AgreementBody, CellBody, TableBody
from ..response_models import event_answers, file_answers, job_answers, problems
from ..run_jobs import load_ended_table
from ..server_state import StateOf
from .html import page, part

router = APIRouter(prefix="/tables", tags=["tables"])
Key = Annotated[str, Query(min_length=1, max_length=500, description="Citation key of the paper.")]
Column = Annotated[str, Query(min_length=1, max_length=200, description="Name of the column.")]
Study = Annotated[str, Query(max_length=500, description="Name of the study, if the paper reports several.")]


@router.post("", responses=job_answers(404), response_class=Response)
async def make_table(body: TableBody, call: JobCall) -> Response:
    """Make or complete the table that answers a question, or join the job that already does.

    Every paper in scope is screened; only rows of new or changed papers and cells of new columns are read.
    """
    return await call.answer(asdict(body), lambda: call.state.runs.make_table(body), "tables")


@router.post("/agree", responses=job_answers(404), response_class=Response)
async def agree(body: AgreementBody, call: JobCall) -> Response:
    """Find out which papers are for a claim, which against it, under which condition, and which are silent.

    The result is stored as a table, which the same request continues; only new and changed papers are read.
    """
    return await call.answer(asdict(body), lambda: call.state.runs.make_table(body), "tables")


@router.get("", responses=problems())
async def list_tables(state: StateOf) -> response_models.ListedTables:
    """The tables, the latest first."""
    jobs = await state.jobs.known()
    stored = await evidence_tables.alist_tables(state.session)
    listed = [{**asdict(item), "active": active_record(jobs, item.table_id)} for item in stored]
    return {"tables": cast("list[response_models.ListedTable]", listed)}  # which has the fields of a stored table


@router.get("/{table_id}/events", tags=["events"], responses=event_answers(), response_class=Response)
async def table_events(table_id: str, request: Request, state: StateOf) -> Response:
    """Stream the events of the job that makes the table, after `Last-Event-ID`; if there is no job, the table."""
    job = await state.jobs.find(table_id) or await load_ended_table(table_id, state.session)
    return event_stream(job, request, state.streams)


@router.post("/{table_id}/cancel", responses=problems(404))
async def cancel_table(table_id: str, state: StateOf) -> response_models.Stopped:
    """Stop the job that makes the table, on whichever server; what was read is kept."""
    return {"id": table_id, "stopped": await state.jobs.stop(table_id)}


@router.get("/{table_id}/cells", responses=problems(404))
async def show_cell(table_id: str, state: StateOf, key: Key, column: Column, study: Study = "") -> CellRecord:
    """One cell of a table."""
    table = await evidence_tables.aload_table(state.session, table_id)
    found = [row["cells"] for row in table["rows"] if row["key"] == key and row["study"] == study]
    if not found or column not in found[0]:
        raise ServerError(404, f"{table['table_id']} has no cell for {key!r:.80}, {study!r:.80}, {column!r:.80}.")
    cell: CellRecord = found[0][column]
    return cell


@router.put("/{table_id}/cells", responses=problems(404, 409), response_model=CellRecord)
async def edit_cell(table_id: str, body: CellBody, state: StateOf) -> Response | CellRecord:
    """Replace the value of a cell by the user's own, which later readings keep.

    If somebody changed the cell since the given revision, it stays, and the problem holds it as `cell`.
    """
    edit = asdict(body)
    try:
        return cast("CellRecord", await evidence_tables.aedit_cell(state.session, table_id, **edit))
    except evidence_tables.CellChangedError as error:
        stored = await show_cell(table_id, state, body.key, body.column, body.study)
        return ProblemResponse({**to_problem(error), "cell": dict(stored)})


@router.get("/{table_id}/files/{format}", responses=file_answers(404, 502), response_class=Response)
async def get_table_file(table_id: str, format: evidence_tables.TableFormat, state: StateOf) -> Response:
    """A table as a file: Markdown, CSV, Excel (with a sheet of the words), LaTeX, Word, HTML with the words, or SVG."""
    async with state.renderers:  # pandoc needs a process
        name, content = await evidence_tables.arender_table(state.session, table_id, format)
    return Response(content, media_type=response_models.MEDIA_TYPES[format], headers=response_models.attached(name))


@router.delete("/{table_id}", status_code=204, responses=problems(404, 409))
async def remove_table(table_id: str, state: StateOf) -> None:
    """Delete a table with its edits, if it is not being made; cached model answers stay."""
    await state.jobs.require_idle(table_id)
    await evidence_tables.adelete_table(state.session, table_id)
    state.jobs.forget(table_id)


pages = APIRouter(include_in_schema=False)
_CITATION: Final = re.compile(r"\[[^\[\]]{1,200}\]")


@pages.get("/tables")
async def tables(request: Request, state: StateOf, claim: Annotated[str, Query(max_length=4_000)] = "") -> Response:
    session = state.session
    context = {
        **await list_tables(state),
        "papers": len(await asyncio.to_thread(session.library.records)),
        "judged": "reader" not in session.extractive,
        "claim": bare_claim(claim),
    }
    return page(request, "tables.html", context)


@pages.get("/tables/{table_id}")
async def table(table_id: str, request: Request, state: StateOf) -> Response:
    job = await state.jobs.active_entry(table_id)
    try:
        record = await evidence_tables.aload_table(state.session, table_id)
    except evidence_tables.UnknownTableError:
        if job is None:
            raise
        order = job.order.request  # whose columns are still being chosen
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
            "counts": [evidence_tables.count_line(record), *evidence_tables.column_summary_lines(record)],
            "drawn": evidence_tables.draw_table(record) is not None,
            "formats": evidence_tables.TABLE_FORMATS,
            "text": evidence_tables.format_cell,
            "study_name": evidence_tables.study_name,
            "place": lambda row, column: urlencode({"key": row["key"], "study": row["study"], "column": column}),
        }
    return page(request, "table.html", {**context, "table_id": table_id, "active": job is not None})


@pages.get("/tables/{table_id}/cells")
async def cell(
    table_id: str, request: Request, state: StateOf, key: Key, column: Column, study: Study = ""
) -> Response:
    """What a cell rests on, and a form to edit it, for the side panel."""
    found = await show_cell(table_id, state, key, column, study)
    records = await asyncio.to_thread(state.session.library.records)
    paper = records[key].paper if key in records else None  # None for the user's own study
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
    """Return a sentence without its citations; from a sentence that lists a passage, only the quoted words."""
    text = " ".join(_CITATION.sub("", sentence).split()).replace(" .", ".")
    quoted = text.rpartition(", in “")[0].rpartition("”")[0]
    return quoted[1:] if quoted.startswith("“") else text
