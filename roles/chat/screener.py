"""Screens papers by their cards on a chat model: which of them may meet the needs."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from typing import Final

from langchain_core.messages import HumanMessage, SystemMessage
from pydantic import Field

from ...models.concurrency import gather_all
from ..protocols import PaperCard, Purpose, ScreenedPapers
from .prompt_format import estimate_tokens, fence, one_line, present_lines
from .structured_output import ChatRole, StructuredAnswer, in_batches

_BATCH_TOKENS: Final = 16_000  # of cards in one call
_MOST_NEAR: Final = 8  # of all batches
_LONGEST_REASON: Final = 160  # characters
_NO_BRACKETS: Final = {ord(bracket): None for bracket in "[]<>`"}  # a reason is shown, and cites nothing


class ScreenedNeed(StructuredAnswer):
    """The papers for one need, by number."""

    need: str = Field(description="The id of the need.")
    papers: list[int] = Field(description="The numbers of the papers that may bear on it, most promising first.")


class NearCase(StructuredAnswer):
    """A paper that comes near but is left out."""

    paper: int = Field(description="Its number.")
    why: str = Field(description="At most fifteen words on what its card shows that it does not meet.")


class Screening(StructuredAnswer):
    """The papers for each need, and those that come near."""

    screened: list[ScreenedNeed] = Field(description="One object for each need.")
    near: list[NearCase] = Field(default_factory=list, description="Five at most, the nearest first.")


class ChatScreener(ChatRole):
    """Implements `PaperScreener`; the role's `note` receives a line if cards were not read."""

    async def screen(self, purpose: Purpose, cards: Sequence[PaperCard]) -> ScreenedPapers:
        """The papers that may bear on the needs, and near ones; a batch without a valid answer names none."""
        most = self.room.left(_BATCH_TOKENS, self.prompts["screener_system"].render(), purpose.text)
        batches = list(in_batches(cards, lambda card: {card.key: estimate_tokens(card.text)}, most, len(cards)))
        answers = await gather_all(self._screen_batch(purpose, batch) for batch in batches)
        read = [(batch, answer) for batch, answer in zip(batches, answers, strict=True) if answer is not None]
        screened = {card.key for batch, _ in read for card in batch}
        if unread := tuple(card.key for card in cards if card.key not in screened):
            self.note(f"{len(unread)} of {len(cards)} cards were not screened: the model gave no valid answer, twice.")
        by_need: dict[str, list[list[str]]] = {}
        near: dict[str, str] = {}
        for batch, answer in read:
            keys = {number: card.key for number, card in enumerate(batch, start=1)}
            for item in answer.screened:
                by_need.setdefault(item.need, []).append([keys[number] for number in item.papers if number in keys])
            for case in answer.near:
                if case.paper in keys:
                    near[keys[case.paper]] = one_line(case.why.translate(_NO_BRACKETS))[:_LONGEST_REASON]
        # The first papers of each batch, then the second ...
        turns = {need.id: zip_longest(*by_need.get(need.id, [])) for need in purpose.needs}
        named = {name: tuple(dict.fromkeys(key for turn in of for key in turn if key)) for name, of in turns.items()}
        kept = {key for keys in named.values() for key in keys}
        near = {key: why for key, why in near.items() if key not in kept}
        return ScreenedPapers(named, dict(list(near.items())[:_MOST_NEAR]), len(screened), unread)

    async def _screen_batch(self, purpose: Purpose, cards: Sequence[PaperCard]) -> Screening | None:
        task = self.prompts["screener_task"].render(
            purpose=fence(purpose.text, "purpose"),
            needs=present_lines([f"{need.id} ({need.asks}): {need.text}" for need in purpose.needs], "needs"),
            cards=fence("\n\n".join(f"{number}. {card.text}" for number, card in enumerate(cards, start=1)), "cards"),
        )
        return await self.ask([SystemMessage(self.prompts["screener_system"].render()), HumanMessage(task)], Screening)
