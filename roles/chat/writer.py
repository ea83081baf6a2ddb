"""The section writer on a chat model: it cites by marker and never sees a key."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, WHOLE, Room
from ...models.journal.streaming import TextListener
from ...prompts import PromptLibrary
from ..inputs import SectionBrief
from ..protocols import Draft, FailingSentence
from .generate_text import generate_draft, left_out, repair_request, repaired_or_original
from .prompt_experiment import PLANNER_FIELD_TOKENS, WRITER_FIELD_TOKENS, present_experiment
from .prompt_format import (
    EARLIER_TOKENS,
    SOURCES_TOKENS,
    PresentedSources,
    frame_of,
    present_earlier,
    present_findings,
)
from .repairer import repaired_sentences

# Shares of the context size left after the instructions; the rest is for the findings.
_EXPERIMENT_SHARE: Final = 0.3
_EARLIER_SHARE: Final = 0.25


class ChatWriter:
    """Implements `SectionWriter`; `max_tokens` limits one answer, `room` is the server's context size."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int, room: Room = UNLIMITED) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._room = room

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; its text is empty when two attempts gave none."""
        task, sources = self._task(brief)
        return await self._answer(task, left_out(sources, self._room), listener)

    async def repair(
        self, brief: SectionBrief, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        """The draft rewritten; unchanged, with a note, when the model gave no text in two attempts."""
        request = repair_request(self._prompts["writer_repair"], draft, problems, self._room)
        task, sources = self._task(brief, request)
        # One message that starts like the first request: chat templates of some local models refuse two user
        # messages in a row, and the server has the common prefix in its cache.
        mended = await self._answer(f"{task}\n\n{request}", left_out(sources, self._room))
        return repaired_or_original(draft, mended)

    async def repair_sentences(self, brief: SectionBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`; the experiment is shown when a number was not found, which may be one of its own."""
        numbers = any(item.of_number for item in failing)
        total = self._room.left(WHOLE, self._prompts["repair_system"].render(), share=_EXPERIMENT_SHARE)
        shown = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS, total)
        experiment = shown if numbers else ""
        return await repaired_sentences(
            self._caller,
            self._prompts,
            failing,
            max_tokens=self._max_tokens,
            experiment=experiment,
            room=self._room,
        )

    def _task(self, brief: SectionBrief, *beside: str) -> tuple[str, PresentedSources]:
        """The task and its sources: as many as fit into the context together with the rest and with `beside`."""
        plan = self._prompts[f"writer_plan_{brief.kind}"].render()

        def task(experiment: str = "", sources: str = "", earlier: str = "") -> str:
            return self._prompts["writer_task"].render(
                kind=brief.kind,
                words=self._room.words(brief.words),
                plan=plan,
                experiment=experiment,
                sources=sources,
                earlier=earlier,
            )

        known = (self._prompts["writer_system"].render(), task(), *beside)
        total = self._room.left(WHOLE, *known, share=_EXPERIMENT_SHARE)
        experiment = present_experiment(brief.experiment, brief.kind, WRITER_FIELD_TOKENS, total)
        earlier = self._earlier(brief, self._room.left(EARLIER_TOKENS, *known, share=_EARLIER_SHARE))
        framed = frame_of(brief.needs)
        total = self._room.left(SOURCES_TOKENS, *known, experiment, earlier, framed)
        sources = present_findings(brief.needs, brief.sources, total)
        return task(experiment, sources.text, earlier), sources

    def _earlier(self, brief: SectionBrief, tokens: int) -> str:
        """The finished sections of a paper that this one sums up; empty when it sums none up."""
        sections = present_earlier(brief.earlier or (), brief.kind, tokens)
        return self._prompts["writer_earlier"].render(sections=sections) if sections else ""

    async def _answer(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        again = self._prompts["writer_again"].render()
        system = self._prompts["writer_system"].render()
        return await generate_draft(
            self._caller, system, task, again, max_tokens=self._max_tokens, notes=notes, listener=listener
        )
