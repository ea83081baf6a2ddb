"""`update`: finds finished texts and tables that a changed library affects, and proposes changes to accept."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from typing import Any, Final, Literal, cast

import numpy as np
from typing_extensions import TypedDict

from ..citations.markers import (
    MARKER,
    is_quotation,
    is_verbatim,
    marker_groups,
    marker_ids,
    normalise_markers,
    quoted_spans,
    sentences,
)
from ..claims.claim_passages import SAME_WORDS, ClaimPassage, SentenceIndex, choose_sentences, claim_query
from ..claims.claim_records import PassageRecord
from ..claims.claim_verdicts import JudgedClaim, Progress
from ..claims.detail_checks import polarity_differs
from ..claims.text_check import ClaimChecker
from ..documents.marker_escaping import unescape
from ..drafts.written_draft import sources_for, verdict_record
from ..evidence_tables.stored_tables import load_table
from ..graph.prompt_fitting import run_fitted
from ..graph.session import Session
from ..models.concurrency import gather_all
from ..models.http.endpoints import hash_key
from ..plurals import counted
from ..roles.extractive.passage_details import set_page
from ..roles.protocols import Source, Verdict
from ..runs.edited_text import EditableSection, cited_sections, section_verdicts
from ..runs.execution import run_request
from ..runs.run_requests import request_to_resume
from ..runs.sentence_check import passage_evidence, unchecked_record
from ..stores.evidence_table_register import StoredTable
from ..stores.home import Home
from ..stores.library import Library
from ..stores.run_register import EditedSentence, RunHead
from ..stores.tables import own_id
from ..text.sentences import replace_spans
from ..text.words import close_gaps
from ..tools.retrieval import RERANKER, retrieve
from ..tools.scope import Scope
from .arguments import ArgumentError, one_or_more, require_positive, require_writable
from .blocking import blocking
from .checking import claim_checker
from .evidence_tables import amake_table

_TABLES = ("table-", "agree-", "contradictions-")


class UpdateRecord(TypedDict):
    """What needs another look, what this call accepted, and how many texts it compared.

    `complete` is False if a limit left sentences unjudged; repeat the call with a higher limit to resume.
    """

    items: list[UpdateItem]
    accepted: list[UpdateItem]
    compared: int
    unchanged: int
    complete: bool
    run: str
    usage: dict[str, Any]


async def aupdate_texts(
    session: Session,
    runs: Sequence[str] | str = (),
    *,
    accept: Sequence[str] = (),
    accept_all: bool = False,
    max_calls: int | None = None,
    on_notice: Callable[[str], None] = lambda _: None,
) -> UpdateRecord:
    """Compare finished texts and tables with the current library; accept the named changes.

    If nothing changed since the last comparison, nothing is searched and no model is called. Only new and changed
    papers are searched, and a model judges only near passages. An accepted sentence becomes an edit of its run; an
    accepted answer is asked again; an accepted table reads what changed.

    Args:
        runs: ids of runs or tables; all tables, and the latest run of each question and experiment, if omitted.
        accept: ids of items to accept; items accepted earlier are unknown.
        accept_all: accept all items.
        max_calls: limit on model requests; sentences beyond it are not judged.
        on_notice: called with one line for each compared text.

    Raises `InputError` for an unknown run or id, and `PausedError` if the endpoint is lost.
    """
    require_writable(session)
    if max_calls is not None:
        require_positive("max_calls", max_calls)
        session = session.with_settings(max_calls=max_calls)
    version, records = await asyncio.to_thread(lambda: (session.library.version(), session.library.records()))
    name, progress, home = own_id(f"update-{version}"), Progress(), session.home
    found: dict[str, dict[str, Any]] = {}
    compared = 0
    with session.run(name):
        checker = await claim_checker(session, name, progress)
        statuses = await asyncio.to_thread(
            session.library.metadata.statuses, [record.paper for record in records.values()]
        )
        hashes = {key: record.paper.content_hash for key, record in records.items()}
        retracted = sorted(key for key, status in statuses.items() if status.retracted)
        comparison = _Comparison(session, checker, version, hashes, retracted)
        known = await asyncio.to_thread(home.runs().comparisons)
        texts = await asyncio.to_thread(_texts_to_compare, home, one_or_more(runs))
        for text_id, text in texts.items():
            stamp, found[text_id] = known.get(text_id, ("", {}))
            if stamp != (now := await asyncio.to_thread(comparison.stamp, text)):
                compared += 1
                on_notice(f"Comparing {text_id} with the library.")
                work = partial(comparison.compare, text, found[text_id].get("since", ""), now)
                found[text_id] = await run_fitted(session, name, work)
        items = [item for record in found.values() for item in record["items"]]
        if unknown := set(accept) - {item["id"] for item in items}:
            raise ArgumentError(f"accept: there is no item {min(unknown)}; there are {len(items)}.")
        accepted = [item for item in items if accept_all or item["id"] in accept]
        rest = [item for item in items if item not in accepted]
        for text_id in {item["run"]: 0 for item in accepted}:
            await _accept(session, home, [item for item in accepted if item["run"] == text_id])
            left = [item for item in rest if item["run"] == text_id]
            now = await asyncio.to_thread(comparison.stamp, texts[text_id])
            await comparison.keep(text_id, left, found[text_id]["since"], now)
    return {
        "items": rest,
        "accepted": accepted,
        "compared": compared,
        "unchanged": len(found) - compared,
        "complete": not progress.stopped,
        "run": name,
        "usage": await session.usage(name),
    }


update_texts = blocking(aupdate_texts)


def pending_updates(session: Session) -> list[UpdateItem]:
    """Return what the last comparison found and nobody has accepted yet; blocks, and compares nothing."""
    known = session.home.runs().comparisons()
    return [item for _, record in known.values() for item in record["items"]]


def _texts_to_compare(home: Home, named: Sequence[str]) -> dict[str, RunHead | StoredTable]:
    """The texts to compare, by id; blocks."""
    tables, runs = home.evidence_tables(), home.runs()
    chosen: list[RunHead | StoredTable] = [*runs.latest_finished(), *tables.all()]
    if named:
        chosen = [tables.get(name) if name.startswith(_TABLES) else runs.get(name) for name in named]
    for text in chosen:
        if isinstance(text, RunHead) and text.status != "finished":
            raise ArgumentError(f"runs: {text.thread_id} is not finished.", help="Resume it first (runs resume ID).")
    return {text.thread_id if isinstance(text, RunHead) else text.table_id: text for text in chosen}


@dataclass(frozen=True, slots=True)
class _Comparison:
    """Compares texts with a version of the library; `hashes` are its papers' hashes by key."""

    session: Session
    checker: ClaimChecker
    version: str
    hashes: Mapping[str, str]
    retracted: Sequence[str]

    def stamp(self, text: RunHead | StoredTable) -> str:
        """Return a hash of what a comparison depends on; if it is unchanged, there is nothing to compare. Blocks."""
        if isinstance(text, StoredTable):
            table = self.session.home.evidence_tables().get(text.table_id)
            return hash_key([self.version, self.retracted, table.updated_at])
        edits = [[edit.position, edit.text] for edit in self.session.home.runs().edits(text.thread_id)]
        judge = self.session.settings.address_of("judge")[:2] if self.checker.judge else ""
        return hash_key([self.version, judge, self.retracted, edits])

    async def compare(self, text: RunHead | StoredTable, since: str, stamp: str) -> dict[str, Any]:
        """Compare a text with what changed since the version `since`, and store what needs another look."""
        home, library = self.session.home, self.session.library
        if isinstance(text, StoredTable):
            table = await asyncio.to_thread(load_table, library, home.evidence_tables(), text.table_id)
            found = await asyncio.to_thread(compare_table, table, library)
            named = {"run": text.table_id, "kind": "table", "title": text.question}
        else:
            run = await asyncio.to_thread(home.runs().get, text.thread_id)
            edits = await asyncio.to_thread(home.runs().edits, text.thread_id)
            hashes = await asyncio.to_thread(home.runs().library, since or run.library_version)
            papers = (run.result or {}).get("report", {}).get("papers", {})
            known = [key for key, paper in papers.items() if paper.get("status") == "retracted"]
            found = await compare_text(cited_sections(run, edits), self.checker, hashes, known)
            named = {"run": run.thread_id, "kind": run.section, "title": run.title}
        items = [cast("UpdateItem", {**item, **named}) for item in found]
        for item in items:  # ids are hashes of the content, so that a repeated request accepts no other item
            said = ("run", "section", "position", "sentence", "reason", "detail", "keys")
            item["id"] = hash_key([dict(item)[name] for name in said])[:8]
        await asyncio.to_thread(home.runs().note_library, self.version, self.hashes)
        return await self.keep(named["run"], items, since, stamp)

    async def keep(self, text_id: str, items: Sequence[UpdateItem], since: str, stamp: str) -> dict[str, Any]:
        """Store what in a text needs another look."""
        record = {"items": items, "since": since if items else self.version}
        stored = "" if self.checker.progress.stopped else stamp  # a comparison stopped by a limit is repeated
        await asyncio.to_thread(self.session.home.runs().keep_comparison, text_id, stored, record)
        return record


async def _accept(session: Session, home: Home, items: Sequence[UpdateItem]) -> None:
    """Accept items of one text: make the edits, ask an answer again, or read a table again."""
    text_id, kind = items[0]["run"], items[0]["kind"]
    if kind == "table":
        table = await asyncio.to_thread(home.evidence_tables().get, text_id)
        if any(item["action"] for item in items):
            await amake_table(session, table.question, papers=table.plan["papers"])
        return
    run = await asyncio.to_thread(home.runs().get, text_id)
    if kind == "research":
        await run_request(replace(request_to_resume(run), thread_id=None, fresh=False), session)
        return
    sections = cited_sections(run, await asyncio.to_thread(home.runs().edits, text_id))
    for item in items:
        section = next(part for part in reversed(sections) if part.first <= item["position"])
        edit = await asyncio.to_thread(accepted_edit, item, section, session.library)
        await asyncio.to_thread(home.runs().edit, text_id, edit)


Reason = Literal[
    "removed",
    "retracted",
    "paper changed",
    "words gone",
    "page moved",
    "better evidence",
    "opposite evidence",
    "new papers",
]
_HITS: Final = 6  # passages of new papers for each sentence
_SHOWN: Final = 2  # of these passages, shown to the judge
_PASSAGE_TOKENS: Final = 420
_NEARER: Final = 1.0  # cross-encoder log-odds by which a passage is clearly nearer than the cited ones
_SURE: Final = 1e-6


class UpdateItem(TypedDict):
    """A sentence, or a row of a table, that needs another look; `proposed` is its new text if accepted.

    `marked` is that text with evidence markers, and `evidence_id` the marker of its new passage.
    """

    id: str
    run: str
    kind: str
    title: str
    section: str
    position: int
    sentence: str
    keys: list[str]
    reason: Reason
    detail: str
    passage: PassageRecord | None
    judged: bool
    action: str
    proposed: str
    marked: str
    evidence_id: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A cited sentence (`marked` has markers, `words` none), its `bad` evidence, and passages to replace it by."""

    section: EditableSection
    position: int
    marked: str
    words: str
    before: str
    reason: Reason = "better evidence"
    detail: str = ""
    bad: tuple[str, ...] = ()
    near: tuple[ClaimPassage, ...] = ()


def _cited_sentences(sections: Sequence[EditableSection]) -> Iterator[_Candidate]:
    for section in sections:
        before = ""
        for place in range(len(section.sentences)):
            marked = section.current(section.first + place)
            words = close_gaps(MARKER.sub("", marked))
            if marker_ids(marked):
                yield _Candidate(section, section.first + place, marked, words, before)
            before = words


async def compare_text(
    sections: Sequence[EditableSection],
    checker: ClaimChecker,
    since: Mapping[str, str] | None,
    known_retracted: Collection[str] = (),
) -> list[UpdateItem]:
    """Find what in these sections needs another look; `since` has the papers' hashes at the time of writing, if known.

    Claims beyond the budget are not judged (`checker.progress.stopped`).
    """
    library, evidence = checker.library, {item.id: item for section in sections for item in section.evidence}
    records = await asyncio.to_thread(library.records)
    statuses = await asyncio.to_thread(library.metadata.statuses, [record.paper for record in records.values()])
    retracted = {key for key, status in statuses.items() if status.retracted}
    places = list(_cited_sentences(sections))
    cited = {name: evidence[name] for place in places for name in marker_ids(place.marked) if name in evidence}
    kept, _ = await asyncio.to_thread(sources_for, library, [*cited.values()])
    found = {source.evidence.id: source for source in kept}
    held = await asyncio.to_thread(library.chunks, [source.evidence.chunk_id for source in found.values()])
    chunks = {chunk.id: chunk for chunk in held}
    old = dict.fromkeys((item.key for item in cited.values()), "") if since is None else since
    fresh = {key for key, record in records.items() if old.get(key, "-") not in ("", record.paper.content_hash)}

    def problem(name: str) -> tuple[Reason, str] | None:
        item, source = evidence[name], found.get(name)
        if item.key not in records:
            return "removed", f"{item.key} is no longer in the library."
        if item.key in retracted and item.key not in known_retracted:
            return "retracted", f"{item.key}: {statuses[item.key].retraction_line()}"
        if source is None:
            return "words gone", f'{item.key} no longer has "{close_gaps(item.quote)}".'
        page = chunks[source.evidence.chunk_id].page_at(source.evidence.start)
        return None if page == item.page else ("page moved", f"{item.key}: from page {item.page} to {page}.")

    problems = {name: why for name in cited if (why := problem(name))}

    async def look(place: _Candidate) -> _Candidate | None:
        names = [name for name in marker_ids(place.marked) if name in cited]
        bad = tuple(name for name in names if name in problems)
        if not bad:
            return await _add_nearer_passages(place, [found[name] for name in names], fresh - retracted, checker)
        (reason, detail), own = problems[bad[0]], cited[bad[0]].key
        if reason == "page moved":
            at = found[bad[0]].evidence
            near = [ClaimPassage(chunks[at.chunk_id], records[own].paper, 0.0, nearest=(at.start, at.end))]
        else:
            again = await checker.find(place.words, place.before, [own], _SHOWN) if reason == "words gone" else {}
            near = [item for passages in again.values() for item in passages]
            near += await checker.elsewhere(place.words, place.before, [own, *retracted])
        return replace(place, reason=reason, detail=detail, bad=bad, near=tuple(near[:_SHOWN]))

    asked = [item for item in await gather_all(map(look, places)) if item is not None]
    claims = [
        checker.claim(item.words, item.before, choose_sentences(item.words, item.near, _PASSAGE_TOKENS))
        for item in asked
    ]
    wanted = [claim for item, claim in zip(asked, claims, strict=True) if item.near and item.reason != "page moved"]
    judged = dict(zip(map(id, wanted), await checker.judge_claims(wanted), strict=True))
    free = count(1 + max((int(name[1:]) for name in evidence), default=0))
    keys = {name: item.key for name, item in cited.items()}
    items = [
        _propose(item, judged.get(id(claim), claim), keys, free) for item, claim in zip(asked, claims, strict=True)
    ]
    return [item for item in items if item is not None]


async def _add_nearer_passages(
    place: _Candidate, own: Sequence[Source], fresh: Collection[str], checker: ClaimChecker
) -> _Candidate | None:
    """Add passages of new papers that are clearly nearer than the cited ones or deny the sentence, or return None."""
    papers = tuple(sorted(set(fresh) - {source.paper.key for source in own}))
    query = claim_query(place.words, place.before)
    hits = await retrieve(checker.library, query, _HITS, Scope(papers=papers), checker.options) if papers else []
    if not hits:
        return None
    texts = [*(hit.chunk.text for hit in hits), *(source.text for source in own)]
    sure = np.clip((await asyncio.to_thread(RERANKER.score, place.words, texts)).astype(float), _SURE, 1 - _SURE)
    odds = np.log(sure / (1 - sure)).tolist()
    said = SentenceIndex([hit.chunk for hit in hits]).nearest(place.words)
    denied = said.chunk.id if said and said.share >= SAME_WORDS and polarity_differs(place.words, said.text) else ""
    best = max(odds[len(hits) :], default=0.0)
    ranked = sorted(zip(odds, hits, strict=False), key=lambda item: (item[1].chunk.id != denied, -item[0]))
    near = [hit for score, hit in ranked if score - best >= _NEARER or hit.chunk.id == denied]
    if not near:
        return None
    detail = f"{near[0].paper.key} {'denies it' if denied else 'is nearer to it than what it cites'}."
    passages = tuple(ClaimPassage(hit.chunk, hit.paper, hit.vector_score) for hit in near[:_SHOWN])
    return replace(place, reason="opposite evidence" if denied else "better evidence", detail=detail, near=passages)


def _propose(item: _Candidate, claim: JudgedClaim, keys: Mapping[str, str], free: Iterator[int]) -> UpdateItem | None:
    """Propose a change to a sentence; None if the judge found that the new papers say nothing about it."""
    judged, reason = claim.label != "unjudged", item.reason
    if judged and not item.bad:
        reason = "opposite evidence" if claim.label == "contradicted" else "better evidence"
    opposite = reason == "opposite evidence"
    records = [record for key in {x.chunk.key: 0 for x in claim.passages} for record in claim.records(key)]
    if judged:  # passages that support the sentence only in part are not better
        does, wanted = ("contradicts", "contradicted") if opposite else ("supports", "supported")
        records = [record for record in records if record["does"] == does and claim.label == wanted]
    passage, detail = next(iter(records), None), item.detail
    if passage is None and not item.bad:
        return None
    if passage and item.bad and reason != "page moved":
        quoted = filter(is_quotation, (item.words[start:end] for start, end in quoted_spans(item.words)))
        if not all(is_verbatim(words, passage["quote"]) for words in quoted):
            passage, detail = None, f"{detail.rstrip('.')}. It quotes words that no other passage has."
    name = f"E{next(free)}"
    kept = [found for found in marker_ids(item.marked) if found in keys and found not in item.bad]
    marked = item.marked
    if opposite and passage:
        action, marked = "contrast", f"{marked} In contrast, “{passage['shown'].strip(' .')}” [{name}]."
    elif not item.bad:
        action, marked = "add", normalise_markers(f"{marked}[{name}]")
    else:
        action = "replace" if passage else "drop"
        for found in item.bad:
            marked = marked.replace(f"[{found}]", f"[{name}]" if passage and found == item.bad[0] else "")
        if passage:
            marked = set_page(marked, name, passage["page"])
        elif not kept and any(is_quotation(item.words[start:end]) for start, end in quoted_spans(item.words)):
            marked = ""  # a quotation without its source is removed
    by_id = {**keys, name: passage["key"]} if passage else keys
    groups = [
        (start, end, f"({'; '.join(dict.fromkeys(by_id[found] for found in ids if found in by_id))})")
        for start, end, ids in marker_groups(marked)
    ]
    named = list(dict.fromkeys(keys[found] for found in item.bad or kept))
    made = _update_item(reason, detail, item.section.kind, item.words, named, action)
    made |= {"position": item.position, "passage": passage, "judged": judged, "marked": marked}
    return made | {
        "proposed": close_gaps(unescape(replace_spans(marked, groups))),
        "evidence_id": name if passage else "",
    }


_EMPTY: Final[Mapping[str, Any]] = {
    "position": 0,
    **dict.fromkeys(("id", "run", "kind", "title", "proposed", "marked", "evidence_id"), ""),
    **{"passage": None, "judged": False},
}


def _update_item(reason: Reason, detail: str, section: str, sentence: str, keys: list[str], action: str) -> UpdateItem:
    given = {"reason": reason, "detail": detail, "section": section, "sentence": sentence}
    return cast("UpdateItem", {**_EMPTY, **given, "keys": keys, "action": action})


def compare_table(table: Mapping[str, Any], library: Library) -> list[UpdateItem]:
    """Find a table's rows whose papers were changed, removed or retracted, and count new papers; blocks."""
    papers = {paper.key: paper for paper in library.papers()}
    statuses = library.metadata.statuses(papers.values())
    action = "read again" if table["table_id"].startswith("table-") else ""
    items = [
        _update_item("removed", f"{key} is no longer in the library.", key, key, [key], "") for key in table["removed"]
    ]
    for row in table["rows"]:
        key, name = row["key"], f"{row['key']} {row['study']}".strip()
        if row["changed"]:
            text = "\n\n".join(chunk.text for chunk in library.paper_chunks(key)) if key in papers else ""
            lost = {name for name, cell in row["cells"].items() for span in cell["spans"] if span["quote"] not in text}
            detail = f"Its words are gone: {', '.join(sorted(lost))}." if lost else "Its words are still there."
            items.append(_update_item("words gone" if lost else "paper changed", detail, key, name, [key], action))
        elif key in statuses and statuses[key].retracted:
            items.append(_update_item("retracted", statuses[key].retraction_line(), key, name, [key], ""))
    if table["screened"] and (new := table["papers"] - table["screened"]) > 0:
        detail = f"{counted(new, 'paper')} not screened yet."
        items.append(_update_item("new papers", detail, "", table["question"], [], action))
    return items


def accepted_edit(item: UpdateItem, section: EditableSection, library: Library) -> EditedSentence:
    """Build the edit for an accepted item; its passage becomes evidence of the text. Blocks."""
    before, edit = section.current(item["position"]), section.edits.get(item["position"])
    added = list(edit.checked.get("evidence", ())) if edit else []
    if passage := item["passage"]:
        added.append(passage_evidence(library, passage, item["evidence_id"]).as_dict())
    known = {name: verdict for (words, name), verdict in section_verdicts(section).items() if words == before}
    if item["judged"]:
        known[item["evidence_id"]] = Verdict("supported")
    verdicts = [
        verdict_record((sentence.text, name), known[name])
        for sentence in sentences(item["marked"])
        for name in sentence.ids
        if name in known
    ]
    own = {
        **unchecked_record(item["position"]),
        "section": section.kind,
        "text": item["proposed"],
        "ok": item["judged"],
    }
    own["verdict"] = "supported" if item["judged"] else "unjudged"
    more = {"marked": item["marked"], "evidence": added, "verdicts": verdicts, "before": edit.text if edit else ""}
    return EditedSentence(item["position"], item["proposed"], {**own, **more})
