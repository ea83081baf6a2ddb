"""Coverage of a run: how many passages the model could read, and how many sentences and pairs it judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ..citations.checks.support_findings import PairKey, cited_claims
from ..roles.protocols import Source, Verdict

Coverage = Mapping[str, Mapping[str, int | None]]  # None: not counted
NOT_COUNTED: Final = "not counted (searched by an older version)"


@dataclass(frozen=True, slots=True)
class Tried:
    """How many things were attempted and how many succeeded; `done` is the participle ("read", "judged")."""

    things: str
    done: str
    total: int
    succeeded: int

    def said(self) -> str:
        """Both numbers in words."""
        return f"{self.succeeded} of {self.total} {self.things} were {self.done}"


def coverage_warnings(*tried: Tried) -> list[str]:
    """A warning for each kind of thing of which fewer than half succeeded; nothing attempted is no warning."""
    return [
        f"Only {item.said()}: the model gave no valid answer for the others, so this result rests on incomplete input."
        for item in tried
        if 2 * item.succeeded < item.total
    ]


_TOPIC_LABELS: Final = frozenset({"on-topic", "off-topic"})


def coverage_of(
    queries: Iterable[Mapping[str, Any]], text: str, sources: Sequence[Source], verdicts: Mapping[PairKey, Verdict]
) -> dict[str, dict[str, int | None]]:
    """Coverage of a section or an answer: the passages of its searches, and the cited sentences of its text.

    Passage counts are None for searches of older runs, which did not count them. A text that was not judged has no
    sentences here; each of the cited ones is judged, unjudged, or `by_topic`: compared with the topic of its sources.
    """
    searched = [record for record in queries if record["origin"] != "default" or record["evidence_ids"]]
    claims = cited_claims(text, sources) if verdicts else {}
    pairs = [[(sentence, source.evidence.id) for source in claim.sources] for sentence, claim in claims.items()]
    labels = [{verdicts[pair].label for pair in of_one if pair in verdicts} for of_one in pairs]
    compared = sum(bool(given - {"unjudged"}) for given in labels)
    by_topic = sum(bool(given & _TOPIC_LABELS) and given <= {*_TOPIC_LABELS, "unjudged"} for given in labels)
    return {
        "passages": _passages(searched),
        "sentences": {
            "cited": len(labels),
            "judged": compared - by_topic,
            "unjudged": len(labels) - compared,
            "by_topic": by_topic,
        },
    }


def _passages(searched: Sequence[Mapping[str, Any]]) -> dict[str, int | None]:
    if any("shown" not in record for record in searched):
        return {"proposed": None, "read": None, "unreadable": None}
    proposed, shown, lost = (sum(record[name] for record in searched) for name in ("proposed", "shown", "unreadable"))
    return {"proposed": proposed, "read": shown - lost, "unreadable": lost}


def coverage_in_all(parts: Iterable[Coverage]) -> dict[str, dict[str, int | None]]:
    """The coverage of a paper, summed over its sections; a count that one section lacks is None for the whole."""
    total: dict[str, dict[str, int | None]] = {}
    for part in parts:
        for things, counts in part.items():
            sums = total.setdefault(things, dict.fromkeys(counts, 0))
            for name, count in counts.items():
                before = sums[name]
                sums[name] = None if before is None or count is None else before + count
    return total


def tried_of(coverage: Coverage) -> list[Tried]:
    """The coverage of a result as `Tried` counts; empty for a result without coverage."""
    if not coverage:
        return []
    passages, sentences = coverage["passages"], coverage["sentences"]
    read, unreadable = passages["read"], passages["unreadable"]
    tried = []
    if read is not None and unreadable is not None:
        tried.append(Tried("passages shown to the model", "read", read + unreadable, read))
    # What a run without a judge compares by topic is not a judgement that failed.
    judged = (sentences["judged"] or 0) + (sentences.get("by_topic") or 0)
    return [*tried, Tried("cited sentences", "judged", sentences["cited"] or 0, judged)]


def all_unreadable(coverage: Coverage) -> bool:
    """True when passages were shown to the model and it could not read any of them."""
    passages = coverage.get("passages", {"read": 0, "unreadable": 0})
    return bool(passages["unreadable"]) and not passages["read"]


def coverage_line(coverage: Coverage) -> str:
    """The coverage on one line; empty for a result of an older run."""
    if not coverage:
        return ""
    passages, sentences = coverage["passages"], coverage["sentences"]
    counts = f"{passages['proposed']} proposed, {passages['read']} read, {passages['unreadable']} unreadable"
    by_topic = sentences.get("by_topic") or 0  # not counted in results of older versions
    outcomes = [f"{sentences['judged']} judged", f"{sentences['unjudged']} not judged"]
    if by_topic:
        outcomes.insert(1, f"{by_topic} compared by topic only")
    read = NOT_COUNTED if passages["read"] is None else counts
    return f"Passages: {read}; cited sentences: {', '.join(outcomes) if sentences['cited'] else 'none judged'}."
