"""A draft with its context from the run: the state records, the sources, and the value from which texts are made.

Texts behind evidence are found in the library even if a paper was edited after it was read. A writer is shown the
sentences that carry a finding. What only their context says (a country, a cell type, what "it" means) is in the window
of its section around them, which a judge and a repair can be shown. The opening of the paper is part of every window:
it says where, on whom and how the study was done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NotRequired

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from ..citations.checks.support_findings import BY_SEARCHES, PairKey, absence_pairs, cited_claims
from ..documents import Chunk, Evidence, Paper, chunk_id, same_section, split_chunk_id, text_hash
from ..documents.chunking import Window
from ..documents.passages import TableHead, readable_units
from ..errors import InputError
from ..experiment import SectionKind
from ..roles.protocols import (
    Brief,
    DecidingSpan,
    Draft,
    PassageSentence,
    QuestionKind,
    Source,
    SupportJudge,
    Verdict,
)
from ..stores.library import Library
from ..text.sentences import is_context_dependent

QueryOrigin = Literal["default", "need", "custom", "table", "person"]
_DRAFT, _VERDICT = TypeAdapter(Draft), TypeAdapter(Verdict)
draft_from = _DRAFT.validate_python  # the draft of a state record
draft_record = partial(_DRAFT.dump_python, mode="json")


class QueryRecord(TypedDict):
    """An answered search and its evidence, best first; `section` is the section that made it.

    `origin` is `default` for the experiment's fields, from which the needs are planned, `need` for the first search of
    a need, `custom` for a search of the agent, `table` for the cells of an evidence table, and `person` for what a
    person asked for; `needs` are the ids of the needs it was made for. `proposed`, `shown` and `unreadable` count
    passages (see `tools.found_evidence.SearchResult`).
    """

    section: NotRequired[SectionKind]
    needs: NotRequired[list[str]]
    query: str
    origin: QueryOrigin
    scope: dict[str, Any]
    evidence_ids: list[str]
    proposed: NotRequired[int]
    shown: NotRequired[int]
    unreadable: NotRequired[int]


def new_query(query: str, origin: QueryOrigin, needs: Sequence[str], scope: dict[str, Any]) -> QueryRecord:
    """The record of a search that has no evidence yet."""
    return {"query": query, "origin": origin, "needs": list(needs), "scope": scope, "evidence_ids": []}


def searches_of(queries: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The records that were searched; the default queries of a section are only material for planning."""
    return [dict(record) for record in queries if record["origin"] != "default" or "proposed" in record]


class ScreeningRecord(TypedDict):
    """The cards read for a broad question, the papers opened for it, and the near cases left out, with reasons."""

    cards: int
    opened: list[str]
    near: dict[str, str]
    table_id: NotRequired[str]  # of the evidence table that holds the answer
    counts: NotRequired[str]  # the line on how many papers it holds


class RouteRecord(TypedDict):
    """Where to look for the answer to a question: in one paper or several, the papers it names, the kinds of section.

    `kind` is how much of the library is read for it (nothing for a remark), `start` the paper whose title has the words
    of its subject.
    """

    track: Literal["one_paper", "survey"]
    papers: list[str]
    categories: list[str]
    kind: QuestionKind
    start: list[str]
    screened: NotRequired[ScreeningRecord]


@dataclass(frozen=True, slots=True)
class QuestionSearch:
    """Where an answer was searched: `limited` if the user named papers; `read` counts those shown to a reader."""

    route: RouteRecord
    shortlist: Sequence[str]
    limited: bool
    read: int = 0


@dataclass(frozen=True, slots=True)
class WrittenDraft:
    """A draft, its brief and sources, and the run's findings: everything needed to finish the text.

    `evidence` are the records of all that was found, `queries` the searches, `unmet` the needs that were searched for
    in vain (None if none were planned), `warnings` the run's warnings, `lost` those about evidence that is gone,
    `search` the search for a question's answer, and `tables` the evidence tables in the text (Markdown with markers).
    """

    brief: Brief
    draft: Draft
    sources: Sequence[Source]
    verdicts: Mapping[PairKey, Verdict]
    evidence: Sequence[Mapping[str, Any]]
    queries: Sequence[Mapping[str, Any]]
    unmet: Sequence[str] | None = None
    warnings: Sequence[str] = ()
    lost: Sequence[str] = ()
    search: QuestionSearch | None = None
    tables: Sequence[str] = ()


def sources_for(library: Library, evidence: Sequence[Evidence]) -> tuple[list[Source], list[str]]:
    """The sources whose quote still exists (found by hash or quote, as ids shift), and a warning for each lost one."""
    names = dict.fromkeys(near for item in evidence for span in item.spans for near in near_chunks(span.chunk_id))
    by_id = {chunk.id: chunk for chunk in library.chunks(list(names))}
    sources: list[Source] = []
    lost: list[str] = []
    for item in evidence:
        chunk = by_id.get(item.chunk_id)
        if chunk is None or text_hash(chunk.text) != item.chunk_hash:
            chunk = _relocate_chunk(library, item)
        if chunk is None:
            lost.append(f"Source changed: the text of {item.id} is no longer in {item.key}, so it is left out.")
            continue
        start = item.start if chunk.text[item.start : item.end] == item.quote else chunk.text.index(item.quote)
        moved = replace(item, chunk_id=chunk.id, start=start, end=start + len(item.quote))
        source = source_of(moved, library.paper(item.key), chunk, by_id)
        sources.append(with_columns(source, library.table_head(chunk)))
    return sources, lost


def _relocate_chunk(library: Library, item: Evidence) -> Chunk | None:
    try:
        chunks = library.paper_chunks(item.key)
    except InputError:
        return None
    same = [chunk for chunk in chunks if text_hash(chunk.text) == item.chunk_hash]
    holding = [chunk for chunk in chunks if item.quote in chunk.text]
    return next(iter([*same, *holding]), None)


def load_read_chunks(library: Library, ids: Sequence[str]) -> list[tuple[Chunk, Paper]]:
    """These chunks with their papers; chunks that are gone are left out."""
    chunks = library.chunks(ids)
    papers = {key: library.paper(key) for key in dict.fromkeys(chunk.key for chunk in chunks)}
    return [(chunk, papers[chunk.key]) for chunk in chunks]


_FIRST_ROWS = 40  # characters before the first rows of a chunk that begins inside a table
_OPENING = 2  # chunks at the beginning of a paper: its abstract
_Placed = tuple[int, PassageSentence]  # its start in the paper, and the sentence


def near_chunks(name: str) -> tuple[str, ...]:
    """The ids of a chunk, of its neighbours in the paper, and of the chunks that open the paper."""
    try:
        key, index = split_chunk_id(name)
    except ValueError:  # a record from a file that was edited
        return (name,)
    near = dict.fromkeys((index - 1, index + 1, *range(_OPENING)))
    return (name, *(chunk_id(key, place) for place in near if place >= 0 and place != index))


def source_of(item: Evidence, paper: Paper, chunk: Chunk, chunks: Mapping[str, Chunk]) -> Source:
    """The source for a finding whose first words are in `chunk`; `chunks` are this and others near the words, by id."""
    passage = passage_of(item, chunk, chunks)
    window = _window_of(paper, chunk, passage, chunks)
    return Source(item, paper, chunk.text, chunk.category, passage, chunk.parent, window)


def with_columns(source: Source, head: TableHead | None) -> Source:
    """The source; if its chunk begins inside a table, with the table's column names before its first rows."""
    first = source.passage[0] if source.passage else None
    if head is None or first is None or first.start > _FIRST_ROWS:
        return source
    names = PassageSentence(head.chunk_id, head.start, head.end, head.row, False)
    window = tuple(item for item in source.window if item.chunk_id != head.chunk_id or item.end <= head.start)
    return replace(source, passage=(names, *source.passage), window=(names, *(window or source.passage)))


def passage_of(item: Evidence, chunk: Chunk, chunks: Mapping[str, Chunk]) -> tuple[PassageSentence, ...]:
    """The sentences that support a finding, and the one before if they depend on it; changed text is left out."""
    shown: list[_Placed] = []
    for span in item.spans:
        holder = chunk if span.chunk_id == item.chunk_id else chunks.get(span.chunk_id)
        if holder is None or holder.text[span.start : span.end] != span.quote:
            continue
        units = readable_units(holder.text)
        inside = [place for place, unit in enumerate(units) if unit.start < span.end and span.start < unit.end]
        if inside and inside[0] and is_context_dependent(units[inside[0]].text):
            inside = [inside[0] - 1, *inside]
        for place in inside:
            unit = units[place]
            sentence = PassageSentence(holder.id, unit.start, unit.end, unit.text, unit.end > span.start)
            shown.append((holder.start + unit.start, sentence))
    return _in_order(_each_once(shown))


def _window_of(
    paper: Paper, chunk: Chunk, passage: Sequence[PassageSentence], chunks: Mapping[str, Chunk]
) -> tuple[PassageSentence, ...]:
    """The passage with the rest of its chunks and their neighbours, in order; the paper's opening comes last."""
    known = {**chunks, chunk.id: chunk}
    holders = dict.fromkeys([chunk.id, *(item.chunk_id for item in passage)])
    near = {name: known[name] for holder in holders for name in near_chunks(holder) if name in known}
    own = [known[name] for name in holders]
    joined = [item for item in near.values() if item.id in holders or same_section(item, chunk)]
    opening = [item for item in near.values() if item.index < _OPENING and item not in joined]
    shown = [(known[item.chunk_id].start + item.start, item) for item in passage]
    for group in (own, joined):
        shown += _not_shown(paper, group, shown)
    return (*_in_order(shown), *_in_order(_not_shown(paper, opening, shown)))


def _not_shown(paper: Paper, chunks: Sequence[Chunk], shown: Sequence[_Placed]) -> list[_Placed]:
    ordered = sorted(chunks, key=lambda chunk: chunk.index)
    units = Window(paper, tuple(ordered), hits=(), cosines=()).sentences()
    placed = [
        (unit.chunk.start + unit.start, PassageSentence(unit.chunk.id, unit.start, unit.end, unit.text, False))
        for unit in units
    ]
    return [item for item in placed if not _overlaps(item, shown)]


def _in_order(shown: Sequence[_Placed]) -> tuple[PassageSentence, ...]:
    return tuple(sentence for _, sentence in sorted(shown, key=lambda at: at[0]))


def _each_once(shown: Sequence[_Placed]) -> list[_Placed]:
    """Drop sentences that overlap, since chunks share borders; those that support, then longer ones, stay."""
    kept: list[_Placed] = []
    for placed in sorted(shown, key=lambda at: (not at[1].carries, at[1].start - at[1].end)):
        if not _overlaps(placed, kept):
            kept.append(placed)
    return kept


def _overlaps(placed: _Placed, others: Sequence[_Placed]) -> bool:
    begin, sentence = placed
    end = begin + sentence.end - sentence.start
    return any(begin < other + item.end - item.start and other < end for other, item in others)


def verdict_record(key: PairKey, verdict: Verdict) -> dict[str, Any]:
    """A verdict on a sentence, with its markers, for one piece of the evidence that it cites, as a state record."""
    return {"sentence": key[0], "evidence_id": key[1], **_VERDICT.dump_python(verdict, mode="json")}


def verdicts_from(records: Iterable[Mapping[str, Any]]) -> dict[PairKey, Verdict]:
    """The verdicts of state records, by sentence and evidence."""
    return {(record["sentence"], record["evidence_id"]): _VERDICT.validate_python(record) for record in records}


async def judge_text(
    judge: SupportJudge,
    text: str,
    sources: Sequence[Source],
    known: Mapping[PairKey, Verdict],
    only: Collection[str] | None = None,
) -> list[dict[str, Any]]:
    """Judge the cited sentences of a text (or `only` some), in reading order, skipping verdicts already `known`."""
    new = {
        sentence: claim
        for sentence, claim in cited_claims(text, sources).items()
        if (only is None or sentence in only)
        and any((sentence, source.evidence.id) not in known for source in claim.sources)
    }
    verdicts = await judge.judge(list(new.values()))
    return [
        *(
            verdict_record((sentence, source.evidence.id), verdict)
            for (sentence, claim), of_claim in zip(new.items(), verdicts, strict=True)
            for source, verdict in zip(claim.sources, of_claim, strict=True)
        ),
        *(
            verdict_record(key, BY_SEARCHES)
            for key in absence_pairs(text, sources)
            if key not in known and (only is None or key[0] in only)
        ),
    ]


def relocate_verdicts(verdicts: Mapping[PairKey, Verdict], sources: Sequence[Source]) -> dict[PairKey, Verdict]:
    """Drop the spans of chunks that have changed since the verdicts were made.

    Spans in the evidence's own chunk are kept, under its current id, if its text is unchanged; spans in another chunk
    are kept if they are still among the shown sentences.
    """
    by_id = {source.evidence.id: source for source in sources}
    found: dict[PairKey, Verdict] = {}
    for key, verdict in verdicts.items():
        source = by_id.get(key[1])
        same = source is not None and text_hash(source.text) == source.evidence.chunk_hash
        # Chunk ids shift when a paper is edited: the evidence's own chunk has the `start` and `end` of the verdict.
        own = {span.chunk_id for span in verdict.spans if (span.start, span.end) == (verdict.start, verdict.end)}
        spans: list[DecidingSpan] = []
        for span in verdict.spans:
            if source and span.chunk_id in own:
                spans += [replace(span, chunk_id=source.evidence.chunk_id)] * same
            elif source and any(span == DecidingSpan(s.chunk_id, s.start, s.end) for s in source.beyond):
                spans.append(span)
        start, end = (verdict.start, verdict.end) if same else (None, None)
        found[key] = replace(verdict, start=start, end=end, spans=tuple(spans))
    return found
