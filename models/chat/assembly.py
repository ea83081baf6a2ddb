"""The five chat-model roles put together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from citeloom.config import RoleName
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.answerer import ChatAnswerer
from citeloom.models.chat.contradictions import ChatContradictionJudge
from citeloom.models.chat.judge import ChatJudge
from citeloom.models.chat.needs import ChatNeedsPlanner
from citeloom.models.chat.planner import ChatPlanner
from citeloom.models.chat.question_planner import ChatQuestionPlanner
from citeloom.models.chat.reader import ChatReader
from citeloom.models.chat.rewriter import ChatRewriter
from citeloom.models.chat.structured import Note, log_note
from citeloom.models.chat.summarizer import ChatSummarizer
from citeloom.models.chat.writer import ChatWriter
from citeloom.models.roles import Answering, NeedsPlanner, Roles
from citeloom.prompts import PromptLibrary

# The summary of a whole paper, against that of one passage.
_PAPER_SUMMARY_FACTOR = 2


def chat_roles(
    callers: Mapping[RoleName, ChatCaller],
    prompts: PromptLibrary,
    fallback: NeedsPlanner,
    *,
    summary_words: int,
    tool_specs: Sequence[Mapping[str, Any]],
    max_output_tokens: int,
    note: Note = log_note,
) -> Roles:
    """All roles on chat models; `callers` holds one caller for each role, which may be the same.

    `fallback` plans the needs where a model gives no valid plan.
    """
    reader = ChatReader(
        callers["reader"], prompts, statement_words=summary_words, max_tokens=max_output_tokens, note=note
    )

    return Roles(
        needs=ChatNeedsPlanner(callers["agent"], prompts, fallback, max_tokens=max_output_tokens, note=note),
        reader=reader,
        planner=ChatPlanner(callers["agent"], prompts, tool_specs, max_tokens=max_output_tokens),
        writer=ChatWriter(callers["writer"], prompts, max_tokens=max_output_tokens),
        judge=ChatJudge(callers["judge"], prompts, max_tokens=max_output_tokens),
        summarizer=ChatSummarizer(
            callers["summarizer"],
            prompts,
            words=_PAPER_SUMMARY_FACTOR * summary_words,
            max_tokens=max_output_tokens,
            note=note,
        ),
        answering=Answering(
            reader,
            ChatQuestionPlanner(callers["agent"], prompts, tool_specs, max_tokens=max_output_tokens),
            ChatAnswerer(callers["writer"], prompts, max_tokens=max_output_tokens),
            ChatRewriter(callers["agent"], prompts, max_tokens=max_output_tokens),
        ),
        comparer=ChatContradictionJudge(callers["judge"], prompts, max_tokens=max_output_tokens),
    )
