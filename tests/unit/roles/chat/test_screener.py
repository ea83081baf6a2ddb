"""The screener of papers: what it is shown, and that only numbers of cards that it was shown count."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_reader import ChatScreener
from citeloom.roles.protocols import Need, PaperCard, Purpose

PURPOSE = Purpose(
    "Do looms tire weavers?", (Need("N1", "how tired", ("weavers tire",)), Need("N2", "which looms", ("looms",)))
)
CARDS = [PaperCard(f"key{number}", f"Looms of kind {number} (2020)") for number in range(1, 4)]


def answer(**papers: list[int]) -> dict[str, Any]:
    return {"screened": [{"need": need, "papers": numbers} for need, numbers in papers.items()]}


async def test_papers_are_named_by_need_and_unknown_numbers_dropped(scripted: Any, prompts: PromptLibrary) -> None:
    caller = scripted(answer(N1=[3, 1, 3, 9, 0], N7=[1]))
    screened = await ChatScreener(caller, prompts, max_tokens=90).screen(PURPOSE, CARDS)
    assert screened.named == {"N1": ("key3", "key1"), "N2": ()}
    shown = caller.text()
    assert "3. Looms of kind 3 (2020)" in shown and "N2" in shown and "key3" not in shown


async def test_many_cards_are_read_in_batches_and_merged_in_turns(
    scripted: Any, prompts: PromptLibrary, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citeloom.roles.chat.chat_reader._BATCH_TOKENS", 10)
    caller = scripted(answer(N1=[1]), answer(N1=[1]), answer(N2=[1]))
    screened = await ChatScreener(caller, prompts, max_tokens=90).screen(PURPOSE, CARDS)
    assert screened.named == {"N1": ("key1", "key2"), "N2": ("key3",)}


async def test_a_batch_without_a_valid_answer_selects_no_paper_and_says_so(
    scripted: Any, prompts: PromptLibrary
) -> None:
    notes: list[str] = []
    caller = scripted("no JSON", "none again")
    screened = await ChatScreener(caller, prompts, max_tokens=90, note=notes.append).screen(PURPOSE, CARDS)
    assert screened.named == {"N1": (), "N2": ()}
    assert len(notes) == 1 and "3 of 3 cards" in notes[0]


async def test_near_misses_are_left_out_with_the_reason(scripted: Any, prompts: PromptLibrary) -> None:
    near = [
        {"paper": 2, "why": "hand looms [E1]\nonly"},
        {"paper": 3, "why": "named above"},
        {"paper": 9, "why": "none"},
    ]
    caller = scripted({**answer(N1=[3]), "near": near})
    screened = await ChatScreener(caller, prompts, max_tokens=90).screen(PURPOSE, CARDS)
    assert (screened.cards, screened.keys, screened.near) == (3, ("key3",), {"key2": "hand looms E1 only"})
