"""The section writer on a chat model: it cites by marker and never sees a key."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from citeloom.models.calls import ChatCaller
from citeloom.models.chat.answers import cut_off, prose
from citeloom.models.chat.presenting import (
    WRITER_FIELD_TOKENS,
    PresentedSources,
    fenced,
    present_earlier,
    present_experiment,
    present_lines,
    present_sources,
)
from citeloom.models.roles import Draft, SectionBrief
from citeloom.prompts import PromptLibrary


class ChatWriter:
    """Writes and repairs sections with a chat model; `max_tokens` is the limit of one answer."""

    def __init__(self, caller: ChatCaller, prompts: PromptLibrary, *, max_tokens: int) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens

    async def write(self, brief: SectionBrief) -> Draft:
        """The section; its text is empty when the model gave none, twice."""
        sources = present_sources(brief.sources)
        return await self._answer(self._task(brief, sources), _left_out(sources))

    async def repair(self, brief: SectionBrief, draft: Draft, problems: Sequence[str]) -> Draft:
        """The draft mended; the draft itself, with a note, when the model gave no text, twice."""
        sources = present_sources(brief.sources)
        request = self._prompts["writer_repair"].render(
            draft=fenced(draft.text, "draft"), problems=present_lines(problems, "problems")
        )
        # One message that begins like the first request: chat templates of some local models refuse two in a
        # row, and the server has the common part in its cache.
        mended = await self._answer(f"{self._task(brief, sources)}\n\n{request}", _left_out(sources))
        if mended.text:
            return mended
        return replace(draft, notes=(*draft.notes, *mended.notes))

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

    async def _answer(self, task: str, notes: tuple[str, ...]) -> Draft:
        system = SystemMessage(self._prompts["writer_system"].render())
        truncated = False
        for request in (task, f"{task}\n\n{self._prompts['writer_again'].render()}"):
            messages: list[BaseMessage] = [system, HumanMessage(request)]
            answer = await self._caller.call(messages, max_tokens=self._max_tokens)
            text, truncated = prose(answer.message), cut_off(answer.message)
            if text:
                return Draft(text, truncated=truncated, notes=notes)
            await self._caller.reject(answer)
        reason = ", cut off at its output limit before the first word" if truncated else ""
        complaint = f"The writer answered twice without any text{reason}."
        return Draft("", truncated=truncated, notes=(*notes, complaint))


def _left_out(sources: PresentedSources) -> tuple[str, ...]:
    if not sources.left_out:
        return ()
    return (
        f"{len(sources.left_out)} of the weakest sources did not fit into the writer's prompt:"
        f" {', '.join(sources.left_out)}.",
    )
