"""tabulate: answers a question for the papers of a kind by an evidence table, whose cells are the evidence."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, cast

from langgraph.runtime import Runtime

from ...documents import chunk_id
from ...drafts.written_draft import ScreeningRecord
from ...evidence_tables.extraction import TableFiller
from ...evidence_tables.given_tables import give_table
from ...evidence_tables.stored_tables import count_line, describe_columns, id_of_table, load_table
from ...plurals import counted
from ...roles.protocols import Need
from ...stores.backends import backend_of
from ...tools.scope import Scope
from ..role_inputs import limits_of
from ..run_events import progress
from ..session import Session
from ..state import ResearchState, Update, evidence_key, recorded, table_searches


async def tabulate(state: ResearchState, runtime: Runtime[Any], session: Session) -> Update:
    """Fill or continue the table of the question, whose columns become its needs.

    Nothing is known afterwards if there is no chat model, no screening, or no paper that belongs in the table.
    """
    roles, library, question = await session.roles(runtime), session.library, state["question"]
    within = Scope(tuple(state["route"]["papers"])).narrowed(await asyncio.to_thread(limits_of, state, library))
    papers = await asyncio.to_thread(library.papers)
    keys = [paper.key for paper in papers if within.holds(paper)]
    most = session.settings.screened_papers
    if roles.cells is None or roles.screener is None or not most or len(keys) < 2:
        return {}
    named = keys if len(keys) < len(papers) else []
    register = await asyncio.to_thread(lambda: backend_of(session.home).evidence_tables())
    table_id = id_of_table(question, named)
    stored = [item for item in await asyncio.to_thread(register.all) if item.table_id == table_id]
    columns = await describe_columns(library, stored[0] if stored else None, roles.cells, question)
    plan = {"columns": [column.as_dict() for column in columns], "papers": named}
    await asyncio.to_thread(register.save, table_id, question, plan)

    def show(text: str) -> None:
        runtime.stream_writer(progress("shortlisted", text))

    reader, screener = roles.answer_reader, roles.screener
    filler = TableFiller(
        library, register, table_id, question, columns, reader, roles.cells, screener, most, on_progress=show
    )
    await filler.fill(within)
    table = await asyncio.to_thread(load_table, library, register, table_id)
    if not table["rows"]:
        return {}
    asked = [(column, column.asks or column.name) for column in columns]
    needs = [Need(f"N{n}", asks, column.queries or (asks,)) for n, (column, asks) in enumerate(asked, 1)]
    filled: Update = {
        "tables": [await asyncio.to_thread(give_table, table, library, shown=True)],
        "needs": [need.as_dict() for need in needs],
    }
    included, near = [list(dict.fromkeys(row["key"] for row in table[part])) for part in ("rows", "left_out")]
    searches = await asyncio.to_thread(table_searches, cast(ResearchState, {**state, **filled}), library)
    ids = {**state.get("evidence_ids", {}), **{evidence_key(item): item["id"] for item in state["evidence"]}}
    update = recorded(state, [], searches, runtime.stream_writer, ids)
    runtime.stream_writer(progress("searched", f"{counted(len(update['evidence']), 'finding')} in the table"))
    screened: ScreeningRecord = {
        "cards": table["screened"],
        "opened": included,
        "near": {item["key"]: item["reason"] for item in table["left_out"]},
        "table_id": table_id,
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


def to_generate_or_read(state: ResearchState) -> Literal["generate", "read"]:
    """Go to the writer if the table has rows, otherwise search as for any survey."""
    return "generate" if state.get("tables") else "read"
