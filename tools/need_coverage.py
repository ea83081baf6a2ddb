"""Computes which needs are met by the evidence, which are open, and which were searched for in vain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import Any, Final

from ..roles.protocols import Need, NeedCoverage, Status

STRONG: Final = 0.6  # from this score on a finding helps with its need, rather than being background
_WHOLE: Final = 0.9  # from this score on a finding meets its need alone
_SEVERAL: Final = 2
TRIES: Final = 2  # fruitless searches after which a need counts as searched for in vain


def coverage(
    needs: Sequence[Need], evidence: Sequence[Mapping[str, Any]], queries: Sequence[Mapping[str, Any]]
) -> list[NeedCoverage]:
    """The coverage of each need; `evidence` and `queries` are the records of a run's state.

    A need is met by one finding that meets it alone, or by two that help; it was searched for in vain when two searches
    found neither. Of two records with one id the later one counts.
    """
    planned = {need.id for need in needs}
    evidence = list({record["id"]: record for record in evidence}.values())
    return [_covered(need, planned, evidence, queries) for need in needs]


def _covered(
    need: Need, planned: Set[str], evidence: Sequence[Mapping[str, Any]], queries: Sequence[Mapping[str, Any]]
) -> NeedCoverage:
    searches = [record for record in queries if need.id in record.get("needs", ())]
    # Evidence first found by an earlier section of a paper names a need of that section.
    again = {name for record in searches for name in record["evidence_ids"]}
    serving = sorted(
        (
            record
            for record in evidence
            if need.id in (record.get("need"), *record.get("also", ()))
            or (record["id"] in again and record.get("need") not in planned)
        ),
        key=lambda record: -record["llm_score"],
    )
    strong = [record for record in serving if record["llm_score"] >= STRONG]
    met = len(strong) >= _SEVERAL or any(record["llm_score"] >= _WHOLE for record in strong)
    status: Status = "met" if met else "in vain" if len(searches) >= TRIES and not strong else "open"
    return NeedCoverage(
        need=need,
        evidence=tuple(record["id"] for record in serving),
        papers=len({record["key"] for record in strong}),
        searches=len(searches),
        tried=tuple(record["query"] for record in searches if record["origin"] == "custom"),
        status=status,
    )
