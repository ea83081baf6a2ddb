"""ask_needs, ask_evidence and ask_sentences: where a run waits for a person, and the searches a person requests.

A node that asks does nothing else, since it runs again from its beginning when answered. Only raising a budget is asked
about inside other nodes, before the budget is exceeded.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, Final, Literal, cast

from langgraph.runtime import Runtime
from langgraph.types import Overwrite, interrupt

from ...citations.checks.findings import FindingRecord
from ...citations.markers import CitedSentence, marker_ids, normalise_markers, sentences
from ...drafts.person_questions import (
    AnswerError,
    PersonAnswer,
    QuestionDetail,
    QuestionField,
    SteeringChange,
    SteeringRecord,
    budget_question,
    expand_asks,
    form_field,
    make_question,
    read_answer,
    read_limit,
)
from ...drafts.sentence_edits import EditRecord, apply_edits, findings_in, without_markers_of
from ...drafts.written_draft import new_query
from ...errors import PausedError
from ...models.journal.budget import BudgetReachedError
from ...plurals import counted
from ...roles.protocols import Need, PassageFinding
from ...settings.config import Ask
from ...stores.library import Library
from ...text.words import one_line, shorten
from ...tools.found_evidence import FoundEvidence, SearchResult
from ...tools.tool_schemas import SearchEvidence
from ..role_inputs import limits_of, visible_evidence
from ..run_events import progress
from ..session import Session
from ..state import PlannedSearch, RunState, SectionState, Update, needs_of, record_searches
from .agent import search_requests

Resolved = tuple[dict[str, Any], list[SteeringChange]]  # the update of the state, and a list of the changes

_NEED_FIRST: Final = re.compile(r"(N\d{1,4}):\s*")
_SHOWN: Final = 300  # characters of a statement or of quoted words
_MOST: Final = 50  # searches or passages of one answer


def asks_of(state: Mapping[str, Any], session: Session) -> list[Ask]:
    """Return what a run asks a person: from its input, else its settings."""
    return expand_asks(state.get("interrupts") or session.settings.interrupts)


async def ask_person(
    question: dict[str, Any], resolve: Callable[[PersonAnswer], Awaitable[Resolved]]
) -> tuple[dict[str, Any], SteeringRecord]:
    """Wait for a valid answer; returns the resulting update and its record. An invalid one is asked for again."""
    detail, shown = question["citeloom"], question
    while True:
        given = interrupt(shown)
        try:
            answer = read_answer(detail, given)
            update, changes = await resolve(answer)
        except AnswerError as error:
            described = f"{error.message}\n\n{question['description']}"
            requests = [{**question["action_requests"][0], "description": described}]
            shown = {**question, "description": described, "action_requests": requests}
            continue
        by, at = answer.by, answer.at
        return update, {"ask": detail["ask"], "section": detail["section"], "by": by, "at": at, "changes": changes}


async def ask_budget(error: BudgetReachedError) -> tuple[dict[str, float], SteeringRecord]:
    """Ask a person to raise a limit; returns it with its record, and raises `PausedError` if they do not."""
    question = budget_question(error.flag, error.message, error.enough)

    async def resolve(answer: PersonAnswer) -> Resolved:
        limit = read_limit(question["citeloom"], answer)
        if answer.type == "ignore":
            raise PausedError(error.message, help=error.help)
        return dict(limit), [
            {"what": name, "before": error.message, "after": f"{new:.10g}"} for name, new in limit.items()
        ]

    return await ask_person(question, resolve)


def begin_steering(state: RunState, session: Session) -> Update:
    """Return the initial steering fields of a run: what it asks a person, without any answers."""
    return {"interrupts": asks_of(state, session), "banned": [], "wanted": [], "raised": {}, "steering": Overwrite([])}


def to_search_or_generate(state: RunState) -> Literal["search_further", "generate"]:
    """Go to `search_further` if a person wants more evidence, otherwise to `generate`."""
    return "search_further" if state.get("wanted") else "generate"


def after_sentences(state: RunState) -> Literal["search_for_sentences", "check", "render"]:
    """Go to the searches that a person wants, to `check` if sentences were edited, otherwise to `render`."""
    if state.get("wanted"):
        return "search_for_sentences"
    return "check" if state.get("repairing") else "render"


async def ask_needs(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Ask which needs to search for; without changes the plan stays as it is."""
    needs = needs_of(state)
    fields = [form_field(need.id, f"Need {need.id}; empty drops it", need.text) for need in needs]
    fields.append(form_field("add", "Further needs, one per line", several=True))
    lines = [f"- {need.id}: {need.text}" for need in needs]
    return await _ask("needs", counted(len(needs), "need"), lines, fields, state, session, "add")


async def ask_evidence(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Ask which evidence to write from; passages that a person adds must occur in papers, and become evidence."""
    evidence = visible_evidence(state)
    lines: list[str] = []
    for need in needs_of(state):
        serving = [record for record in evidence if need.id in (record["need"], *record["also"])]
        found = list(map(_evidence_line, serving)) or ["- nothing found"]
        lines += ["", f"{need.id}: {need.text}", *found]
    listed = set(lines)
    lines += [line for line in map(_evidence_line, evidence) if line not in listed]
    fields = [
        form_field("pin", "Evidence that the writer must be shown, by id, one per line", several=True),
        form_field("ban", "Evidence or papers to leave out, by id or key, one per line", several=True),
        form_field("papers", "Papers to read for it, by key, one per line", several=True),
        form_field("passages", "Passages to add, one per line, as 'key: words of the paper'", several=True),
        form_field("search", "Searches to make, one per line; 'N2: ...' searches for need N2", several=True),
    ]
    papers = counted(len({record["key"] for record in evidence}), "paper")
    summary = f"{counted(len(evidence), 'finding')} from {papers}"
    return await _ask("evidence", summary, lines, fields, state, session, "search")


async def ask_sentences(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Ask whether to keep, edit, drop or search again for each sentence that still fails a check."""
    evidence = {record["id"]: record for record in visible_evidence(state)}
    doubtful = doubtful_sentences(state)
    fields, lines = list[QuestionField](), list[str]()
    for number, (sentence, found) in enumerate(doubtful, 1):
        fields.append(form_field(f"S{number}", "The sentence; empty drops it", sentence.text))
        lines += ["", f"S{number}: {sentence.text}", *(f"- {item['message']}" for item in found)]
        lines += [_evidence_line(evidence[name]) for name in sentence.ids if name in evidence]
    fields.append(form_field("search", "Sentences to search for again, by number, one per line", several=True))
    return await _ask("sentences", counted(len(doubtful), "sentence"), lines, fields, state, session, "")


async def search_further(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Make the searches that a person requested; passages read before are read again for them."""
    within = await asyncio.to_thread(limits_of, state, session.library)
    requests = [SearchEvidence(**item) for item in state.get("wanted", ())]
    # A paper named by hand is read even outside the limits of the question.
    asked = [(item, item.scope() if item.papers else item.scope().narrow(within)) for item in requests]
    found = await search_requests(asked, state, runtime, session, known=())
    searches = [
        PlannedSearch(new_query(item.query, "person", [item.need] if item.need else [], scope.as_dict()), one)
        for (item, scope), one in zip(asked, found, strict=True)
    ]
    given = cast(Any, state).get("evidence_ids", {})
    update = record_searches(state, state["evidence"], searches, runtime.stream_writer, given)
    for search in searches:
        said = f"{counted(len(search.searched.found), 'finding')} for: {search.record['query']}"
        runtime.stream_writer(progress("searched", said, passages=len(search.searched.found)))
    return {**update, "wanted": []}


async def search_for_sentences(state: RunState, runtime: Runtime[Any], session: Session) -> Update:
    """Search again for doubtful sentences, before the draft is checked and they are repaired."""
    return await search_further(state, runtime, session)


async def check_answer(state: RunState, detail: QuestionDetail, given: object, session: Session) -> PersonAnswer:
    """Validate an answer to the question a run is waiting on, before it is resumed; raises `AnswerError`."""
    answer = read_answer(detail, given)
    if detail["ask"] == "budget":
        read_limit(detail, answer)
    else:
        await _RESOLVERS[detail["ask"]](state, session, answer)
    return answer


def doubtful_sentences(state: RunState) -> list[tuple[CitedSentence, list[FindingRecord]]]:
    """Return the sentences that fail a check, each with its findings."""
    text = state["draft"]["text"]
    placed = sentences(text)
    failing = [item for item in state.get("findings", []) if item["severity"] != "note"]
    return [pair for pair in zip(placed, findings_in(failing, placed, text), strict=True) if pair[1]]


async def _ask(
    ask: Ask,
    summary: str,
    lines: Sequence[str],
    fields: list[QuestionField],
    state: RunState,
    session: Session,
    text: str,
) -> Update:
    section = cast(SectionState, state).get("section", "")
    question = make_question(ask, summary, lines, fields, section, text)
    update, record = await ask_person(question, partial(_RESOLVERS[ask], state, session))
    return {**update, "steering": [record]}


async def _resolve_needs(state: RunState, session: Session, answer: PersonAnswer) -> Resolved:
    needs, kept, changes = needs_of(state), list[Need](), list[SteeringChange]()
    for need in needs:
        text = one_line(answer.args.get(need.id, need.text))
        if need.id in answer.args:
            changes.append({"what": f"need {need.id}", "before": need.text, "after": text})
            need = replace(need, text=text, queries=(text,))  # the planned queries were for the old text
        kept += [need] if text else []
    for text in _lines(answer.args.get("add", "")):
        changes.append({"what": "a further need", "before": "", "after": text})
        kept.append(Need("", text, (text,)))
    if not kept:
        raise AnswerError("answer: all needs were dropped.", help="Keep or add one.")
    if not changes:
        return {}, []
    first = int(needs[0].id[1:])
    return {"needs": [replace(need, id=f"N{place}").as_dict() for place, need in enumerate(kept, first)]}, changes


async def _resolve_evidence(state: RunState, session: Session, answer: PersonAnswer) -> Resolved:
    given = answer.args
    there = {record["id"]: record for record in visible_evidence(state)}
    keys = {paper.key for paper in await asyncio.to_thread(session.library.papers)}
    needs, changes = needs_of(state), list[SteeringChange]()
    pinned = _known_names("pin", given, there, "evidence")
    banned = _known_names("ban", given, {**there, **dict.fromkeys(keys)}, "evidence or paper")
    for name in pinned:
        changes.append({"what": f"pinned {name} ({there[name]['key']})", "before": "", "after": there[name]["summary"]})
    for name in banned:
        known = f"{name} ({there[name]['key']})" if name in there else name
        said = there[name]["summary"] if name in there else "the whole paper"
        changes.append({"what": f"left out {known}", "before": said, "after": ""})
    wanted: list[dict[str, Any]] = []
    for key in _known_names("papers", given, keys, "paper"):
        wanted += [{"query": need.search[:2000], "need": need.id, "papers": [key]} for need in needs]
        changes.append({"what": "read further", "before": "", "after": key})
    for line in _lines(given.get("search", "")):
        named = _NEED_FIRST.match(line)
        need = named[1] if named and named[1] in {need.id for need in needs} else ""
        query = line[named.end() :] if named and need else line
        if not 3 <= len(query) <= 2000:
            raise AnswerError(f"answer: field search: {query!r:.40} does not have 3 to 2,000 characters.")
        wanted.append({"query": query, "need": need})
        changes.append({"what": f"searched{f' for {need}' if need else ''}", "before": "", "after": query})
    searches: list[PlannedSearch] = []
    for line in _lines(given.get("passages", "")):
        search, change = await asyncio.to_thread(_own_passage, line, session.library, keys, needs)
        searches.append(search)
        changes.append(change)
    ids = cast(Any, state).get("evidence_ids", {})
    update = record_searches(state, state.get("evidence", []), searches, lambda _: None, ids) if searches else {}
    in_full = dict.fromkeys(("vector_score", "llm_score", "combined_score"), 1.0)  # as for passages added by hand
    update["evidence"] = [*({**there[name], **in_full} for name in pinned), *update.get("evidence", ())]
    if not changes:
        return {"wanted": []}, []
    return {**update, "banned": [*state.get("banned", ()), *banned], "wanted": wanted}, changes


async def _resolve_sentences(state: RunState, session: Session, answer: PersonAnswer) -> Resolved:
    text, ids = state["draft"]["text"], {record["id"] for record in visible_evidence(state)}
    doubtful = {f"S{number}": sentence for number, (sentence, _) in enumerate(doubtful_sentences(state), 1)}
    again = _known_names("search", answer.args, doubtful, "sentence")
    edits, changes, settled = list[EditRecord](), list[SteeringChange](), list[str]()
    for name, sentence in doubtful.items():
        new = normalise_markers(one_line(answer.args[name])) if name in answer.args else sentence.text
        if name in answer.args:
            if unknown := [marker for marker in marker_ids(new) if marker not in ids]:
                raise AnswerError(f"answer: field {name}: there is no evidence {unknown[0]}.", help=_list_names(ids))
            edits.append({"start": sentence.start, "end": sentence.end, "text": new})
            changes.append({"what": f"sentence {name}", "before": sentence.text, "after": new})
        settled += [new] if name in answer.args or name not in again else []
    left = [doubtful[name] for name in again if name not in answer.args]
    wanted = [{"query": without_markers_of(sentence.text, sentence.ids)[:2000]} for sentence in left]
    changes += [{"what": "searched again for", "before": "", "after": item["query"]} for item in wanted]
    if not changes:
        return {"reviewed": True, "wanted": []}, []
    return {
        "draft": {**state["draft"], "text": apply_edits(text, edits)},
        "before_repair": None,
        "repairs": session.settings.max_repairs - bool(wanted),  # one repair is left for the searched sentences
        "repairing": bool(edits),
        "reviewed": not wanted,
        "settled": settled,
        "wanted": wanted,
    }, changes


_RESOLVERS: Final[Mapping[str, Callable[[RunState, Session, PersonAnswer], Awaitable[Resolved]]]] = {
    "needs": _resolve_needs,
    "evidence": _resolve_evidence,
    "sentences": _resolve_sentences,
}


def _evidence_line(record: Mapping[str, Any]) -> str:
    place = record["key"] + (f", p. {record['page']}" if record["page"] else "")
    words = "" if record["summary"] == one_line(record["quote"]) else f" “{shorten(record['quote'], _SHOWN)}”"
    return f"- {record['id']} ({place}): {shorten(record['summary'], _SHOWN)}{words}"


def _lines(text: str) -> list[str]:
    lines = [line for line in map(one_line, text.splitlines()) if line]
    if len(lines) > _MOST:
        raise AnswerError(f"answer: {len(lines)} lines in one field; at most {_MOST} are allowed.")
    return lines


def _known_names(name: str, fields: Mapping[str, str], known: Collection[str], what: str) -> list[str]:
    """Parse the names in a field, separated by commas or lines; raises `AnswerError` for an unknown one."""
    parts = map(str.strip, re.split(r"[,\n]", fields.get(name, "")))
    given = list(dict.fromkeys(filter(None, parts)))
    for one in given:
        if one not in known:
            raise AnswerError(f"answer: field {name}: there is no {what} {one!r:.60}.", help=_list_names(known))
    return given


def _list_names(known: Iterable[str]) -> str:
    listed = sorted(known, key=lambda name: (len(name), name))
    return f"There are {', '.join(listed[:12])}{' ...' if len(listed) > 12 else ''}." if listed else "There are none."


def _own_passage(
    line: str, library: Library, keys: Collection[str], needs: Sequence[Need]
) -> tuple[PlannedSearch, SteeringChange]:
    """Turn a line 'key: words of the paper' into a result for the nearest need; raises `AnswerError`."""
    key, _, words = (part.strip() for part in line.partition(":"))
    if key not in keys:
        raise AnswerError(
            f"answer: field passages: there is no paper {key!r:.60}.",
            help="Give each line as 'key: words of the paper'.",
        )
    pattern = re.compile(r"\s+".join(map(re.escape, words.split())))
    for chunk in library.paper_chunks(key) if words else ():
        if found := pattern.search(chunk.text):
            said = set(found[0].casefold().split())
            need = max(needs, key=lambda need: len(said.intersection(need.text.casefold().split())))
            span = (chunk, *found.span())
            finding = PassageFinding(library.paper(key), one_line(found[0]), 1.0, need.id, (span,), 1.0)
            result = SearchResult((FoundEvidence(finding, 1.0, need.search),), (chunk.id,), 1, 1)
            search = PlannedSearch(new_query(need.search, "person", [need.id], {}), result)
            return search, {"what": f"added from {key}", "before": "", "after": found[0]}
    raise AnswerError(
        f"answer: field passages: {key} does not contain {shorten(words, 60)!r}.", help="Copy words from its passages."
    )
