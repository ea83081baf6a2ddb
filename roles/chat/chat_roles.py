"""Replaces extractive roles by roles on chat models where these are configured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Any, TypeVar

from ...models.chat_caller import ChatCaller
from ...models.context_size import OF_A_TEXT, OF_A_TURN, Room
from ...prompts import PromptLibrary
from ...settings.config import RoleName
from ..run_roles import Roles
from .chat_cell_reader import ChatCellReader
from .chat_planners import ChatNeedsPlanner, ChatPlanner, ChatRewriter
from .chat_reader import ChatReader, ChatScreener
from .chat_writers import ChatSummarizer, ChatWriter
from .judges import ChatClaimJudge, ChatJudge, SmallClaimJudge
from .model_answers import ChatRole

RoleT = TypeVar("RoleT", bound=ChatRole)
# The length of a paper's summary relative to that of a passage.
_PAPER_SUMMARY_FACTOR = 2


def chat_roles(
    bare: Roles,
    callers: Mapping[RoleName, ChatCaller],
    prompts: PromptLibrary,
    *,
    summary_words: int,
    tool_specs: Sequence[Mapping[str, Any]],
    max_output_tokens: int,
    sizes: Mapping[RoleName, int | None] = MappingProxyType({}),
    small_judge: bool = False,
) -> Roles:
    """Create the roles of a run: backed by a chat model where a caller exists, otherwise taken from `bare`.

    `sizes` are the known context sizes of the roles' servers, in tokens. A `small_judge` answers Yes or No to a
    document and a claim.
    """

    def make(kind: type[RoleT], name: RoleName, part: float = OF_A_TEXT, **more: Any) -> RoleT:
        room = Room.of(sizes.get(name), max_output_tokens, part)
        return kind(callers[name], prompts, max_tokens=room.output, room=room, **more)

    made: dict[str, Any] = {}
    if "agent" in callers:
        made["plan_needs"] = make(ChatNeedsPlanner, "agent", fallback=bare.plan_needs).needs
        made["planner"] = make(ChatPlanner, "agent", OF_A_TURN, tool_specs=tool_specs)
        made["rewrite"] = make(ChatRewriter, "agent").rewrite
    if "reader" in callers:
        made["reader"] = made["answer_reader"] = make(ChatReader, "reader", statement_words=summary_words)
        made |= {"screener": make(ChatScreener, "reader"), "cells": make(ChatCellReader, "reader")}
    if "writer" in callers:
        made["writer"] = make(ChatWriter, "writer")
    if "judge" in callers:
        made |= {"judge": make(ChatJudge, "judge"), "stances": make(ChatCellReader, "judge")}
        made["claims"] = make(SmallClaimJudge if small_judge else ChatClaimJudge, "judge")
    if "summarizer" in callers:
        words = _PAPER_SUMMARY_FACTOR * summary_words
        made["summarize"] = make(ChatSummarizer, "summarizer", words=words).summarize
    return replace(bare, **made)
