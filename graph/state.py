"""The state of a run between steps, in plain values, and its conversion to needs, searches and evidence.

Texts stay in the library: checkpoints contain the whole state, so texts would be written again at every step.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.messages import AnyMessage
from langgraph.graph.message import add_messages
from langgraph.types import Overwrite
from pydantic import Field
from typing_extensions import TypedDict

from ..citations.checks.findings import FindingRecord
from ..drafts.person_questions import SteeringRecord
from ..drafts.sentence_edits import Attempt
from ..drafts.written_draft import QueryRecord, RouteRecord, new_query
from ..evidence_tables.stored_tables import GivenTable, cell_findings
from ..experiment import SectionKind, parse_experiment
from ..roles.extractive.statement_needs import section_needs, strip_own_results
from ..roles.protocols import Need, NeedCoverage, Purpose, Turn
from ..section_kinds import SECTIONS
from ..settings.config import Ask
from ..stores.library import Library
from ..tools.found_evidence import FindingWords, FoundEvidence, SearchResult, coverage, find_same

# What a run asks a person; the settings' value if omitted.
Interrupts = Annotated[
    list[Ask], Field(description="What to ask a person: needs, evidence, sentences, budget, or all.")
]


def merge_evidence(known: list[dict[str, Any]], new: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Append evidence with new ids; a record with a known id replaces the old one."""
    again = {record["id"]: record for record in new}
    kept = [again.pop(record["id"], record) for record in known]
    return kept + list(again.values())


class SectionInput(TypedDict):
    """The input of the section graph: the kind of section, and the experiment as plain JSON data."""

    section: Annotated[SectionKind, Field(description="The section to write.")]
    experiment: Annotated[dict[str, Any], Field(description="The contents of exp.json.")]
    tables: NotRequired[Annotated[list[GivenTable], Field(description="Evidence tables that it may cite.")]]
    interrupts: NotRequired[Interrupts]


class PaperInput(TypedDict):
    """The input of the paper graph: the experiment as plain JSON data."""

    experiment: Annotated[dict[str, Any], Field(description="The contents of exp.json.")]
    tables: NotRequired[Annotated[list[GivenTable], Field(description="Evidence tables that sections may cite.")]]
    interrupts: NotRequired[Interrupts]


class PaperOutput(TypedDict):
    """The output of the paper graph; `result` is the paper's JSON without files and usage."""

    text: str
    result: dict[str, Any]


class SectionOutput(PaperOutput):
    """The output of the section graph; `result` is the section's JSON without files and usage."""

    section: SectionKind


class RunState(TypedDict, total=False):
    """The common state of runs: of a section, a paper or a question.

    `interrupts` to `raised` are for people: what they are asked and said, the ids and keys that they banned, the
    searches that they want, whether they have seen the doubtful sentences, sentences that no model may repair any more,
    and raised limits.
    """

    messages: Annotated[list[AnyMessage], add_messages]
    needs: list[dict[str, Any]]
    read_chunks: Annotated[list[str], operator.add]  # ids of chunks read for the needs
    queries: Annotated[list[QueryRecord], operator.add]
    evidence: Annotated[list[dict[str, Any]], merge_evidence]
    searches_used: Annotated[int, operator.add]
    agent_turns: Annotated[int, operator.add]
    pending_calls: list[dict[str, Any]]
    searching: bool
    draft: dict[str, Any]
    findings: list[FindingRecord]
    before_repair: Attempt | None
    repairs: int
    repairing: bool
    verdicts: Annotated[list[dict[str, Any]], operator.add]
    warnings: Annotated[list[str], operator.add]
    tables: list[GivenTable]
    interrupts: Interrupts
    steering: Annotated[list[SteeringRecord], operator.add]
    banned: list[str]
    wanted: list[dict[str, Any]]
    reviewed: bool
    settled: list[str]
    raised: dict[str, float]
    text: str
    result: dict[str, Any]


class SectionState(RunState, total=False):
    """The state of a run that writes one section, or the sections of a paper one after the other.

    A paper's queries and evidence add up over all sections; its other fields are reset for each.
    """

    section: SectionKind
    experiment: dict[str, Any]
    offered: list[str]  # only in a paper: the evidence of earlier sections that the current one is shown
    # Only in a paper, for each finished section: the fields of its record, the chunks `read` without evidence, and what
    # the paper had `spent` by its end.
    written: list[dict[str, Any]]


class ResearchInput(TypedDict):
    """The input of the research graph: the question, limits if any, and for a conversation what came before."""

    question: Annotated[str, Field(description="The question to answer from your papers.")]
    sources: NotRequired[Annotated[int, Field(description="Maximum number of papers that the answer may cite.")]]
    words: NotRequired[Annotated[int, Field(description="Requested length of the answer in words.")]]
    min_year: NotRequired[Annotated[int | None, Field(description="First year of publication.")]]
    max_year: NotRequired[Annotated[int | None, Field(description="Last year of publication.")]]
    venue: NotRequired[Annotated[str, Field(description="Part of the venue's name.")]]
    papers: NotRequired[Annotated[list[str], Field(description="Keys of papers to search within.")]]
    single_shot: NotRequired[Annotated[bool, Field(description="Search once, without the agent.")]]
    turns: NotRequired[Annotated[list[Turn], Field(description="Earlier turns of the conversation.")]]
    follow_up: NotRequired[Annotated[bool, Field(description="It may refer to earlier turns; if so, it is rewritten.")]]
    recalled: NotRequired[Annotated[list[dict[str, Any]], Field(description="The evidence that earlier turns cited.")]]
    evidence_ids: NotRequired[Annotated[dict[str, str], Field(description="Ids of chunks that served as evidence.")]]
    numbering: NotRequired[Annotated[list[str], Field(description="The cited keys; the first has number 1.")]]
    feedback: NotRequired[Annotated[str, Field(description="Feedback, if the last answer is to be revised.")]]
    interrupts: NotRequired[Interrupts]


class ResearchOutput(PaperOutput):
    """The output of the research graph; `result` is the answer's JSON without files and usage."""

    question: str
    route: RouteRecord
    answered: bool | None
    queries: list[QueryRecord]


class ResearchState(RunState, ResearchInput, total=False):
    """The state of a question's run; `found` are the ids of the chunks that the first search proposed."""

    route: RouteRecord
    shortlist: list[str]
    found: list[str]
    answered: bool | None


# What a node returns: fields of the state, wrapped in `Overwrite` where a reducer would otherwise append.
Update = dict[str, Any]


def number_evidence(
    known: Sequence[dict[str, Any]], searches: Sequence[Sequence[FoundEvidence]], given: Mapping[str, str] | None = None
) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """Number evidence; returns new records, and for each search the ids of its evidence, best first.

    A finding on the same words keeps its id, statement and first query; known evidence found for another need, or with
    a better score, is returned again to replace its record. `given` are the ids that a conversation has assigned so
    far, by `evidence_key`, which are never reassigned.
    """
    ids_of_marks = {**(given or {}), **{evidence_key(record): record["id"] for record in known}}
    records = {record["id"]: record for record in known}
    words = {identifier: FindingWords.of_record(record) for identifier, record in records.items()}
    last = max((int(identifier[1:]) for identifier in ids_of_marks.values()), default=0)
    new: dict[str, dict[str, Any]] = {}
    ids: list[list[str]] = []
    for search in searches:
        of_search: list[str] = []
        for found in search:
            record = found.as_evidence("E0").as_dict()
            mark, own = evidence_key(record), FindingWords.of_record(record)
            identifier = ids_of_marks.get(mark)
            if identifier is None and (place := find_same(own, list(words.values()))) is not None:
                identifier = list(words)[place]
            if identifier is None:
                last += 1
                identifier = f"E{last}"
            ids_of_marks[mark] = identifier
            there, joined = records.get(identifier), {**record, "id": identifier}
            if there is not None:  # merge the records: the needs of both, and the better scores
                more = dict.fromkeys([*there["also"], record["need"], *record["also"]])
                also = [need for need in more if need and need != there["need"]]
                scores = {name: max(there[name], record[name]) for name in ("llm_score", "combined_score")}
                joined = {**there, **scores, **({"also": also} if also else {})}
            if joined != there:
                new[identifier] = records[identifier] = joined
                words.setdefault(identifier, own)
            if identifier not in of_search:
                of_search.append(identifier)
        ids.append(of_search)
    return list(new.values()), ids


def evidence_key(record: Mapping[str, Any]) -> str:
    """Return a key for evidence by chunk, content hash and spans.

    Chunk ids shift in an edited paper, and a chunk may hold several findings.
    """
    first = record["chunk_id"]
    spans = [{"chunk_id": first, "start": record["start"], "end": record["end"]}, *record["more"]]
    chunks = ("" if span["chunk_id"] == first else f"{span['chunk_id']} " for span in spans)
    places = ",".join(f"{name}{span['start']}-{span['end']}" for name, span in zip(chunks, spans, strict=True))
    return f"{record['chunk_id']} {record['chunk_hash'][:16]} {places}"


def needs_of(state: RunState) -> tuple[Need, ...]:
    """Return the planned needs; before planning, the question or the section's default queries."""
    if records := state.get("needs"):
        return tuple(Need.from_dict(record) for record in records)
    if "question" in state:
        question = cast(ResearchState, state)["question"]
        return (Need("N1", question, (question,)),)
    queries = [record["query"] for record in own_queries(state) if record["origin"] == "default"]
    return section_needs(queries)


def purpose_of(state: RunState) -> Purpose:
    """Return the purpose of reading: the question with feedback, or the section's subject without own results."""
    needs = needs_of(state)
    if "question" in state:
        given = cast(ResearchState, state)
        return Purpose(f"{given['question']} {given.get('feedback', '')}".strip(), needs)
    section = cast(SectionState, state)
    experiment = parse_experiment(section["experiment"])
    concept = experiment.paper_concept
    about = filter(None, map(strip_own_results, (concept.title, concept.description)))
    supposed = strip_own_results(experiment.hypothesis.description)
    claim = [f"The claim that it examines: {supposed}"] if supposed else []
    return Purpose(" ".join([f"The {section['section']} of a paper.", *about, *claim]), needs)


def own_queries(state: RunState) -> list[QueryRecord]:
    """Return the searches of the current question or section."""
    section = cast(SectionState, state).get("section")
    return [record for record in state.get("queries", []) if record.get("section") == section]


def given_tables(state: RunState) -> list[GivenTable]:
    """Return the evidence tables of the question or section; only sections that weigh studies have any."""
    section = cast(SectionState, state).get("section")
    return state.get("tables", []) if section is None or SECTIONS[section].weighs_studies else []


def table_needs(state: RunState) -> list[Need]:
    """Return a need for each table given to a section; for a question, the table's columns are already needs."""
    tables = [] if "question" in state else given_tables(state)
    return [
        Need(f"T{number}", f"what the table “{table['question']}” says of each study", (table["question"],))
        for number, table in enumerate(tables, 1)
    ]


def allowed_evidence(state: RunState) -> list[dict[str, Any]]:
    """Return the evidence that no person left out, by its id or its paper."""
    banned = state.get("banned", ())
    return [record for record in state.get("evidence", []) if not {record["id"], record["key"]}.intersection(banned)]


def before_writing(state: RunState) -> Literal["ask_evidence", "generate"]:
    """Go to `ask_evidence` if a person is asked about the evidence, otherwise to `generate`."""
    return "ask_evidence" if "evidence" in state.get("interrupts", ()) else "generate"


def own_coverage(state: RunState) -> list[NeedCoverage]:
    """Return the coverage of each need of the current question or section."""
    queries = own_queries(state)
    ids = {identifier for record in queries for identifier in record["evidence_ids"]}
    evidence = [record for record in allowed_evidence(state) if record["id"] in ids]
    return coverage([*needs_of(state), *table_needs(state)], evidence, queries)


def needs_in_vain(state: RunState) -> list[str] | None:
    """Return the needs for which searches found nothing; None if no needs were planned."""
    return [item.need.text for item in own_coverage(state) if item.status == "in vain"] if state.get("needs") else None


@dataclass(frozen=True, slots=True)
class PlannedSearch:
    """A completed search: its record, still without evidence, and its results."""

    record: QueryRecord
    searched: SearchResult


def first_searches(needs: Sequence[Need], searched: SearchResult, scope: dict[str, Any]) -> list[PlannedSearch]:
    """Split the first search into one record per need, with the findings that serve it."""
    known = {need.id for need in needs}
    searches: list[PlannedSearch] = []
    for place, need in enumerate(needs):
        mine = tuple(
            item for item in searched.found if need.id in item.needs or (not place and known.isdisjoint(item.needs))
        )
        # Passages are counted once, in the first record.
        own = SearchResult(mine, ()) if place else replace(searched, found=mine)
        searches.append(PlannedSearch(new_query(need.search, "need", [need.id], scope), own))
    return searches


def table_searches(state: RunState, library: Library) -> list[PlannedSearch]:
    """Convert the cells of the tables to search results for each need that they serve; blocks."""
    tables, searches = given_tables(state), list[PlannedSearch]()
    of_table = [[need] * len(table["columns"]) for need, table in zip(table_needs(state), tables, strict=False)]
    for table, of_columns in zip(tables, of_table or [list(needs_of(state))], strict=False):
        found = cell_findings(table, [need.id for need in of_columns], library)
        for need in dict.fromkeys(of_columns):
            mine = tuple(item for item in found if item.finding.need == need.id)
            read = tuple(dict.fromkeys(chunk.id for item in mine for chunk, _, _ in item.finding.spans))
            query = new_query(need.search, "table", [need.id], {})
            searches.append(PlannedSearch(query, SearchResult(mine, read, len(read), len(read))))
    return searches


def record_searches(
    state: RunState,
    known: Sequence[dict[str, Any]],
    searches: Sequence[PlannedSearch],
    emit: Callable[[Any], None],
    given: Mapping[str, str] | None = None,
) -> Update:
    """Number new evidence, record the searches, and emit an event for each new piece."""
    new, ids = number_evidence(known, [search.searched.found for search in searches], given)
    there = {record["id"] for record in known}
    for record in new:
        if record["id"] not in there:
            own = {name: record[name] for name in ("id", "key", "page", "section")}
            emit({"source": "citeloom", "kind": "evidence", **own, "query": record["source_query"]})
    section = cast(SectionState, state).get("section")
    made_by: dict[str, Any] = {"section": section} if section else {}
    records = [
        {**made_by, **search.record, "evidence_ids": of, **passages_of(search.searched)}
        for search, of in zip(searches, ids, strict=True)
    ]
    read = list(dict.fromkeys(name for search in searches for name in search.searched.read))
    return {"evidence": new, "queries": records, "read_chunks": read}


def passages_of(searched: SearchResult) -> dict[str, int]:
    """Return the passage counts for a search's record: proposed, shown to the reader, unreadable."""
    return {"proposed": searched.proposed, "shown": searched.shown, "unreadable": searched.unreadable}


def initial_state() -> dict[str, Any]:
    """Return the initial fields of a run's state before its first search."""
    return {
        **{"messages": Overwrite([]), "read_chunks": Overwrite([]), "warnings": Overwrite([])},
        **{"verdicts": Overwrite([]), "searches_used": Overwrite(0), "agent_turns": Overwrite(0)},
        **{"needs": [], "pending_calls": [], "findings": [], "settled": []},
        **{"searching": False, "repairing": False, "reviewed": False},
        **{"before_repair": None, "repairs": 0, "text": "", "result": {}},
    }
