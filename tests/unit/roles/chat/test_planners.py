"""The chat planner: its first message, that turns only append, and that every call can be answered."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from citeloom.experiment import SECTION_KINDS
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_planners import ChatPlanner

SPECS = ({"type": "function", "function": {"name": "search_evidence", "parameters": {"type": "object"}}},)


def planner(caller: Any, prompts: PromptLibrary) -> ChatPlanner:
    return ChatPlanner(caller, prompts, SPECS, max_tokens=700)


def test_the_first_message_shows_experiment_evidence_and_budget(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    system, human = planner(scripted(), prompts).open(make_brief(searches_left=3))
    assert (system.type, human.type) == ("system", "human")
    for part in (
        "Degree alone reconstructs 17 of 20 networks.",
        "- E1, chunk zietz2024probability:00007 (2024): Degree is a strong baseline.",
        "Degree is a strong baseline.",
        "3",
        "discussion",
    ):
        assert part in human.text


@pytest.mark.parametrize("kind", SECTION_KINDS)
def test_each_section_is_planned_with_its_own_needs(scripted: Any, make_brief: Any, kind: str) -> None:
    prompts = PromptLibrary()
    _, human = planner(scripted(), prompts).open(make_brief(kind=kind))
    assert prompts[f"planner_needs_{kind}"].body in human.text


async def test_a_turn_sends_the_messages_unchanged_with_the_tools(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    call = tool_call(name="search_evidence", args={"query": "null models"}, id="a1")
    caller = scripted(AIMessage("", tool_calls=[call]), AIMessage("Enough."))
    brief = make_brief()
    plan = planner(caller, prompts)
    messages = plan.open(brief)
    first = await plan.plan(messages)
    assert first.tool_calls == [call]
    later = [*messages, first, ToolMessage("nothing new", tool_call_id="a1")]
    assert not (await plan.plan(later)).tool_calls
    assert caller.asked == [messages, later]
    assert [options["tools"] for options in caller.options] == [SPECS, SPECS]


async def test_tool_calls_with_broken_arguments_or_ids_become_answerable(
    scripted: Any, prompts: PromptLibrary, make_brief: Any
) -> None:
    turn = AIMessage(
        "",
        tool_calls=[
            tool_call(name="search_evidence", args={"query": "a"}, id="x"),
            tool_call(name="search_evidence", args={"query": "b"}, id="x"),
            tool_call(name="made_up", args={}, id=None),
        ],
        invalid_tool_calls=[
            invalid_tool_call(name="search_evidence", args='{"query": "c"', id="y", error="broken"),
            invalid_tool_call(name="search_evidence", args="what?", id="z", error="broken"),
        ],
    )
    plan = planner(scripted(turn, turn), prompts)
    messages = plan.open(make_brief())
    mended = await plan.plan(messages)
    assert [(call["name"], call["args"]) for call in mended.tool_calls] == [
        ("search_evidence", {"query": "a"}),
        ("search_evidence", {"query": "b"}),
        ("made_up", {}),
        ("search_evidence", {"query": "c"}),
        ("search_evidence", {}),
    ]
    assert mended.invalid_tool_calls == []
    again = await plan.plan([*messages, mended])
    ids = [call["id"] for call in (*mended.tool_calls, *again.tool_calls)]
    assert len(set(ids)) == len(ids)
    assert all(ids)
