"""What is left out of a writer's prompt when the findings do not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from citeloom.roles.chat.prompt_format import present_findings
from citeloom.roles.protocols import Need, NeedCoverage


def test_a_need_with_many_findings_crowds_out_no_other(make_source: Any) -> None:
    made = [make_source(f"E{number}") for number in range(1, 9)]
    # The findings of the second need are farther from their query, and help as much.
    sources = [
        replace(item, evidence=replace(item.evidence, llm_score=1.0, combined_score=0.9 if place < 6 else 0.6))
        for place, item in enumerate(made)
    ]
    needs = [
        NeedCoverage(Need("N1", "what degree explains", ("a",)), tuple(f"E{n}" for n in range(1, 7)), 1, 1, (), "met"),
        NeedCoverage(Need("N2", "where it fails", ("b",)), ("E7", "E8"), 1, 1, (), "met"),
    ]
    whole = present_findings(needs, sources).text
    shown = present_findings(needs, sources, len(whole) // 8)
    assert shown.left_out == (), "the weakest are shown without their words"
    repair_words = {block.split("]")[0] for block in shown.text.split("\n[")[1:] if "words:" in block}
    assert {"E7", "E1"} <= repair_words and "E6" not in repair_words
    assert "E6" in present_findings(needs, sources, len(whole) // 20).left_out
