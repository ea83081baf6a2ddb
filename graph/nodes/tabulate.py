"""tabulate: answers a question for all papers of some kind with an evidence table; `fill_table` fills any table."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal, cast

from langgraph.runtime import Runtime

from ...documents import chunk_id
from ...documents.chunking import Window
from ...drafts.written_draft import ScreeningRecord
from ...evidence_tables.cells import claim_needs
from ...evidence_tables.extraction import TableFiller
from ...evidence_tables.stored_tables import count_line, describe_columns, give_table, id_of_table, load_table
from ...plurals import counted
from ...roles.protocols import Need, TableColumn
from ...roles.run_roles import Roles
from ...stores.evidence_table_register import StoredTable
from ...tools.scope import Scope
from ..prompt_fitting import run_fitted
from ..role_inputs import limits_of
from ..run_events import progress
from ..session import Session
from ..state import ResearchState, Update, before_writing, evidence_key, record_searches, table_searches
from .route_question import before_reading

Describe = Callable[[StoredTable | None, Roles], Awaitable[tuple[TableColumn, ...]]]


async def fill_table(
    session: Session,
    run_id: str,
    table: StoredTable,
    scope: Scope,
    describe: Describe,
    on_progress: Callable[[str], None],
    claims: Callable[[Sequence[TableColumn]], Sequence[str]] = lambda _: (),
    own: Window | None = None,
) -> dict[str, Any]:
    """Make or complete a table in a run; returns its JSON. `describe` returns its columns, given any stored table.

    `claims` maps the columns to claims that papers are screened for; if there are any, the judge reads the cells. `own`
    is the user's study.
    """
    register = await asyncio.to_thread(lambda: session.home.evidence_tables())
    stored = {item.table_id: item for item in await asyncio.to_thread(register.all)}.get(table.table_id)

    async def columns() -> tuple[TableColumn, ...]:
        return await describe(stored, await session.roles_of(run_id))

    described = await run_fitted(session, run_id, columns)
    plan = {"columns": [item.as_dict() for item in described], "papers": list(table.plan["papers"])}
    await asyncio.to_thread(register.save, table.table_id, table.question, plan)
    needs = claim_needs(claims(described))
    asked = f"What do papers find on this: {table.question}" if needs else table.question

    async def fill() -> None:  # repeated with new roles once the context size is known
        roles, most = await session.roles_of(run_id), session.settings.screened_papers
        cells, place = roles.stances if needs else roles.cells, (session.library, register, table.table_id)
        readers = (roles.answer_reader, cells, roles.screener)
        await TableFiller(*place, asked, described, *readers, most, on_progress, needs, own).fill(scope)

    if described:
        await run_fitted(session, run_id, fill)
    return await asyncio.to_thread(load_table, session.library, register, table.table_id)


async def tabulate(state: ResearchState, runtime: Runtime[Any], session: Session) -> Update:
    """Fill or continue the question's table, whose columns become its needs.

    Returns no update without a chat model, screening, or a paper that belongs in the table.
    """
    roles, library, question = await session.roles(runtime), session.library, state["question"]
    within = Scope(tuple(state["route"]["papers"])).narrow(await asyncio.to_thread(limits_of, state, library))
    papers = await asyncio.to_thread(library.papers)
    keys = [paper.key for paper in papers if within.holds(paper)]
    if roles.cells is None or roles.screener is None or not session.settings.screened_papers or len(keys) < 2:
        return {}
    named = keys if len(keys) < len(papers) else []
    kept = StoredTable(id_of_table(question, named), question, {"papers": named})

    async def describe(stored: StoredTable | None, roles: Roles) -> tuple[TableColumn, ...]:
        return await describe_columns(library, stored, roles.cells, question)

    def show(text: str) -> None:
        runtime.stream_writer(progress("shortlisted", text))

    table = await fill_table(session, session.run_id(runtime), kept, within, describe, show)
    if not table["rows"]:
        return {}
    asked = [(column["asks"] or column["name"], tuple(column["queries"])) for column in table["columns"]]
    needs = [Need(f"N{number}", asks, queries or (asks,)) for number, (asks, queries) in enumerate(asked, 1)]
    filled: Update = {
        "tables": [await asyncio.to_thread(give_table, table, library, shown=True)],
        "needs": [need.as_dict() for need in needs],
    }
    included, near = [list(dict.fromkeys(row["key"] for row in table[part])) for part in ("rows", "left_out")]
    searches = await asyncio.to_thread(table_searches, cast(ResearchState, {**state, **filled}), library)
    ids = {**state.get("evidence_ids", {}), **{evidence_key(item): item["id"] for item in state["evidence"]}}
    update = record_searches(state, [], searches, runtime.stream_writer, ids)
    runtime.stream_writer(progress("searched", f"{counted(len(update['evidence']), 'finding')} in the table"))
    screened: ScreeningRecord = {
        "cards": table["screened"],
        "opened": included,
        "near": {item["key"]: item["reason"] for item in table["left_out"]},
        "table_id": kept.table_id,
        "counts": count_line(table),
    }
    openings = [chunk_id(key, 0) for key in (*included, *near)]
    return {
        **update,
        **filled,
        "read_chunks": list(dict.fromkeys([*update["read_chunks"], *openings])),
        "shortlist": included,
        "route": {**state["route"], "screened": screened},
        "searching": False,
    }


def to_generate_or_read(state: ResearchState) -> Literal["ask_evidence", "generate", "ask_needs", "read"]:
    """Go to the writer (perhaps asking a person first) if the table has rows, otherwise search as for any survey."""
    return before_writing(state) if state.get("tables") else before_reading(state)
