"""The answerer on a chat model: answers from the evidence alone, citing by marker."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, WHOLE, Room
from ...models.journal.streaming import TextListener
from ...prompts import PromptLibrary
from ..inputs import AnswerBrief
from ..protocols import Draft, FailingSentence
from .generate_text import generate_draft, left_out, repair_request, repaired_or_original
from .prompt_answer_sources import FRESH_TOKENS, RECALLED_TOKENS, present_fresh, present_recalled, present_turns
from .prompt_format import PresentedSources, fenced, frame_of
from .repairer import repaired_sentences
from .stream_answer_filter import AnswerFilter, answer_alone

# Shares of the context size left after the instructions; the rest is for the findings.
_TURNS_SHARE: Final = 0.2
_RECALLED_SHARE: Final = 0.35


class ChatAnswerer:
    """Implements `AnswerWriter`; `max_tokens` limits one answer, `room` is the server's context size."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int, room: Room = UNLIMITED) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._room = room

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The answer; empty when the model finds no answer in the sources, or gave no text in two attempts."""
        task, notes = self._task(brief)
        heard = None if listener is None else AnswerFilter(listener)
        draft = answer_alone(await self._generate(task, notes, heard))
        if heard is not None:
            heard.finish()
        return draft

    async def repair(
        self, brief: AnswerBrief, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        """The draft rewritten; unchanged, with a note, when the model gave no text in two attempts."""
        request = repair_request(self._prompts["answer_repair"], draft, problems, self._room)
        task, notes = self._task(brief, request)
        return repaired_or_original(draft, answer_alone(await self._generate(f"{task}\n\n{request}", notes)))

    async def repair_sentences(self, brief: AnswerBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`."""
        return await repaired_sentences(
            self._caller, self._prompts, failing, max_tokens=self._max_tokens, room=self._room
        )

    def _task(self, brief: AnswerBrief, *beside: str) -> tuple[str, tuple[str, ...]]:
        """The task, and notes on what was left out so that it fits into the context together with `beside`."""

        def task(turns: str = "", recalled: str = "", sources: str = "") -> str:
            shown = self._prompts["answer_task"].render(
                turns=turns,
                recalled=recalled,
                sources=sources,
                question=fenced(brief.question, "question"),
                words=self._room.words(brief.words),
            )
            if not brief.feedback:
                return shown
            again = self._prompts["answer_improve"].render(feedback=fenced(brief.feedback, "feedback"))
            return f"{shown}\n\n{again}"

        known = (self._prompts["answer_system"].render(), task(), *beside)
        turns = present_turns(brief.turns, self._room.left(WHOLE, *known, share=_TURNS_SHARE))
        recalled = present_recalled(
            brief.recalled, self._room.left(RECALLED_TOKENS, *known, turns, share=_RECALLED_SHARE)
        )
        total = self._room.left(FRESH_TOKENS, *known, turns, recalled.text, frame_of(brief.needs))
        sources = present_fresh(brief, total)
        unseen = sources
        if self._room.size is not None:
            unseen = PresentedSources("", (*sources.left_out, *recalled.left_out))
        return task(turns, recalled.text, sources.text), left_out(unseen, self._room)

    async def _generate(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        system, again = self._prompts["answer_system"].render(), self._prompts["answer_again"].render()
        return await generate_draft(
            self._caller, system, task, again, max_tokens=self._max_tokens, notes=notes, listener=listener
        )
