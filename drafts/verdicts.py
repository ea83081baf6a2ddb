"""The judge's verdicts on cited sentences, requested once per run and kept as state records."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, Final, Literal, cast

from pydantic import TypeAdapter
from typing_extensions import TypedDict  # as in `graph/state.py`, which holds these

from ..citations.checks.support_findings import BY_SEARCHES, PairKey, absence_pairs, cited_claims
from ..citations.markers import marker_ids
from ..documents import text_hash
from ..roles.protocols import DecidingSpan, Source, SupportJudge, Verdict, VerdictLabel
from .sentence_edits import EditRecord, Failing

VERDICT: Final = TypeAdapter(Verdict)


class VerdictRecord(TypedDict):
    """The fields of a judge's verdict on a sentence, with its markers, for one piece of the evidence that it cites."""

    sentence: str
    evidence_id: str
    label: VerdictLabel
    reason: str
    start: int | None
    end: int | None
    adds: Literal["", "idle", "contradicts"]
    spans: list[dict[str, Any]]


def verdict_record(key: PairKey, verdict: Verdict) -> VerdictRecord:
    fields = {**asdict(verdict), "spans": [asdict(span) for span in verdict.spans]}
    return cast(VerdictRecord, {"sentence": key[0], "evidence_id": key[1], **fields})


def verdicts_from(records: Iterable[VerdictRecord]) -> dict[PairKey, Verdict]:
    """The verdicts of state records, by sentence and evidence."""
    return {(record["sentence"], record["evidence_id"]): VERDICT.validate_python(record) for record in records}


async def judge_text(
    judge: SupportJudge,
    text: str,
    sources: Sequence[Source],
    known: Mapping[PairKey, Verdict],
    only: Collection[str] | None = None,
) -> list[VerdictRecord]:
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


def carry_verdicts(
    known: Mapping[PairKey, Verdict], text: str, failing: Sequence[Failing], edits: Sequence[EditRecord]
) -> list[VerdictRecord]:
    """Carry over verdicts of sentences that lost only idle markers, so that they are not judged again."""
    put = {edit["start"]: edit["text"] for edit in edits}
    return [
        verdict_record((item.shown.text, identifier), known[old, identifier])
        for item in failing
        if item.idle and put.get(item.start) == item.shown.text
        for old in [text[item.start : item.end]]
        for identifier in marker_ids(item.shown.text)
        if (old, identifier) in known
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
        # Chunk ids shift in an edited paper: the evidence's own chunk is the one whose span `start` and `end` repeat.
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
