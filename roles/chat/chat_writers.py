"""Requests a text from a chat model: a section, an answer, or a rewritten draft."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, WHOLE, Room
from ...models.journal.streaming import TextListener
from ...plurals import counted
from ...prompts import Prompt
from ..protocols import AnswerBrief, Draft, FailingSentence, SectionBrief
from .clean_output import AnswerFilter, StreamedProse, answer_alone, cut_off, prose
from .prompt_format import (
    EARLIER_TOKENS,
    FRESH_TOKENS,
    PLANNER_FIELD_TOKENS,
    RECALLED_TOKENS,
    SOURCES_TOKENS,
    WRITER_FIELD_TOKENS,
    PresentedSources,
    fenced,
    first_lines,
    frame_of,
    present_earlier,
    present_experiment,
    present_findings,
    present_fresh,
    present_lines,
    present_recalled,
    present_turns,
    shortened,
)
from .sentence_repair import repaired_sentences
from .structured_output import ChatRole

# Shares of a prompt.
_DRAFT_SHARE: Final = 0.2
_PROBLEMS_SHARE: Final = 0.05


async def generate_draft(
    caller: ChatCaller,
    system: str,
    task: str,
    again: str,
    *,
    max_tokens: int,
    notes: tuple[str, ...] = (),
    listener: TextListener | None = None,
) -> Draft:
    """The text that a model writes for a task; empty, with a note, when two attempts gave none.

    Args:
        caller: calls the model.
        system: the system prompt.
        task: the task.
        again: appended to the task when the first answer held no text.
        max_tokens: limit for one answer.
        notes: notes for the user that apply in any case.
        listener: receives the text as it streams.
    """
    truncated = False
    for request in (task, f"{task}\n\n{again}"):
        messages: list[BaseMessage] = [SystemMessage(system), HumanMessage(request)]
        heard = None if listener is None else StreamedProse(listener)
        answer = await caller.call(messages, max_tokens=max_tokens, listener=heard)
        if heard is not None:
            heard.finish()
        text, truncated = prose(answer.message), cut_off(answer.message)
        if text:
            return Draft(text, truncated=truncated, notes=notes)
        await caller.reject(answer)
    reason = ", cut off at its output limit before the first word" if truncated else ""
    complaint = f"The writer answered twice without any text{reason}."
    return Draft("", truncated=truncated, notes=(*notes, complaint))


def repaired_or_original(draft: Draft, retried: Draft) -> Draft:
    """The rewritten draft, or the previous one with the notes of both when the rewriting gave no text."""
    if retried.text:
        return retried
    return replace(draft, notes=(*draft.notes, *retried.notes))


def repair_request(prompt: Prompt, draft: Draft, problems: Sequence[str], room: Room) -> str:
    """The addition to the task when the whole draft is to be rewritten; its parts leave room for the sources."""
    text = shortened(draft.text, room.left(WHOLE, share=_DRAFT_SHARE))
    lines = first_lines(problems, room.left(WHOLE, share=_PROBLEMS_SHARE))
    return prompt.render(draft=fenced(text, "draft"), problems=present_lines(lines, "problems"))


def left_out(sources: PresentedSources, room: Room = UNLIMITED) -> tuple[str, ...]:
    """A note on the sources that were not shown to the model, if any."""
    if room.size is not None and (sources.left_out or room.is_small):
        count = len(sources.left_out)
        were = "was" if count == 1 else "were"
        names = ", ".join(sources.left_out)
        findings = f"{counted(count, 'finding')} {were} left out of the writer's prompt, the weakest first: {names}"
        said = findings if count else "prompts were shortened; no finding was left out"
        return (f"The server holds {room.size:,} tokens: {said}.",)
    if not sources.left_out:
        return ()
    return (
        f"{len(sources.left_out)} of the weakest sources did not fit into the writer's prompt:"
        f" {', '.join(sources.left_out)}.",
    )


# Shares of the context size left after the instructions; the rest is for the findings.
_EXPERIMENT_SHARE: Final = 0.3
_EARLIER_SHARE: Final = 0.25


class ChatWriter(ChatRole):
    """Implements `SectionWriter`."""

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; its text is empty when two attempts gave none."""
        task, sources = self._task(brief)
        return await self._answer(task, left_out(sources, self.room), listener)

    async def repair(
        self, brief: SectionBrief, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        """The draft rewritten; unchanged, with a note, when the model gave no text in two attempts."""
        request = repair_request(self.prompts["writer_repair"], draft, problems, self.room)
        task, sources = self._task(brief, request)
        # One message that starts like the first request: chat templates of some local models refuse two user
        # messages in a row, and the server has the common prefix in its cache.
        mended = await self._answer(f"{task}\n\n{request}", left_out(sources, self.room))
        return repaired_or_original(draft, mended)

    async def repair_sentences(self, brief: SectionBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`; the experiment is shown when a number was not found, which may be one of its own."""
        numbers = any(item.of_number for item in failing)
        total = self.room.left(WHOLE, self.prompts["repair_system"].render(), share=_EXPERIMENT_SHARE)
        shown = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        experiment = shown if numbers else ""
        return await repaired_sentences(
            self.caller,
            self.prompts,
            failing,
            max_tokens=self.max_tokens,
            experiment=experiment,
            room=self.room,
        )

    def _task(self, brief: SectionBrief, *beside: str) -> tuple[str, PresentedSources]:
        """The task and its sources: as many as fit into the context together with the rest and with `beside`."""
        plan = self.prompts[f"writer_plan_{brief.kind}"].render()

        def task(experiment: str = "", sources: str = "", earlier: str = "") -> str:
            return self.prompts["writer_task"].render(
                kind=brief.kind,
                words=self.room.words(brief.words),
                plan=plan,
                experiment=experiment,
                sources=sources,
                earlier=earlier,
            )

        known = (self.prompts["writer_system"].render(), task(), *beside)
        total = self.room.left(WHOLE, *known, share=_EXPERIMENT_SHARE)
        experiment = present_experiment(brief.experiment, brief.kind, WRITER_FIELD_TOKENS, total)
        earlier = self._earlier(brief, self.room.left(EARLIER_TOKENS, *known, share=_EARLIER_SHARE))
        framed = frame_of(brief.needs)
        total = self.room.left(SOURCES_TOKENS, *known, experiment, earlier, framed)
        sources = present_findings(brief.needs, brief.sources, total)
        return task(experiment, sources.text, earlier), sources

    def _earlier(self, brief: SectionBrief, tokens: int) -> str:
        """The finished sections of a paper that this one sums up; empty when it sums none up."""
        sections = present_earlier(brief.earlier or (), brief.kind, tokens)
        return self.prompts["writer_earlier"].render(sections=sections) if sections else ""

    async def _answer(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        again = self.prompts["writer_again"].render()
        system = self.prompts["writer_system"].render()
        return await generate_draft(
            self.caller, system, task, again, max_tokens=self.max_tokens, notes=notes, listener=listener
        )


# Shares of the context size left after the instructions; the rest is for the findings.
_TURNS_SHARE: Final = 0.2
_RECALLED_SHARE: Final = 0.35


class ChatAnswerer(ChatRole):
    """Implements `AnswerWriter`."""

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
        request = repair_request(self.prompts["answer_repair"], draft, problems, self.room)
        task, notes = self._task(brief, request)
        return repaired_or_original(draft, answer_alone(await self._generate(f"{task}\n\n{request}", notes)))

    async def repair_sentences(self, brief: AnswerBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`."""
        return await repaired_sentences(self.caller, self.prompts, failing, max_tokens=self.max_tokens, room=self.room)

    def _task(self, brief: AnswerBrief, *beside: str) -> tuple[str, tuple[str, ...]]:
        """The task, and notes on what was left out so that it fits into the context together with `beside`."""

        def task(turns: str = "", recalled: str = "", sources: str = "") -> str:
            shown = self.prompts["answer_task"].render(
                turns=turns,
                recalled=recalled,
                sources=sources,
                question=fenced(brief.question, "question"),
                words=self.room.words(brief.words),
            )
            if not brief.feedback:
                return shown
            again = self.prompts["answer_improve"].render(feedback=fenced(brief.feedback, "feedback"))
            return f"{shown}\n\n{again}"

        known = (self.prompts["answer_system"].render(), task(), *beside)
        turns = present_turns(brief.turns, self.room.left(WHOLE, *known, share=_TURNS_SHARE))
        recalled = present_recalled(
            brief.recalled, self.room.left(RECALLED_TOKENS, *known, turns, share=_RECALLED_SHARE)
        )
        total = self.room.left(FRESH_TOKENS, *known, turns, recalled.text, frame_of(brief.needs))
        sources = present_fresh(brief, total)
        unseen = sources
        if self.room.size is not None:
            unseen = PresentedSources("", (*sources.left_out, *recalled.left_out))
        return task(turns, recalled.text, sources.text), left_out(unseen, self.room)

    async def _generate(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        system, again = self.prompts["answer_system"].render(), self.prompts["answer_again"].render()
        return await generate_draft(
            self.caller, system, task, again, max_tokens=self.max_tokens, notes=notes, listener=listener
        )
