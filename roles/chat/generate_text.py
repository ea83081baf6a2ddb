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
from ..protocols import Draft
from .clean_output import cut_off, prose
from .prompt_format import PresentedSources, fenced, first_lines, present_lines, shortened
from .stream_section_filter import StreamedProse

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
