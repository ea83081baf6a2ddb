"""The summarizer of papers on a chat model, used by `ingest --summarize` only."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Final

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

    async def summarize(self, paper: Paper, text: str) -> str:
        """One paragraph from the beginning of the paper's `text`; the abstract when the model gave none."""
        system = SystemMessage(self.prompts["summarizer_system"].render(words=self.words))
        prompt = self.prompts["summarizer_task"]
        tokens = self.room.left(PAPER_TOKENS, str(system.content), prompt.render(paper=""), paper.abstract)
        task = prompt.render(paper=present_paper(paper, text, tokens))
        answer = await self.caller.call([system, HumanMessage(task)], max_tokens=self.max_tokens)
        summary = one_line(prose(str(answer.message.text)))
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

    async def describe(self, figure: PaperFigure, image: bytes) -> str:
        """One paragraph on what the image shows; empty if the model gave none. Raises what the caller raises.

        An empty answer is requested again only by later runs, since a run keeps the answers it has received.
        """
        system = SystemMessage(self.prompts["describer_system"].render(words=DESCRIPTION_WORDS))
        task = self.prompts["describer_task"].render(
            caption=fence(shorten(figure.caption or figure.name, _CAPTION_TOKENS), "caption")
        )
        # The key contains the image's hash instead of a megabyte of base64.
        said, named = ({"type": "text", "text": text} for text in (task, f"image {figure.image_hash}"))
        key: list[BaseMessage] = [system, HumanMessage([said, named])]
        image_block = create_image_block(base64=base64.b64encode(image).decode(), mime_type=figure.media_type)
        messages: list[BaseMessage] = [system, HumanMessage([said, dict(image_block)])]
        answer = await self.caller.call(messages, max_tokens=self.max_tokens, cache_messages=key)
        plain = one_line(plain_text(prose(str(answer.message.text))[:_READ]))
        shown = first_words(plain[:_LONGEST], _MOST_WORDS).strip()
        if not shown:
            await self.caller.reject(answer)
        return shown
