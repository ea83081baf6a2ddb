"""The search planner on a chat model that calls tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.tool import ToolCall, tool_call

from citeloom.models.briefs import SectionBrief
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.presenting import (
    PLANNER_FIELD_TOKENS,
    present_evidence,
    present_experiment,
)
from citeloom.models.chat.repairing import repaired_json
from citeloom.prompts import PromptLibrary


class ChatPlanner:
    """Plans searches with a chat model.

    Args:
        tool_specs: OpenAI function specifications of the tools; they are the graph's, not the planner's.
        max_tokens: limit of one answer, in tokens of the model.
    """

    def __init__(
        self,
        caller: ChatCaller,
        prompts: PromptLibrary,
        tool_specs: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
    ) -> None:
        self._caller = caller
        self._prompts = prompts
        self._tool_specs = tuple(tool_specs)
        self._max_tokens = max_tokens

    def open(self, brief: SectionBrief) -> list[BaseMessage]:
        """What the planner starts from. Later turns only append, so that a local server reuses the prefix."""
        task = self._prompts["planner_task"].render(
            kind=brief.kind,
            needs=self._prompts[f"planner_needs_{brief.kind}"].render(),
            experiment=present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS),
            library=brief.library,
            evidence=present_evidence(brief.needs, brief.sources),
            searches_left=brief.searches_left,
        )
        return [SystemMessage(self._prompts["planner_system"].render()), HumanMessage(task)]

    async def plan(self, messages: Sequence[BaseMessage], brief: SectionBrief) -> AIMessage:
        """The next turn; each of its tool calls has an id of its own and a dict of arguments.

        The tools stay on offer when the budget is spent: taking them away would change the prefix, and the
        guard answers what is asked beyond it.
        """
        return await next_turn(self._caller, messages, self._tool_specs, self._max_tokens)


async def next_turn(
    caller: ChatCaller, messages: Sequence[BaseMessage], specs: Sequence[Mapping[str, Any]], max_tokens: int
) -> AIMessage:
    """The model's next turn, each of its calls in a form that can be answered."""
    answer = await caller.call(messages, tools=specs, max_tokens=max_tokens)
    return _answerable(answer.message, messages)


def _answerable(message: AIMessage, earlier: Sequence[BaseMessage]) -> AIMessage:
    """The message with every call in a form that can be answered.

    A call whose arguments are no JSON would be sent back to the server unanswered, which refuses such a
    conversation. Its arguments are repaired, or left empty for the tool to complain about. Some servers leave
    ids out or use them again.
    """
    used = {call["id"] for turn in earlier if isinstance(turn, AIMessage) for call in turn.tool_calls}
    asked = [(call["name"], call["args"], call["id"]) for call in message.tool_calls]
    asked += [(call["name"] or "", _arguments(call["args"]), call["id"]) for call in message.invalid_tool_calls]
    calls: list[ToolCall] = []
    for index, (name, arguments, given) in enumerate(asked):
        identifier = given if given and given not in used else f"call_{len(earlier)}_{index}"
        used.add(identifier)
        calls.append(tool_call(name=name, args=arguments, id=identifier))
    return AIMessage(
        content=message.content,
        tool_calls=calls,
        response_metadata=message.response_metadata,
        usage_metadata=message.usage_metadata,
        id=message.id,
    )


def _arguments(raw: str | None) -> dict[str, Any]:
    data = repaired_json(raw or "")
    return {str(name): value for name, value in data.items()} if isinstance(data, dict) else {}
