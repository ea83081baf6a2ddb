"""A plan of needs is paid for once for a subject and the papers near to it."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_planners import ChatNeedsPlanner
from citeloom.roles.extractive.statement_needs import plan_needs
from citeloom.roles.protocols import AnswerBrief

BRIEF = AnswerBrief(question="How does degree matter?", sources=(), searches_left=3, words=300)
PLAN = {"needs": [{"need": "what degree explains", "asks": "finding", "queries": ["degree explains edges"]}]}


@pytest.mark.parametrize(
    ("said", "kind"),
    [
        ({"kind": "focused"}, "focused"),
        ({"kind": "Inventory"}, "inventory"),
        ({"kind": "broad"}, None),
        ({}, None),
    ],
)
async def test_the_plan_of_a_question_gives_its_kind_and_ignores_unknown_words(
    scripted: Any, said: dict[str, str], kind: str | None
) -> None:
    planner = ChatNeedsPlanner(scripted(PLAN | said), PromptLibrary(), plan_needs, max_tokens=500)
    assert (await planner.needs(BRIEF, [])).kind == kind


async def planned(scripted: Any, *papers: str) -> Any:
    caller = scripted(PLAN)
    await ChatNeedsPlanner(caller, PromptLibrary(), plan_needs, max_tokens=500).needs(BRIEF, papers)
    return caller


async def test_unrelated_new_papers_do_not_cause_a_new_plan(scripted: Any) -> None:
    few = await planned(scripted, "On degree (2020)", "(57 papers in all)")
    more = await planned(scripted, "On degree (2020)", "(58 papers in all)")
    assert few.cache_messages == more.cache_messages != [None]
    assert "(57 papers in all)" in few.text() and "(58 papers in all)" in more.text()


async def test_a_new_paper_near_to_the_subject_causes_a_new_plan(scripted: Any) -> None:
    few = await planned(scripted, "On degree (2020)", "(57 papers in all)")
    more = await planned(scripted, "On degree (2020)", "(58 papers in all) and degree (2021)", "(58 papers in all)")
    assert few.cache_messages != more.cache_messages
