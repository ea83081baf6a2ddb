"""The answerer on a chat model: from the evidence alone, citing by marker."""

from __future__ import annotations

from collections.abc import Sequence

from citeloom.models.briefs import AnswerBrief
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.answer_layout import present_fresh, present_recalled, present_turns
from citeloom.models.chat.drafting import drafted, left_out, mended_or_kept
from citeloom.models.chat.presenting import PresentedSources, fenced, present_lines
from citeloom.models.chat.sentence_repair import repaired_sentences
from citeloom.models.chat.streamed_answer import StreamedAnswer, answer_alone
from citeloom.models.listening import TextListener
from citeloom.models.roles import Draft, FailingSentence
from citeloom.prompts import PromptLibrary


class ChatAnswerer:
    """Implements `AnswerWriter`; `max_tokens` is the limit of one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The answer; empty when the model finds that the sources give none, or gave no text, twice."""
        task, sources = self._task(brief)
        heard = None if listener is None else StreamedAnswer(listener)
        draft = answer_alone(await self._drafted(task, left_out(sources), heard))
        if heard is not None:
            heard.finish()
        return draft

    async def repair(self, brief: AnswerBrief, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft written again; the draft itself, with a note, when the model gave no text, twice."""
        task, sources = self._task(brief)
        request = self._prompts["answer_repair"].render(
            draft=fenced(draft.text, "draft"), problems=present_lines(problems, "problems")
        )
        return mended_or_kept(draft, answer_alone(await self._drafted(f"{task}\n\n{request}", left_out(sources))))

    async def repair_sentences(self, brief: AnswerBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`."""
        return await repaired_sentences(self._caller, self._prompts, failing, max_tokens=self._max_tokens)

    def _task(self, brief: AnswerBrief) -> tuple[str, PresentedSources]:
        sources = present_fresh(brief)
        task = self._prompts["answer_task"].render(
            turns=present_turns(brief.turns),
            recalled=present_recalled(brief.recalled).text,
            sources=sources.text,
            question=fenced(brief.question, "question"),
            words=brief.words,
        )
        if brief.feedback:
            again = self._prompts["answer_improve"].render(feedback=fenced(brief.feedback, "feedback"))
            task = f"{task}\n\n{again}"
        return task, sources

    async def _drafted(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        system, again = self._prompts["answer_system"].render(), self._prompts["answer_again"].render()
        return await drafted(
            self._caller, system, task, again, max_tokens=self._max_tokens, notes=notes, listener=listener
        )
