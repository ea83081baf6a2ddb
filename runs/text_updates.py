"""Compares finished texts with a library that has changed: what rests on words that are gone, and which sentences would
now have nearer or opposite evidence.

Only papers that are new or changed since a text was written are searched; a judge is asked only about what is near.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
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
from ..claims.claim_verdicts import JudgedClaim
from ..claims.detail_checks import polarity_differs
from ..claims.text_check import ClaimChecker
from ..documents.marker_escaping import as_written
from ..drafts.written_draft import sources_for, verdict_record
from ..models.concurrency import gather_all
from ..plurals import counted
from ..roles.protocols import Source, Verdict
from ..stores.library import Library
from ..stores.run_register import EditedSentence
from ..text.sentences import replace_spans
from ..text.words import close_gaps
from ..tools.retrieval import RERANKER, retrieve
from ..tools.scope import Scope
from .edited_text import EditableSection, section_verdicts
from .sentence_check import passage_evidence, unchecked

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
_SHOWN: Final = 2  # of them, to the judge
_PASSAGE_TOKENS: Final = 420
_NEARER: Final = 1.0  # log-odds of the cross-encoder by which a passage is clearly nearer than those that are cited
_SURE: Final = 1e-6


class UpdateItem(TypedDict):
    """A sentence, or a row of a table, that needs another look; `proposed` is what it becomes if accepted.

    `marked` and `evidence_id` are how an accepted sentence is stored.
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
    """A sentence with markers and without, the evidence of it that is `bad`, and what may be put in its place."""

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
    """What in these sections needs another look; `since` are the papers' hashes when they were written, if known.

    Claims beyond a budget are not judged (`checker.progress.stopped`).
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
            return "retracted", statuses[item.key].retraction_line()
        if source is None:
            return "words gone", f'{item.key} no longer has "{close_gaps(item.quote)}".'
        page = chunks[source.evidence.chunk_id].page_at(source.evidence.start)
        return None if page == item.page else ("page moved", f"{item.key}: from page {item.page} to {page}.")

    problems = {name: why for name in cited if (why := problem(name))}

    async def look(place: _Candidate) -> _Candidate | None:
        names = [name for name in marker_ids(place.marked) if name in cited]
        bad = tuple(name for name in names if name in problems)
        if not bad:
            return await _with_nearer(place, [found[name] for name in names], fresh - retracted, checker)
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
    judged = dict(zip(map(id, wanted), await checker.judged(wanted), strict=True))
    free = count(1 + max((int(name[1:]) for name in evidence), default=0))
    keys = {name: item.key for name, item in cited.items()}
    items = [
        _propose(item, judged.get(id(claim), claim), keys, free) for item, claim in zip(asked, claims, strict=True)
    ]
    return [item for item in items if item is not None]


async def _with_nearer(
    place: _Candidate, own: Sequence[Source], fresh: Collection[str], checker: ClaimChecker
) -> _Candidate | None:
    """The sentence with passages of new papers that are clearly nearer than those it cites, or deny its words."""
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
    """What becomes of a sentence; None if a judge found that the new papers say nothing about it."""
    judged, reason = claim.label != "unjudged", item.reason
    if judged and not item.bad:
        reason = "opposite evidence" if claim.label == "contradicted" else "better evidence"
    opposite = reason == "opposite evidence"
    records = [record for key in {x.chunk.key: 0 for x in claim.passages} for record in claim.records(key)]
    if judged:  # what says it in part only is no better
        does, wanted = ("contradicts", "contradicted") if opposite else ("supports", "supported")
        records = [record for record in records if record["does"] == does and claim.label == wanted]
    passage, detail = next(iter(records), None), item.detail
    if passage is None and not item.bad:
        return None
    if passage and item.bad and reason != "page moved":
        quoted = filter(is_quotation, (item.words[start:end] for start, end in quoted_spans(item.words)))
        if not all(is_verbatim(words, passage["quote"]) for words in quoted):
            passage, detail = None, f"{detail} It quotes words that no other passage has."
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
    by_id = {**keys, name: passage["key"]} if passage else keys
    groups = [
        (start, end, f"({'; '.join(dict.fromkeys(by_id[found] for found in ids if found in by_id))})")
        for start, end, ids in marker_groups(marked)
    ]
    named = list(dict.fromkeys(keys[found] for found in item.bad or kept))
    made = _item(reason, detail, item.section.kind, item.words, named, action)
    made |= {"position": item.position, "passage": passage, "judged": judged, "marked": marked}
    return made | {
        "proposed": close_gaps(as_written(replace_spans(marked, groups))),
        "evidence_id": name if passage else "",
    }


_EMPTY: Final[Mapping[str, Any]] = {
    "position": 0,
    **dict.fromkeys(("id", "run", "kind", "title", "proposed", "marked", "evidence_id"), ""),
    **{"passage": None, "judged": False},
}


def _item(reason: Reason, detail: str, section: str, sentence: str, keys: list[str], action: str) -> UpdateItem:
    given = {"reason": reason, "detail": detail, "section": section, "sentence": sentence}
    return cast("UpdateItem", {**_EMPTY, **given, "keys": keys, "action": action})


def compare_table(table: Mapping[str, Any], library: Library) -> list[UpdateItem]:
    """The rows of a table whose papers changed, are gone or retracted, and how many papers are new; blocks."""
    papers = {paper.key: paper for paper in library.papers()}
    statuses = library.metadata.statuses(papers.values())
    action = "read again" if table["table_id"].startswith("table-") else ""
    items = [_item("removed", f"{key} is no longer in the library.", key, key, [key], "") for key in table["removed"]]
    for row in table["rows"]:
        key, name = row["key"], f"{row['key']} {row['study']}".strip()
        if row["changed"]:
            text = "\n\n".join(chunk.text for chunk in library.paper_chunks(key)) if key in papers else ""
            lost = {name for name, cell in row["cells"].items() for span in cell["spans"] if span["quote"] not in text}
            detail = f"Its words are gone: {', '.join(sorted(lost))}." if lost else "Its words are still there."
            items.append(_item("words gone" if lost else "paper changed", detail, key, name, [key], action))
        elif key in statuses and statuses[key].retracted:
            items.append(_item("retracted", statuses[key].retraction_line(), key, name, [key], ""))
    if table["screened"] and (new := table["papers"] - table["screened"]) > 0:
        detail = f"{counted(new, 'paper')} not screened yet."
        items.append(_item("new papers", detail, "", table["question"], [], action))
    return items


def accepted_edit(item: UpdateItem, section: EditableSection, library: Library) -> EditedSentence:
    """The edit that an accepted item makes; its passage becomes evidence of the text. Blocks."""
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
    own = {**unchecked(item["position"]), "section": section.kind, "text": item["proposed"], "ok": item["judged"]}
    own["verdict"] = "supported" if item["judged"] else "unjudged"
    more = {"marked": item["marked"], "evidence": added, "verdicts": verdicts, "before": edit.text if edit else ""}
    return EditedSentence(item["position"], item["proposed"], {**own, **more})
