"""The judge of support on a chat model."""

from __future__ import annotations

from typing import Literal

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field, field_validator

from citeloom.models.calls import ChatCaller
from citeloom.models.chat.presenting import PASSAGE_TOKENS, fenced, one_line, surroundings, without_markers
from citeloom.models.chat.structured import StructuredAnswer, ask
from citeloom.models.roles import Source, Verdict
from citeloom.prompts import PromptLibrary


class SupportVerdict(StructuredAnswer):
    """What the judge answers; the reason comes first, so that the verdict follows from it."""

    reason: str = Field(description="One line: the words of the passage that decide it, or what is missing.")
    verdict: Literal["supported", "partly", "unsupported", "contradicted"] = Field(
        description="Whether the passage supports the sentence."
    )

    @field_validator("verdict", mode="before")
    @classmethod
    def _in_small_letters(cls, value: object) -> object:
        return value.strip(" .").lower() if isinstance(value, str) else value


class ChatJudge:
    """Judges support with a chat model; `max_tokens` is the limit of one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def judge(self, sentence: str, source: Source) -> Verdict:
        """The verdict on one sentence and one source; "unjudged" when no valid answer came, twice."""
        claim = without_markers(sentence)
        evidence = source.evidence
        passage = surroundings(source.text, evidence.start, evidence.end, PASSAGE_TOKENS)
        task = self._prompts["judge_task"].render(
            sentence=fenced(one_line(claim), "sentence"), passage=fenced(passage, "passage")
        )
        messages = [SystemMessage(self._prompts["judge_system"].render()), HumanMessage(task)]
        answer = await ask(self._caller, self._prompts, messages, SupportVerdict, max_tokens=self._max_tokens)
        if answer is None:
            return Verdict("unjudged", "the judge gave no valid answer, twice")
        return Verdict(answer.verdict, one_line(answer.reason))
