"""Rewrites follow-up questions with a chat model so that they stand alone."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field

from ...models.chat_caller import ChatCaller
from ...prompts import PromptLibrary
from ..extractive.rewriter import stand_alone_after
from ..inputs import Turn
from .prompt_format import fenced, one_line, shortened
from .structured_output import StructuredAnswer, ask

_TURNS = 4  # a follow-up question refers to recent turns
_ANSWER_TOKENS = 250
_LONGEST = 1000  # characters


class Rewritten(StructuredAnswer):
    """The model's answer."""

    question: str = Field(min_length=3, description="The question as it stands alone.")


class ChatRewriter:
    """Implements `QuestionRewriter`; falls back to rules when two attempts give nothing usable."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def rewrite(self, question: str, earlier: Sequence[Turn]) -> str:
        """See `QuestionRewriter`; the first question of a conversation needs no model."""
        if not earlier:
            return question
        task = self._prompts["rewriter_task"].render(turns=_shown(earlier), question=fenced(question, "question"))
        messages = [SystemMessage(self._prompts["rewriter_system"].render()), HumanMessage(task)]
        answer = await ask(
            self._caller,
            self._prompts,
            messages,
            Rewritten,
            max_tokens=self._max_tokens,
            check=_no_longer_than_one_asks,
        )
        return one_line(answer.question) if answer is not None else stand_alone_after(question, earlier)


def _no_longer_than_one_asks(answer: Rewritten) -> None:
    if len(answer.question) > _LONGEST:
        raise ValueError(f"field question: it has {len(answer.question)} characters; a question has some 200")


def _shown(earlier: Sequence[Turn]) -> str:
    """The last questions, and the answer to the latest: a follow-up question may refer to it."""
    lines = [f"Question: {one_line(turn.question)}" for turn in earlier[-_TURNS:]]
    return fenced("\n".join([*lines, f"Answer to the last:\n{shortened(earlier[-1].answer, _ANSWER_TOKENS)}"]), "turns")
