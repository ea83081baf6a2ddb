"""The summarizer of papers on a chat model, used by `ingest --summarize` only."""

from __future__ import annotations

from langchain_core.messages import HumanMessage, SystemMessage

from ...documents import Paper
from ...models.chat_caller import ChatCaller
from ...models.context_size import UNLIMITED, Room
from ...prompts import PromptLibrary
from .clean_output import cut_off, prose
from .prompt_format import PAPER_TOKENS, one_line, present_paper
from .structured_output import Note, log_note


class ChatSummarizer:
    """Summarizes papers with a chat model.

    Args:
        words: requested length of a summary.
        max_tokens: limit for one answer, in tokens of the model.
        room: the server's context size.
        note: receives one line for each paper without a summary by the model.
    """

    def __init__(
        self,
        caller: ChatCaller,
        prompts: PromptLibrary,
        *,
        words: int,
        max_tokens: int,
        note: Note = log_note,
        room: Room = UNLIMITED,
    ) -> None:
        self._caller = caller
        self._prompts = prompts
        self._max_tokens = max_tokens
        self._note = note
        self._room = room
        self._system = SystemMessage(prompts["summarizer_system"].render(words=words))

    async def summarize(self, paper: Paper, text: str) -> str:
        """One paragraph from the beginning of the paper's `text`; the abstract when the model gave none."""
        prompt = self._prompts["summarizer_task"]
        tokens = self._room.left(PAPER_TOKENS, str(self._system.content), prompt.render(paper=""), paper.abstract)
        task = prompt.render(paper=present_paper(paper, text, tokens))
        answer = await self._caller.call([self._system, HumanMessage(task)], max_tokens=self._max_tokens)
        summary = one_line(prose(answer.message))
        if summary and not cut_off(answer.message):
            return summary
        await self._caller.reject(answer)
        self._note(f"Paper {paper.key}: the model gave no complete summary, so its abstract is used.")
        return one_line(paper.abstract)
