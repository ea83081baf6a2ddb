"""Has the judge compare cited sentences with their sources, each sentence once per run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..citations.checks.support_findings import BY_SEARCHES, PairKey, cited_claims, pairs_of_absence
from ..citations.markers import marker_ids
from ..documents import text_hash
from ..roles.protocols import DecidingSpan, Source, SupportJudge, Verdict
from .sentence_repairs import Failing
from .state import EditRecord, RunState, VerdictRecord


def verdicts_of(state: RunState) -> dict[PairKey, Verdict]:
    """All verdicts of the run so far, by sentence and evidence."""
    return {
        (record["sentence"], record["evidence_id"]): Verdict(
            record["label"],
            record["reason"],
            record["start"],
            record["end"],
            record.get("adds", ""),
            tuple(DecidingSpan(*span) for span in record.get("spans", ())),
        )
        for record in state.get("verdicts", [])
    }


async def judged(
    judge: SupportJudge, text: str, sources: list[Source], known: dict[PairKey, Verdict]
) -> list[VerdictRecord]:
    """The verdicts that a text still lacks, in reading order; pairs in `known` are not judged again."""
    new = {
        sentence: claim
        for sentence, claim in cited_claims(text, sources).items()
        if any((sentence, source.evidence.id) not in known for source in claim.sources)
    }
    verdicts = await judge.judge(list(new.values()))
    return [
        *(
            record_of_verdict((sentence, source.evidence.id), verdict)
            for (sentence, claim), given in zip(new.items(), verdicts, strict=True)
            for source, verdict in zip(claim.sources, given, strict=True)
        ),
        *(record_of_verdict(key, BY_SEARCHES) for key in pairs_of_absence(text, sources) if key not in known),
    ]


def record_of_verdict(key: PairKey, verdict: Verdict) -> VerdictRecord:
    """The verdict as a state record."""
    sentence, evidence_id = key
    return {
        "sentence": sentence,
        "evidence_id": evidence_id,
        "label": verdict.label,
        "reason": verdict.reason,
        "start": verdict.start,
        "end": verdict.end,
        "adds": verdict.adds,
        "spans": [(span.chunk_id, span.start, span.end) for span in verdict.spans],
    }


def without_idle(
    state: RunState, text: str, failing: Sequence[Failing], edits: Sequence[EditRecord]
) -> list[VerdictRecord]:
    """Verdicts of sentences that lost only idle markers: they keep their verdicts and are not judged again."""
    known = verdicts_of(state)
    put = {edit["start"]: edit["text"] for edit in edits}
    return [
        record_of_verdict((item.shown.text, identifier), known[old, identifier])
        for item in failing
        if item.idle and put.get(item.start) == item.shown.text
        for old in [text[item.start : item.end]]
        for identifier in marker_ids(item.shown.text)
        if (old, identifier) in known
    ]


def still_placed(verdicts: dict[PairKey, Verdict], sources: list[Source]) -> dict[PairKey, Verdict]:
    """The verdicts without the spans of chunks that have changed since they were judged."""
    by_id = {source.evidence.id: source for source in sources}
    return {key: _placed(verdict, by_id.get(key[1])) for key, verdict in verdicts.items()}


def _placed(verdict: Verdict, source: Source | None) -> Verdict:
    """The verdict with the spans that are still valid.

    Spans in the evidence's own chunk are kept, under its current id, when its text is unchanged; spans in another chunk
    when they are still shown sentences.
    """
    if source is None:
        return Verdict(verdict.label, verdict.reason, adds=verdict.adds)
    same = text_hash(source.text) == source.evidence.chunk_hash
    # Chunk ids shift in an edited paper: the evidence's own chunk is the one whose span `start` and `end` repeat.
    own = next((span.chunk_id for span in verdict.spans if (span.start, span.end) == (verdict.start, verdict.end)), "")
    shown = {(sentence.chunk_id, sentence.start, sentence.end) for sentence in source.passage}
    spans: list[DecidingSpan] = []
    for span in verdict.spans:
        if span.chunk_id == own:
            spans += [replace(span, chunk_id=source.evidence.chunk_id)] * same
        elif (span.chunk_id, span.start, span.end) in shown:
            spans.append(span)
    start, end = (verdict.start, verdict.end) if same else (None, None)
    return replace(verdict, start=start, end=end, spans=tuple(spans))
