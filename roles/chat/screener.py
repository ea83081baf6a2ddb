"""Screens papers by their cards on a chat model: which of them may meet the needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Final

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field

from ...models.concurrency import gather_all
from ..protocols import PaperCard, Purpose
from .prompt_format import estimate_tokens, fence, present_lines
from .structured_output import ChatRole, StructuredAnswer

_BATCH_TOKENS: Final = 16_000  # of cards in one call


class ScreenedNeed(StructuredAnswer):
    """The papers for one need, by number."""

    need: str = Field(description="The id of the need.")
    papers: list[int] = Field(description="The numbers of the papers that may bear on it, most promising first.")


class Screening(StructuredAnswer):
    """The papers for each need."""

    screened: list[ScreenedNeed] = Field(description="One object for each need.")


class ChatScreener(ChatRole):
    """Implements `PaperScreener`; the role's `note` receives a line if cards were not read."""

    async def screen(self, purpose: Purpose, cards: Sequence[PaperCard]) -> dict[str, tuple[str, ...]]:
        """The keys of the papers that may bear on each need, by its id, most promising first.

        The cards are read in concurrent batches. A batch without a valid answer names no paper.
        """
        batches = list(self._batches(purpose, cards))
        answers = await gather_all(self._screen_batch(purpose, batch) for batch in batches)
        if unread := sum(len(batch) for batch, answer in zip(batches, answers, strict=True) if answer is None):
            self.note(f"{unread} of {len(cards)} cards were not screened: the model gave no valid answer, twice.")
        return {need.id: _merge([answer.get(need.id, []) for answer in answers if answer]) for need in purpose.needs}

    def _batches(self, purpose: Purpose, cards: Sequence[PaperCard]) -> Iterator[list[PaperCard]]:
        most = self.room.left(_BATCH_TOKENS, self.prompts["screener_system"].render(), purpose.text)
        batch: list[PaperCard] = []
        spent = 0
        for card in cards:
            tokens = estimate_tokens(card.text)
            if batch and spent + tokens > most:
                yield batch
                batch, spent = [], 0
            batch.append(card)
            spent += tokens
        if batch:
            yield batch

    async def _screen_batch(self, purpose: Purpose, cards: Sequence[PaperCard]) -> Mapping[str, list[str]] | None:
        task = self.prompts["screener_task"].render(
            purpose=fence(purpose.text, "purpose"),
            needs=present_lines([f"{need.id} ({need.asks}): {need.text}" for need in purpose.needs], "needs"),
            cards=fence("\n\n".join(f"{number}. {card.text}" for number, card in enumerate(cards, start=1)), "cards"),
        )
        messages = [SystemMessage(self.prompts["screener_system"].render()), HumanMessage(task)]
        answer = await self.ask(messages, Screening)
        if answer is None:
            return None
        known = {number: card.key for number, card in enumerate(cards, start=1)}
        return {
            item.need: list(dict.fromkeys(known[number] for number in item.papers if number in known))
            for item in answer.screened
        }


def _merge(rankings: Sequence[Sequence[str]]) -> tuple[str, ...]:
    """Interleave the keys of several batches: the first of each, then the second of each ..."""
    return tuple(key for turn in zip_longest(*rankings) for key in turn if key)
