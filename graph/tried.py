"""How much of what was tried came about: passages that a model could read, sentences and pairs that it judged."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from citeloom.citations.support import PairKey, cited_claims
from citeloom.models.briefs import Source
from citeloom.models.roles import Verdict

Coverage = Mapping[str, Mapping[str, int]]


@dataclass(frozen=True, slots=True)
class Tried:
    """How many things were tried, and with how many it succeeded; `done` is the participle ("read", "judged")."""

    things: str
    done: str
    total: int
    succeeded: int

    def said(self) -> str:
        """Both numbers in words."""
        return f"{self.succeeded} of {self.total} {self.things} were {self.done}"


def coverage_warnings(*tried: Tried) -> list[str]:
    """A line for each kind of thing of which less than half came about; none was nothing to try."""
    return [
        f"Only {item.said()}: the model gave no valid answer for the others, so what is said here rests on a part."
        for item in tried
        if 2 * item.succeeded < item.total
    ]


def coverage_of(
    queries: Iterable[Mapping[str, Any]], text: str, sources: Sequence[Source], verdicts: Mapping[PairKey, Verdict]
) -> dict[str, dict[str, int]]:
    """What was tried for a section or an answer: passages by its searches, and the cited sentences of its text.

    Searches of older runs did not count their passages, and a text that no judge was given has no sentences here.
    """
    counted = [{name: record.get(name, 0) for name in ("proposed", "shown", "unreadable")} for record in queries]
    proposed, shown, unreadable = (sum(item[name] for item in counted) for name in ("proposed", "shown", "unreadable"))
    claims = cited_claims(text, sources) if verdicts else {}
    pairs = [[(sentence, source.evidence.id) for source in claim.sources] for sentence, claim in claims.items()]
    labels = [{verdicts[pair].label for pair in of_one if pair in verdicts} for of_one in pairs]
    judged = sum(bool(given - {"unjudged"}) for given in labels)
    return {
        "passages": {"proposed": proposed, "read": shown - unreadable, "unreadable": unreadable},
        "sentences": {"cited": len(labels), "judged": judged, "unjudged": len(labels) - judged},
    }


def coverage_in_all(parts: Iterable[Coverage]) -> dict[str, dict[str, int]]:
    """The coverage of a paper, of that of its sections."""
    total: dict[str, dict[str, int]] = {}
    for part in parts:
        for things, counts in part.items():
            sums = total.setdefault(things, dict.fromkeys(counts, 0))
            for name, count in counts.items():
                sums[name] += count
    return total


def tried_of(coverage: Coverage) -> list[Tried]:
    """The coverage of a result as what was tried; nothing of a result that has none."""
    if not coverage:
        return []
    passages, sentences = coverage["passages"], coverage["sentences"]
    shown = passages["read"] + passages["unreadable"]
    return [
        Tried("passages shown to the model", "read", shown, passages["read"]),
        Tried("cited sentences", "judged", sentences["cited"], sentences["judged"]),
    ]


def all_unreadable(coverage: Coverage) -> bool:
    """Whether passages were shown to the model and none of them could be read."""
    passages = coverage.get("passages", {"read": 0, "unreadable": 0})
    return bool(passages["unreadable"]) and not passages["read"]


def coverage_line(coverage: Coverage) -> str:
    """What was tried and came about, on one line; empty for a result of an older run."""
    if not coverage:
        return ""
    passages, sentences = coverage["passages"], coverage["sentences"]
    return (
        f"Passages: {passages['proposed']} proposed, {passages['read']} read, {passages['unreadable']} unreadable; "
        f"cited sentences: {sentences['judged']} judged, {sentences['unjudged']} not judged."
    )
