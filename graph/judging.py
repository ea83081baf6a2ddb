"""Having the judge compare cited sentences with their sources, each pair once in a run."""

from __future__ import annotations

from citeloom.citations.support import PairKey, cited_pairs
from citeloom.documents import text_hash
from citeloom.graph.state import RunState, VerdictRecord
from citeloom.models.briefs import Source
from citeloom.models.roles import SupportJudge, Verdict


def verdicts_of(state: RunState) -> dict[PairKey, Verdict]:
    """All verdicts of the run so far, by sentence and evidence."""
    return {
        (record["sentence"], record["evidence_id"]): Verdict(
            record["label"], record["reason"], record["start"], record["end"]
        )
        for record in state.get("verdicts", [])
    }


async def judged(
    judge: SupportJudge, text: str, sources: list[Source], known: dict[PairKey, Verdict]
) -> list[VerdictRecord]:
    """The verdicts that a text still lacks, in reading order; those in `known` are not asked for again."""
    new = {key: pair for key, pair in cited_pairs(text, sources).items() if key not in known}
    verdicts = await judge.judge(list(new.values()))
    return [
        {
            "sentence": sentence,
            "evidence_id": identifier,
            "label": verdict.label,
            "reason": verdict.reason,
            "start": verdict.start,
            "end": verdict.end,
        }
        for (sentence, identifier), verdict in zip(new, verdicts, strict=True)
    ]


def still_placed(verdicts: dict[PairKey, Verdict], sources: list[Source]) -> dict[PairKey, Verdict]:
    """The verdicts without the words of a chunk that has changed since it was judged."""
    same = {source.evidence.id for source in sources if text_hash(source.text) == source.evidence.chunk_hash}
    return {
        key: verdict if key[1] in same else Verdict(verdict.label, verdict.reason) for key, verdict in verdicts.items()
    }
