"""The section writer on a chat model: it cites by marker and never sees a key."""

from __future__ import annotations

from collections.abc import Sequence

from citeloom.models.briefs import SectionBrief
from citeloom.models.calls import ChatCaller
from citeloom.models.chat.drafting import drafted, left_out, mended_or_kept
from citeloom.models.chat.presenting import (
    PLANNER_FIELD_TOKENS,
    WRITER_FIELD_TOKENS,
    PresentedSources,
    fenced,
    present_earlier,
    present_experiment,
    present_findings,
    present_lines,
)
from citeloom.models.chat.sentence_repair import repaired_sentences
from citeloom.models.listening import TextListener
from citeloom.models.roles import Draft, FailingSentence
from citeloom.prompts import PromptLibrary


class ChatWriter:
    """Writes and repairs sections with a chat model; `max_tokens` is the limit of one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; its text is empty when the model gave none, twice."""
        sources = present_findings(brief.needs, brief.sources)
        return await self._answer(self._task(brief, sources), left_out(sources), listener)

    async def repair(self, brief: SectionBrief, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft written again; the draft itself, with a note, when the model gave no text, twice."""
        sources = present_findings(brief.needs, brief.sources)
        request = self._prompts["writer_repair"].render(
            draft=fenced(draft.text, "draft"), problems=present_lines(problems, "problems")
        )
        # One message that begins like the first request: chat templates of some local models refuse two in a
        # row, and the server has the common part in its cache.
        mended = await self._answer(f"{self._task(brief, sources)}\n\n{request}", left_out(sources))
        return mended_or_kept(draft, mended)

    async def repair_sentences(self, brief: SectionBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """See `SectionWriter`; the experiment is shown where a number was not found, which may be one of its own."""
        numbers = any(item.of_number for item in failing)
        experiment = present_experiment(brief.experiment, brief.kind, PLANNER_FIELD_TOKENS) if numbers else ""
        return await repaired_sentences(
            self._caller, self._prompts, failing, max_tokens=self._max_tokens, experiment=experiment
        )

    def _task(self, brief: SectionBrief, sources: PresentedSources) -> str:
        return self._prompts["writer_task"].render(
            kind=brief.kind,
            words=brief.words,
            plan=self._prompts[f"writer_plan_{brief.kind}"].render(),
            experiment=present_experiment(brief.experiment, brief.kind, WRITER_FIELD_TOKENS),
            sources=sources.text,
            earlier=self._earlier(brief),
        )

    def _earlier(self, brief: SectionBrief) -> str:
        """What the writer is told of a paper's finished sections; empty where it sums none up."""
        sections = present_earlier(brief.earlier or (), brief.kind)
        return self._prompts["writer_earlier"].render(sections=sections) if sections else ""

    async def _answer(self, task: str, notes: tuple[str, ...], listener: TextListener | None = None) -> Draft:
        again = self._prompts["writer_again"].render()
        system = self._prompts["writer_system"].render()
        return await drafted(
            self._caller, system, task, again, max_tokens=self._max_tokens, notes=notes, listener=listener
        )
