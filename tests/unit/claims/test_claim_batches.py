"""Claims are asked about in the same batches after a kill, so that the journal's answers fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from citeloom.claims.claim_passages import choose_sentences, given_passages
from citeloom.claims.claim_verdicts import JudgedClaim, Progress, judge_claims
from citeloom.claims.detail_checks import whole_source
from citeloom.documents import Paper
from citeloom.roles.protocols import CitedClaim, Verdict

WORDS = "Looms scale well in the north. "


class Judge:
    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    async def judge(self, claims: Sequence[CitedClaim]) -> list[tuple[Verdict, ...]]:
        self.asked.append([claim.sentence for claim in claims])
        return [tuple(Verdict("supported") for _ in claim.sources) for claim in claims]


class Memory:
    def __init__(self) -> None:
        self.known: dict[str, Any] = {}

    def claim_key(self, claim: JudgedClaim) -> str:
        return claim.cited.sentence

    async def recall(self, keys: Sequence[str]) -> dict[str, Any]:
        return {key: self.known[key] for key in keys if key in self.known}

    async def remember(self, made: Mapping[str, Any]) -> None:
        self.known |= made


def claim(number: int, size: int) -> JudgedClaim:
    text = f"Claim {number}."
    passages = choose_sentences(WORDS, given_passages([{"text": WORDS * size}]), 10**6)
    return JudgedClaim(CitedClaim(text, tuple(item.source("E1") for item in passages)), tuple(passages))


@pytest.mark.parametrize("remembered", [0, 1, 2])
async def test_after_a_loss_the_remaining_claims_are_asked_in_the_same_batches(remembered: int) -> None:
    claims = [claim(number, size) for number, size in enumerate((10, 1_100, 10, 10, 1_100, 10))]
    first, memory = Judge(), Memory()
    await judge_claims(first, claims, memory, Progress())  # type: ignore[arg-type]
    assert len(first.asked) >= 3
    memory.known = {key: memory.known[key] for key in first.asked[remembered]}
    again = Judge()
    await judge_claims(again, claims, memory, Progress())  # type: ignore[arg-type]
    assert again.asked == [batch for number, batch in enumerate(first.asked) if number != remembered]


def test_a_reason_names_a_paper_once_for_several_of_its_passages() -> None:
    papers = [Paper(key, "Looms") for key in ("lee2019", "lee2019", "wu2020")]
    sources = tuple(whole_source(paper, WORDS, f"E{number}") for number, paper in enumerate(papers, 1))
    claims = JudgedClaim(CitedClaim("Looms rest [E1][E2][E3].", sources), ())
    reasons = {
        "[E1] and [E2] say so, and [E3] not.": "lee2019 say so, and wu2020 not.",
        "It is in [E1], [E2] and [E3].": "It is in lee2019 and wu2020.",
        "[E2]: all rest.": "lee2019: all rest.",
    }
    named = claims.name_papers([Verdict("supported", reason) for reason in reasons])
    assert [verdict.reason for verdict in named] == list(reasons.values())
