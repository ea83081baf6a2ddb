"""The answerer on a chat model: from the evidence alone, citing by marker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from citeloom.models.calls import ChatCaller
from citeloom.models.chat.answer_layout import present_fresh, present_recalled, present_turns
from citeloom.models.chat.drafting import drafted, left_out, mended_or_kept
from citeloom.models.chat.presenting import PresentedSources, fenced, present_lines
from citeloom.models.roles import AnswerBrief, Draft
from citeloom.prompts import PromptLibrary

_DECLINED = re.compile(r"\W*not answered\W*", re.IGNORECASE)
_ANSWER_HEADING = re.compile(r"\A#{1,6}[ \t]*answer[ \t]*:?[ \t]*\n+", re.IGNORECASE)
# A list of references of the model's own; ours is made of what is cited.
_REFERENCES = re.compile(
    r"\n+[ \t]*(?:#{1,6}[ \t]*|\*\*)(?:references|bibliography|sources|works cited)\b[ \t:*]*(?:\n.*)?\Z",
    re.IGNORECASE | re.DOTALL,
)


class ChatAnswerer:
    """Implements `AnswerWriter`; `max_tokens` is the limit of one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def write(self, brief: AnswerBrief) -> Draft:
        """The answer; empty when the model finds that the sources give none, or gave no text, twice."""
        task, sources = self._task(brief)
        return _answer_alone(await self._drafted(task, left_out(sources)))

    async def repair(self, brief: AnswerBrief, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft mended; the draft itself, with a note, when the model gave no text, twice."""
        task, sources = self._task(brief)
        request = self._prompts["answer_repair"].render(
            draft=fenced(draft.text, "draft"), problems=present_lines(problems, "problems")
        )
        return mended_or_kept(draft, _answer_alone(await self._drafted(f"{task}\n\n{request}", left_out(sources))))

    def _task(self, brief: AnswerBrief) -> tuple[str, PresentedSources]:
        sources = present_fresh(brief)
        task = self._prompts["answer_task"].render(
            turns=present_turns(brief.turns),
            recalled=present_recalled(brief.recalled).text,
            sources=sources.text,
            question=fenced(brief.question, "question"),
            words=brief.words,
        )
        return task, sources

    async def _drafted(self, task: str, notes: tuple[str, ...]) -> Draft:
        system, again = self._prompts["answer_system"].render(), self._prompts["answer_again"].render()
        return await drafted(self._caller, system, task, again, max_tokens=self._max_tokens, notes=notes)


def _answer_alone(draft: Draft) -> Draft:
    """The draft without a heading that says "Answer" and without references; empty when it declines to answer."""
    text = _REFERENCES.sub("", _ANSWER_HEADING.sub("", draft.text)).strip()
    return replace(draft, text="" if _DECLINED.fullmatch(text) else text)
