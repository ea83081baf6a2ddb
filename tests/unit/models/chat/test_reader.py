"""The chat reader: quotes are sliced from the chunk by number, and bad numbers are asked for again."""

from __future__ import annotations

from typing import Any

import pytest

from citeloom.documents import Category
from citeloom.models.chat import ChatReader
from citeloom.models.roles import Reading
from citeloom.prompts import PromptLibrary


def answer(first: int, last: int, score: float = 0.8, summary: str = "Degree is a baseline.") -> dict[str, Any]:
    return {"summary": summary, "score": score, "first_sentence": first, "last_sentence": last}


async def read(caller: Any, prompts: PromptLibrary, candidate: Any, notes: list[str]) -> Reading | None:
    reader = ChatReader(caller, prompts, summary_words=10, max_tokens=500, note=notes.append)
    return await reader.read("Is degree enough?", candidate)


@pytest.mark.parametrize(
    ("first", "last", "quote"),
    [
        (1, 1, "Degree alone predicts most edges of a network."),
        (3, 4, "It was as good on 17 of them. On a separate network it failed."),
        (
            1,
            2,
            "Degree alone predicts most edges of a network.\n\nWe compared it with embeddings on 20 networks.",
        ),
        (
            2,
            5,
            "We compared it with embeddings on 20 networks. It was as good on 17 of them."
            " On a separate network it failed.",
        ),
    ],
)
async def test_the_quote_is_sliced_by_number(
    scripted: Any, prompts: PromptLibrary, make_candidate: Any, first: int, last: int, quote: str
) -> None:
    candidate = make_candidate()
    caller = scripted(answer(first, last))
    reading = await read(caller, prompts, candidate, [])
    assert reading is not None
    assert candidate.chunk.text[reading.start : reading.end] == quote
    assert (reading.score, reading.summary) == (0.8, "Degree is a baseline.")


async def test_the_model_sees_query_paper_and_numbered_sentences(
    scripted: Any, prompts: PromptLibrary, make_candidate: Any
) -> None:
    caller = scripted(answer(1, 1))
    await read(caller, prompts, make_candidate(category=Category.RELATED_WORK), [])
    shown = caller.text()
    for line in (
        "Is degree enough?",
        "Title: The probability of edge existence",
        "By: Zietz et al.",
        "Section: Results > Degree as a baseline (on other papers)",
        "\n1: Degree alone predicts most edges of a network.\n2: We compared it",
        "\n5: The code is available.",
    ):
        assert line in shown


@pytest.mark.parametrize(
    ("bad", "complaint"),
    [
        (answer(0, 3), "sentences 0 to 3"),
        (answer(4, 6), "which has 1 to 5"),
        (answer(3, 2), "sentences 3 to 2"),
        (answer(0, 0), "needs the numbers of the sentences"),
        (answer(1, 1, score=1.2), "field score"),
        (answer(1, 1, score=-0.1), "field score"),
        (answer(1, 1, summary=" "), "summary is empty"),
        (answer(-1, 1), "field first_sentence"),
    ],
)
async def test_a_bad_answer_is_asked_for_again_and_rejected(
    scripted: Any, prompts: PromptLibrary, make_candidate: Any, bad: dict[str, Any], complaint: str
) -> None:
    caller, notes = scripted(bad, answer(1, 1)), []
    reading = await read(caller, prompts, make_candidate(), notes)
    assert reading == Reading("Degree is a baseline.", 0.8, 0, 46)
    assert caller.rejected == ["call-1"]
    assert complaint in caller.asked[1][-1].text
    assert notes == []


async def test_two_bad_answers_leave_the_passage_out_and_say_so(
    scripted: Any, prompts: PromptLibrary, make_candidate: Any
) -> None:
    caller, notes = scripted(answer(9, 9), "sorry"), []
    assert await read(caller, prompts, make_candidate(), notes) is None
    assert notes == ["Passage zietz2024probability:00007 was left out: the reader gave no valid answer, twice."]


@pytest.mark.parametrize("irrelevant", [answer(0, 0, score=0), answer(0, 0, score=0.2), answer(7, 9, score=0)])
async def test_nothing_that_bears_on_the_query_is_none_without_a_note(
    scripted: Any, prompts: PromptLibrary, make_candidate: Any, irrelevant: dict[str, Any]
) -> None:
    caller, notes = scripted(irrelevant), []
    assert await read(caller, prompts, make_candidate(), notes) is None
    assert (notes, caller.rejected) == ([], [])


async def test_a_chunk_without_words_is_not_read(scripted: Any, prompts: PromptLibrary, make_candidate: Any) -> None:
    caller = scripted()
    assert await read(caller, prompts, make_candidate(text=" \n | 1 | 2 |\n|---|---|\n"), []) is None
    assert caller.asked == []


async def test_a_summary_that_runs_on_is_cut(scripted: Any, prompts: PromptLibrary, make_candidate: Any) -> None:
    reading = await read(scripted(answer(1, 1, summary="word " * 50)), prompts, make_candidate(), [])
    assert reading is not None
    assert reading.summary == "word " * 20 + "..."


def test_the_shipped_prompt_asks_for_the_length_that_is_set(scripted: Any) -> None:
    assert "at most 37 words" in PromptLibrary()["reader_system"].render(summary_words=37)
