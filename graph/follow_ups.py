"""Questions that refer to earlier ones, rewritten so that they stand alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from langgraph.runtime import Runtime

from ..roles.protocols import Turn
from ..tools.questions.validation import plain_question
from .conversation_state import PastTurn
from .events import progress
from .session import Session
from .state import TurnRecord


async def standing_alone(
    asked: str, past: Sequence[TurnRecord | PastTurn], runtime: Runtime[Any], session: Session
) -> str:
    """The question completed from the turns before it; emits how it is understood when that differs."""
    roles = await session.roles(runtime)
    earlier = [Turn(turn["question"], turn["answer"], str(turn.get("asked", ""))) for turn in past]
    question = plain_question(await roles.answering.rewriter.rewrite(asked, earlier))
    if question != asked:
        runtime.stream_writer(progress("rewritten", f"understood as: {question}"))
    return question
