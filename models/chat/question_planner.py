"""The search planner for questions, on a chat model that calls tools."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from citeloom.models.briefs import AnswerBrief
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.planner import EVIDENCE_SHARE, next_turn
from citeloom.models.chat.presenting import fenced, present_evidence
from citeloom.models.context_size import UNLIMITED, WHOLE, Room
from citeloom.prompts import PromptLibrary


class ChatQuestionPlanner:
    """Implements `AnswerPlanner`; `tool_specs`, `max_tokens` and `room` as for `ChatPlanner`."""

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

    def open(self, brief: AnswerBrief) -> list[BaseMessage]:
        """What the planner starts from; later turns only append."""
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
        """The next turn, with calls of tools while something is missing."""
        return await next_turn(self._caller, messages, self._tool_specs, self._max_tokens, self._room)
