"""The writers of sections and answers on a chat model: they cite by marker and never see a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Final, Generic

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from ...models.context_size import UNLIMITED, WHOLE, Room
from ...models.journal.streaming import TextListener
from ...plurals import counted
from ..protocols import AnswerBrief, BriefT, Draft, FailingSentence, SectionBrief
from .clean_output import CleanStream, extract_answer, prose, was_cut_off
from .prompt_format import (
    EARLIER_TOKENS,
    FRESH_TOKENS,
    PLANNER_FIELD_TOKENS,
    RECALLED_TOKENS,
    SOURCES_TOKENS,
    WRITER_FIELD_TOKENS,
    PresentedSources,
    fence,
    first_lines,
    present_earlier,
    present_experiment,
    present_findings,
    present_frame,
    present_lines,
    present_recalled,
    present_turns,
    shorten,
)
from .sentence_repair import SentenceRepairer

_USUAL: Final = {"brief": 120, "standard": 500, "thorough": 1_000}  # words of an answer
# Shares of a prompt.
_DRAFT_SHARE: Final = 0.2
_PROBLEMS_SHARE: Final = 0.05
# Shares of the context size left after the instructions; the rest is for the findings.
_EXPERIMENT_SHARE: Final = 0.3
_EARLIER_SHARE: Final = 0.25
_TURNS_SHARE: Final = 0.2
_RECALLED_SHARE: Final = 0.35


class _DraftWriter(SentenceRepairer, Generic[BriefT]):
    """Base of the writers of sections and answers; their prompt files begin with `_prompt`."""

    _prompt: ClassVar[str]

    def _task(self, brief: BriefT, *beside: str) -> tuple[str, tuple[str, ...]]:
        """The task, shortened to fit into the context together with `beside`, and notes on what was left out."""
        raise NotImplementedError

    def _length(self, brief: BriefT) -> str:
        return self.prompts[f"depth_{brief.depth}"].render(words=self.room.words(brief.words or _USUAL[brief.depth]))

    def _clean(self, draft: Draft) -> Draft:
        return draft

    def _kept(self, text: str) -> str:
        return self._clean(Draft(prose(text))).text

    async def repair(self, brief: BriefT, draft: Draft, problems: Sequence[str]) -> Draft:
        """Rewrite the draft; returns it unchanged, with a note, if two attempts gave no text."""
        text = shorten(draft.text, self.room.left(WHOLE, share=_DRAFT_SHARE))
        lines = first_lines(problems, self.room.left(WHOLE, share=_PROBLEMS_SHARE))
        request = self.prompts[f"{self._prompt}_repair"].render(
            draft=fence(text, "draft"), problems=present_lines(lines, "problems")
        )
        task, notes = self._task(brief, request)
        # One message that starts like the first request: chat templates of some local models refuse two user
        # messages in a row, and the server has the common prefix in its cache.
        rewritten = self._clean(await self._generate(f"{task}\n\n{request}", notes))
        return rewritten if rewritten.text else replace(draft, notes=(*draft.notes, *rewritten.notes))

    async def _generate(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        """The model's text for a task; empty, with a note, if two attempts gave none."""
        truncated = False
        system, again = (self.prompts[f"{self._prompt}_{part}"].render() for part in ("system", "again"))
        for request in (task, f"{task}\n\n{again}"):
            messages: list[BaseMessage] = [SystemMessage(system), HumanMessage(request)]
            stream = None if listener is None else CleanStream(listener, self._kept)
            answer = await self.caller.call(messages, max_tokens=self.max_tokens, listener=stream)
            if stream is not None:
                stream.finish()
            text, truncated = prose(str(answer.message.text)), was_cut_off(answer.message)
            if text:
                return Draft(text, truncated=truncated, notes=notes)
            await self.caller.reject(answer)
        reason = ", cut off at its output limit before the first word" if truncated else ""
        complaint = f"The writer answered twice without any text{reason}."
        return Draft("", truncated=truncated, notes=(*notes, complaint))


def note_left_out(sources: PresentedSources, room: Room = UNLIMITED) -> tuple[str, ...]:
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


class ChatWriter(_DraftWriter[SectionBrief]):
    """Implements `SectionWriter`."""

    _prompt = "writer"

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; its text is empty when two attempts gave none."""
        return await self._generate(*self._task(brief), listener)

    async def repair_sentences(self, brief: SectionBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`; shows the experiment if a number was not found, since it may come from there."""
        if not any(item.of_number for item in failing):
            return await self.replace_sentences(failing)
        total = self.room.left(WHOLE, self.prompts["repair_system"].render(), share=_EXPERIMENT_SHARE)
        shown = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        return await self.replace_sentences(failing, shown)

    def _task(self, brief: SectionBrief, *beside: str) -> tuple[str, tuple[str, ...]]:
        plan = self.prompts[f"writer_plan_{brief.kind}"].render()

        def task(experiment: str = "", sources: str = "", earlier: str = "") -> str:
            return self.wishes(brief) + self.prompts["writer_task"].render(
                kind=brief.kind,
                depth=self._length(brief),
                plan=plan,
                experiment=experiment,
                sources=sources,
                earlier=earlier,
            )

        known = (self.prompts["writer_system"].render(), task(), *beside)
        total = self.room.left(WHOLE, *known, share=_EXPERIMENT_SHARE)
        experiment = present_experiment(brief.experiment, brief.kind, WRITER_FIELD_TOKENS, total)
        total = self.room.left(EARLIER_TOKENS, *known, share=_EARLIER_SHARE)
        earlier = present_earlier(brief.earlier or (), brief.kind, total)
        if earlier:
            earlier = self.prompts["writer_earlier"].render(sections=earlier)
        total = self.room.left(SOURCES_TOKENS, *known, experiment, earlier, present_frame(brief.needs))
        sources = present_findings(brief.needs, brief.sources, total)
        return task(experiment, sources.text, earlier), note_left_out(sources, self.room)


class ChatAnswerer(_DraftWriter[AnswerBrief]):
    """Implements `AnswerWriter`."""

    _prompt = "answer"

    def _clean(self, draft: Draft) -> Draft:
        return extract_answer(draft)

    def _length(self, brief: AnswerBrief) -> str:
        """The length: as much as the findings hold, unless the user asked for a number of words or a brief answer."""
        if not brief.writable:
            return self.prompts["answer_nearest"].render()
        named = "answer_table" if brief.tabled else "answer_inventory"
        form = [self.prompts[named].render()] if brief.inventory else []
        if brief.words or brief.depth == "brief" or self.room.is_small:
            return "\n\n".join([*form, super()._length(brief)])
        if form:
            return form[0]
        detail = self.prompts["answer_thorough"].render() if brief.depth == "thorough" else ""
        return self.prompts["answer_length"].render(detail=detail).strip()

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The answer; empty when the model finds no answer in the sources, or gave no text in two attempts."""
        return self._clean(await self._generate(*self._task(brief), listener))

    async def repair_sentences(self, brief: AnswerBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        return await self.replace_sentences(failing)

    def _task(self, brief: AnswerBrief, *beside: str) -> tuple[str, tuple[str, ...]]:
        def task(turns: str = "", recalled: str = "", sources: str = "") -> str:
            shown = self.wishes(brief) + self.prompts["answer_task"].render(
                turns=turns,
                recalled=recalled,
                sources=sources,
                question=fence(brief.question, "question"),
                depth=self._length(brief),
            )
            if not brief.feedback:
                return shown
            again = self.prompts["answer_improve"].render(feedback=fence(brief.feedback, "feedback"))
            return f"{shown}\n\n{again}"

        known = (self.prompts["answer_system"].render(), task(), *beside)
        turns = present_turns(brief.turns, self.room.left(WHOLE, *known, share=_TURNS_SHARE))
        recalled = present_recalled(
            brief.recalled, self.room.left(RECALLED_TOKENS, *known, turns, share=_RECALLED_SHARE)
        )
        total = self.room.left(FRESH_TOKENS, *known, turns, recalled.text, present_frame(brief.needs))
        sources = present_findings(brief.needs, brief.sources, total)
        unseen = sources
        if self.room.size is not None:
            unseen = PresentedSources("", (*sources.left_out, *recalled.left_out))
        return task(turns, recalled.text, sources.text), note_left_out(unseen, self.room)
