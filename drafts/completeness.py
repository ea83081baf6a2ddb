"""Coverage of a run: how many passages the model could read, and how many sentences and pairs it judged."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ..citations.checks.support_findings import PairKey, cited_claims
from ..roles.protocols import Source, Verdict
from .written_draft import searches_of

Coverage = Mapping[str, Mapping[str, int]]
_TOPIC_LABELS: Final = frozenset({"on-topic", "off-topic"})


def few_succeeded(things: str, done: str, total: int, succeeded: int) -> list[str]:
    """A warning if a step failed more often than it succeeded; `done` is the participle ("read", "judged")."""
    few = f"Only {succeeded} of {total} {things} were {done}: the model gave no valid answer for the others"
    return [f"{few}, so this result rests on incomplete input."] if 2 * succeeded < total else []


def coverage_warnings(coverage: Coverage) -> list[str]:
    """Warnings about reading and judging that failed more often than they succeeded."""
    passages, sentences = coverage["passages"], coverage["sentences"]
    # Without a judge sentences are compared by topic, edited ones alone: no judgement failed.
    cited = sentences["cited"] if sentences["judged"] or not sentences["by_topic"] else 0
    return [
        *few_succeeded(
            "passages shown to the model", "read", passages["read"] + passages["unreadable"], passages["read"]
        ),
        *few_succeeded("cited sentences", "judged", cited, sentences["judged"] + sentences["by_topic"]),
    ]


def measure_coverage(
    queries: Iterable[Mapping[str, Any]], text: str, sources: Sequence[Source], verdicts: Mapping[PairKey, Verdict]
) -> dict[str, dict[str, int]]:
    """Coverage of a section or an answer: the passages of its searches, and the cited sentences of its text.

    A text that was not judged has no sentences here; each cited sentence is judged, unjudged, or `by_topic`: compared
    only with the topic of its sources.
    """
    searched = searches_of(queries)
    proposed, shown, lost = (sum(record[name] for record in searched) for name in ("proposed", "shown", "unreadable"))
    claims = cited_claims(text, sources) if verdicts else {}
    pairs = [[(sentence, source.evidence.id) for source in claim.sources] for sentence, claim in claims.items()]
    labels = [{verdicts[pair].label for pair in of_one if pair in verdicts} for of_one in pairs]
    compared = sum(bool(given - {"unjudged"}) for given in labels)
    by_topic = sum(bool(given & _TOPIC_LABELS) and given <= {*_TOPIC_LABELS, "unjudged"} for given in labels)
    return {
        "passages": {"proposed": proposed, "read": shown - lost, "unreadable": lost},
        "sentences": {
            "cited": len(labels),
            "judged": compared - by_topic,
            "unjudged": len(labels) - compared,
            "by_topic": by_topic,
        },
    }


def add_coverage(parts: Iterable[Coverage]) -> dict[str, dict[str, int]]:
    """The coverage of a paper, summed over its sections."""
    total: dict[str, Counter[str]] = {}
    for things, counts in (item for part in parts for item in part.items()):
        total.setdefault(things, Counter()).update(counts)
    return {things: dict(counts) for things, counts in total.items()}


def all_unreadable(coverage: Coverage) -> bool:
    """True when passages were shown to the model and it could not read any of them."""
    return bool(coverage["passages"]["unreadable"]) and not coverage["passages"]["read"]


def coverage_line(coverage: Coverage) -> str:
    """The coverage on one line, that of an answer with its papers."""
    passages, sentences, papers = coverage["passages"], coverage["sentences"], coverage.get("papers")
    screened = f"{papers['screened']} screened by their cards, " if papers and papers["screened"] else ""
    of_papers = f"Papers: {screened}{papers['read']} read, {papers['cited']} cited. " if papers else ""
    outcomes = [f"{sentences['judged']} judged", f"{sentences['unjudged']} not judged"]
    if sentences["by_topic"]:
        outcomes.insert(1, f"{sentences['by_topic']} compared by topic only")
    of_passages = f"{passages['proposed']} proposed, {passages['read']} read, {passages['unreadable']} unreadable"
    of_sentences = ", ".join(outcomes) if sentences["cited"] else "none judged"
    return f"{of_papers}Passages: {of_passages}; cited sentences: {of_sentences}."
