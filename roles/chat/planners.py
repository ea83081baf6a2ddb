"""The search planners for sections and questions, on a chat model that calls tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import ToolCall, tool_call

from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, WHOLE, Room
from ...prompts import PromptLibrary
from ..inputs import AnswerBrief, SectionBrief
from .prompt_experiment import PLANNER_FIELD_TOKENS, present_experiment
from .prompt_format import fenced, present_evidence, shortened, tokens_of
from .structured_output import repaired_json

# Shares of the context size left after the instructions; the rest is for later turns.
EVIDENCE_SHARE: Final = 0.6
_EXPERIMENT_SHARE: Final = 0.25
_LEAST_ANSWER_TOKENS: Final = 40


class _ToolPlanner:
    """What planners of searches share.

    Args:
        tool_specs: OpenAI function specifications of the tools, which belong to the graph.
        max_tokens: limit for one answer, in tokens of the model.
        room: the server's context size.
    """

    def __init__(
        self,
        caller: ChatCaller,
        prompts: PromptLibrary,
        tool_specs: Sequence[Mapping[str, Any]],
        *,
        max_tokens: int,
        room: Room = UNLIMITED,
    ) -> None:
        self._caller = caller
        self._prompts = prompts
        self._tool_specs = tuple(tool_specs)
        self._max_tokens = max_tokens
        self._room = room


class ChatPlanner(_ToolPlanner):
    """Plans the searches of a section with a chat model."""

    def open(self, brief: SectionBrief) -> list[BaseMessage]:
        """The opening messages. Later turns only append, so that a local server can reuse the prefix."""
        system = self._prompts["planner_system"].render()
        wants = self._prompts[f"planner_needs_{brief.kind}"].render()

        def task(experiment: str = "", evidence: str = "") -> str:
            return self._prompts["planner_task"].render(
                kind=brief.kind,
                needs=wants,
                experiment=experiment,
                library=brief.library,
                evidence=evidence,
                searches_left=brief.searches_left,
            )

        beside = (system, json.dumps(self._tool_specs), task())
        total = self._room.left(WHOLE, *beside, share=_EXPERIMENT_SHARE)
        experiment = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        total = self._room.left(WHOLE, *beside, experiment, share=EVIDENCE_SHARE)
        return [
            SystemMessage(system),
            HumanMessage(task(experiment, present_evidence(brief.needs, brief.sources, total))),
        ]

    async def plan(self, messages: Sequence[BaseMessage], brief: SectionBrief) -> AIMessage:
        """The next turn; each of its tool calls has a unique id and a dict of arguments.

        The tools stay on offer when the budget is spent: removing them would change the prefix, and `guard` answers
        calls beyond the budget.
        """
        return await next_turn(self._caller, messages, self._tool_specs, self._max_tokens, self._room)


async def next_turn(
    caller: ChatCaller,
    messages: Sequence[BaseMessage],
    specs: Sequence[Mapping[str, Any]],
    max_tokens: int,
    room: Room = UNLIMITED,
) -> AIMessage:
    """The model's next turn, with every call in a form that can be answered.

    When the conversation exceeds the context size, its oldest tool answers are shortened; when that is not enough, the
    planner has no further turn.
    """
    total = room.left(WHOLE, json.dumps(specs))
    shown = _within(messages, total)
    if sum(map(_tokens, shown)) > total:
        return AIMessage("The conversation has reached what the server holds.")
    answer = await caller.call(shown, tools=specs, max_tokens=max_tokens)
    return _answerable(answer.message, messages)


def _within(messages: Sequence[BaseMessage], total: int) -> list[BaseMessage]:
    """The messages within `total` tokens, as far as shortening tool answers, oldest first, can achieve it."""
    shown = list(messages)
    for place, message in enumerate(shown):
        over = sum(map(_tokens, shown)) - total
        if over <= 0:
            break
        if isinstance(message, ToolMessage):
            text = str(message.content)
            kept = max(_LEAST_ANSWER_TOKENS, tokens_of(text) - over - _LEAST_ANSWER_TOKENS)
            if kept < tokens_of(text):
                # In its own fence: the cut may have removed the end of the original one.
                content = fenced(shortened(text, kept), "answer, shortened")
                shown[place] = message.model_copy(update={"content": content})
    return shown


def _tokens(message: BaseMessage) -> int:
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return tokens_of(str(message.content)) + (tokens_of(json.dumps(calls)) if calls else 0)


def _answerable(message: AIMessage, earlier: Sequence[BaseMessage]) -> AIMessage:
    """The message with every call in a form that can be answered.

    A call whose arguments are not JSON would be sent back to the server, which refuses such a conversation. Its
    arguments are repaired, or left empty for the tool to reject. Some servers omit ids or reuse them.
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


class ChatQuestionPlanner(_ToolPlanner):
    """Plans the searches for a question with a chat model."""

    def open(self, brief: AnswerBrief) -> list[BaseMessage]:
        """The opening messages; later turns only append."""
        system = self._prompts["question_planner_system"].render()

        def task(evidence: str = "") -> str:
            return self._prompts["question_planner_task"].render(
                question=fenced(brief.sought, "question"),
                library=brief.library,
                evidence=evidence,
                searches_left=brief.searches_left,
            )

        total = self._room.left(WHOLE, system, json.dumps(self._tool_specs), task(), share=EVIDENCE_SHARE)
        return [SystemMessage(system), HumanMessage(task(present_evidence(brief.needs, brief.citable, total)))]

    async def plan(self, messages: Sequence[BaseMessage], brief: AnswerBrief) -> AIMessage:
        """The next turn, with tool calls while something is missing."""
        return await next_turn(self._caller, messages, self._tool_specs, self._max_tokens, self._room)
