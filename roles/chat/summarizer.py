"""The summarizer of papers on a chat model, used by `ingest --summarize` only."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage
from langchain_core.messages.content import create_image_block

from ...documents import Paper
from ...documents.figures import PaperFigure
from ...documents.plain_text import plain_text
from ...text.words import one_line
from .clean_output import prose, was_cut_off
from .prompt_format import PAPER_TOKENS, fence, first_words, present_paper, shorten
from .structured_output import ChatRole


@dataclass(frozen=True)
class ChatSummarizer(ChatRole):
    """Summarizes papers with a chat model; `words` is the requested length of a summary."""

    words: int = field(kw_only=True)

    @cached_property
    def _system(self) -> SystemMessage:
        return SystemMessage(self.prompts["summarizer_system"].render(words=self.words))

    async def summarize(self, paper: Paper, text: str) -> str:
        """One paragraph from the beginning of the paper's `text`; the abstract when the model gave none."""
        prompt = self.prompts["summarizer_task"]
        tokens = self.room.left(PAPER_TOKENS, str(self._system.content), prompt.render(paper=""), paper.abstract)
        task = prompt.render(paper=present_paper(paper, text, tokens))
        answer = await self.caller.call([self._system, HumanMessage(task)], max_tokens=self.max_tokens)
        summary = one_line(prose(answer.message))
        if summary and not was_cut_off(answer.message):
            return summary
        await self.caller.reject(answer)
        self.note(f"Paper {paper.key}: the model gave no complete summary, so its abstract is used.")
        return one_line(paper.abstract)


DESCRIPTION_WORDS: Final = 120
_MOST_WORDS: Final = 2 * DESCRIPTION_WORDS
_LONGEST: Final = 12 * _MOST_WORDS  # characters, for answers without blanks
_READ: Final = 40_000  # characters of an answer that are considered
_CAPTION_TOKENS: Final = 600


@dataclass(frozen=True)
class FigureDescriber(ChatRole):
    """Describes one figure at a time."""

    @cached_property
    def _system(self) -> SystemMessage:
        return SystemMessage(self.prompts["describer_system"].render(words=DESCRIPTION_WORDS))

    async def describe(self, figure: PaperFigure, image: bytes) -> str:
        """One paragraph on what the image shows; empty if the model gave none. Raises what the caller raises.

        An empty answer is requested again only by later runs, since a run keeps the answers it has received.
        """
        task = self.prompts["describer_task"].render(
            caption=fence(shorten(figure.caption or figure.name, _CAPTION_TOKENS), "caption")
        )
        # The key contains the image's hash instead of a megabyte of base64.
        key: list[BaseMessage] = [self._system, HumanMessage([_text(task), _text(f"image {figure.image_hash}")])]
        image_block = create_image_block(base64=base64.b64encode(image).decode(), mime_type=figure.media_type)
        messages: list[BaseMessage] = [self._system, HumanMessage([_text(task), dict(image_block)])]
        answer = await self.caller.call(messages, max_tokens=self.max_tokens, cache_messages=key)
        said = extract_description(prose(answer.message))
        if not said:
            await self.caller.reject(answer)
        return said


def extract_description(answer: str) -> str:
    """The description in an answer: one line without markup, cut to a sensible length."""
    plain = one_line(plain_text(answer[:_READ]))
    return first_words(plain[:_LONGEST], _MOST_WORDS).strip()


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}
