"""default_queries and gather: what every run of a section searches for first."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from citeloom.experiment import (
    SECTION_KINDS,
    ExperimentError,
    SectionKind,
    parse_experiment,
    require_fields,
)
from citeloom.graph.events import evidence_found, progress
from citeloom.graph.numbering import number_evidence
from citeloom.graph.queries import default_queries as queries_for
from citeloom.graph.state import QueryRecord, SectionState, Update
from citeloom.graph.workbench import Workbench
from citeloom.models.concurrency import all_settled
from citeloom.tools import Scope, search_evidence


async def default_queries(state: SectionState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """Check the input and begin anew: a thread that is given another section forgets the one before.

    Raises `ExperimentError` for a field of the wrong type or one that the section cannot do without, and
    `EmptyLibraryError` when there is nothing to search.
    """
    kind = _kind_of(state)
    experiment = parse_experiment(state.get("experiment"))
    require_fields(experiment, kind)
    await bench.require_papers()
    queries = await asyncio.to_thread(queries_for, kind, experiment, bench.library.embedding.count_tokens)
    runtime.stream_writer(progress("queries", f"{len(queries)} default queries for the {kind}", total=len(queries)))
    records: list[QueryRecord] = [
        {"query": query, "origin": "default", "scope": {}, "evidence_ids": []} for query in queries
    ]
    return {
        "messages": Overwrite([]),
        "queries": Overwrite(records),
        "evidence": Overwrite([]),
        "searches_used": Overwrite(0),
        "agent_turns": Overwrite(0),
        "warnings": Overwrite([]),
        "pending_calls": [],
        "searching": False,
        "before_repair": None,
        "repairs": 0,
        "repairing": False,
        "findings": [],
        "verdicts": [],
        "text": "",
        "result": {},
    }


async def gather(state: SectionState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """Search for all default queries together."""
    roles = await bench.roles(runtime)
    records = state["queries"]
    done = 0

    async def search(query: str) -> list:  # type: ignore[type-arg]
        nonlocal done
        found = await search_evidence(bench.library, roles.reader, query, Scope(), bench.limits)
        done += 1
        runtime.stream_writer(
            progress(
                "searched",
                f"{len(found)} passages for: {query}",
                done=done,
                total=len(records),
                passages=len(found),
            )
        )
        return found

    searches = await all_settled(search(record["query"]) for record in records)
    new, ids = number_evidence([], searches)
    for event in evidence_found(new):
        runtime.stream_writer(event)
    answered: list[QueryRecord] = [
        {**record, "evidence_ids": of_query} for record, of_query in zip(records, ids, strict=True)
    ]
    searching = bench.settings.max_search_iterations > 0
    return {"evidence": new, "queries": Overwrite(answered), "searching": searching}


def _kind_of(state: SectionState) -> SectionKind:
    """The asked section: the server and parent graphs pass on whatever they were given."""
    kind = state.get("section")
    if kind not in SECTION_KINDS:
        raise ExperimentError(
            f"input: field section: expected one of {', '.join(SECTION_KINDS)}, got {kind!r}.",
            help="The input is {section, experiment}, the latter with the contents of exp.json.",
        )
    return kind


def to_agent_or_generate(state: SectionState) -> Literal["agent", "generate"]:
    """To the planner while it may search, else on to write."""
    return "agent" if state.get("searching") else "generate"
