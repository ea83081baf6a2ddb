"""default_queries and gather: what every run of a section searches for first."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, Final, Literal

from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from citeloom.documents.wording import plain_wording
from citeloom.experiment import (
    SECTION_KINDS,
    ExperimentError,
    SectionKind,
    parse_experiment,
    require_fields,
)
from citeloom.graph.briefs import own_queries
from citeloom.graph.events import evidence_found, progress
from citeloom.graph.numbering import number_evidence
from citeloom.graph.queries import default_queries as queries_for
from citeloom.graph.state import QueryRecord, SectionState, Update
from citeloom.graph.workbench import Workbench
from citeloom.models.concurrency import all_settled
from citeloom.tools import Found, Scope, search_evidence
from citeloom.tools.evidence import best_fitting

# Pieces of earlier sections' evidence that a section of a paper is shown beside what it finds itself.
OFFERED: Final = 12


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
    begun = f"{kind} ({len(state['written']) + 1} of {len(SECTION_KINDS)})" if "written" in state else None
    said = f"{len(queries)} default queries for the {kind}"
    runtime.stream_writer(progress("queries", said, total=len(queries), section=begun))
    records: list[QueryRecord] = [
        {"section": kind, "query": query, "origin": "default", "scope": {}, "evidence_ids": []} for query in queries
    ]
    in_paper = "written" in state
    return {
        "messages": Overwrite([]),
        "queries": Overwrite([*state["queries"], *records] if in_paper else records),
        **({"offered": []} if in_paper else {"evidence": Overwrite([])}),
        "searches_used": Overwrite(0),
        "agent_turns": Overwrite(0),
        "warnings": Overwrite([]),
        "pending_calls": [],
        "searching": False,
        "before_repair": None,
        "repairs": 0,
        "repairing": False,
        "findings": [],
        "verdicts": Overwrite([]),
        "text": "",
        "result": {},
    }


async def gather(state: SectionState, runtime: Runtime[Any], bench: Workbench) -> Update:
    """Search for all default queries together; what an earlier section of the paper asked is answered from there."""
    roles = await bench.roles(runtime)
    records = own_queries(state)
    before = [record for record in state["queries"] if record not in records]
    done = 0

    async def search(query: str) -> list[Found]:
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

    known = {plain_wording(record["query"]): record["evidence_ids"] for record in before if not record["scope"]}
    asked = [record for record in records if plain_wording(record["query"]) not in known]
    searches = await all_settled(search(record["query"]) for record in asked)
    new, ids = number_evidence(state.get("evidence", []), searches)
    for event in evidence_found(new):
        runtime.stream_writer(event)
    known |= {plain_wording(record["query"]): of_query for record, of_query in zip(asked, ids, strict=True)}
    answered: list[QueryRecord] = [
        {**record, "evidence_ids": known[plain_wording(record["query"])]} for record in records
    ]
    update: Update = {
        "evidence": new,
        "queries": Overwrite([*before, *answered]),
        "searching": bench.settings.max_search_iterations > 0,
    }
    if "written" in state:
        update["offered"] = await _offered(state, answered, bench)
    return update


async def _offered(state: SectionState, answered: Sequence[QueryRecord], bench: Workbench) -> list[str]:
    """The evidence of earlier sections that fits this section's queries best, beside what they found themselves."""
    found = {identifier for record in answered for identifier in record["evidence_ids"]}
    ids = {record["chunk_id"]: record["id"] for record in state.get("evidence", []) if record["id"] not in found}
    best = await best_fitting(bench.library, [record["query"] for record in answered], list(ids), OFFERED)
    return [ids[chunk_id] for chunk_id in best]


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
