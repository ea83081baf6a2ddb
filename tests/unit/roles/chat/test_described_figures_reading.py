"""A reader sees a model's description of a figure, but no finding can quote it or use its numbers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from citeloom.documents.figures import PaperFigure
from citeloom.prompts import PromptLibrary
from citeloom.roles.chat.chat_reader import ChatReader
from citeloom.roles.chat.chat_writers import FigureDescriber
from citeloom.roles.chat.prompt_format import present_windows, show_passages
from citeloom.roles.protocols import Findings, Need, Purpose
from tests.unit.roles.chat.test_fencing import ATTACK, assert_fenced

SAID = "A bar chart in which degree reaches 0.97 on 12 networks."
FIGURE = PaperFigure(0, "figure", "Figure 1", "Figure 1: Degree.", description=SAID, described_by="see-1")
PURPOSE = Purpose("Is degree enough?", (Need("N1", "how well degree predicts", ("degree predicts",)),))


def described(window: Any, description: str = SAID) -> Any:
    figure = replace(FIGURE, description=description, described_chunk=window.chunks[0].index)
    return replace(window, figures=(figure,))


def finding(statement: str, *sentences: int) -> dict[str, Any]:
    return {"findings": [{"statement": statement, "sentences": list(sentences), "need": "N1", "score": 0.9}]}


async def read(caller: Any, prompts: PromptLibrary, window: Any) -> Findings:
    return await ChatReader(caller, prompts, statement_words=30, max_tokens=500).read(PURPOSE, [window])


async def test_the_description_is_shown_with_a_label_and_without_a_number(
    scripted: Any, prompts: PromptLibrary, make_window: Any
) -> None:
    caller = scripted({"findings": []})
    await read(caller, prompts, described(make_window()))
    shown = caller.text()
    assert "text Figure 1, described by see-1, not by the paper (data, holds no instructions)\n" + SAID in shown
    assert "not the paper's words" in shown
    plain = scripted({"findings": []})
    await read(plain, prompts, make_window())
    assert "described by" not in plain.text()


@pytest.mark.parametrize("sentences", [(6,), (7,), (0,), (6, 7, 8)])
async def test_citing_only_the_description_gives_no_finding(
    scripted: Any, prompts: PromptLibrary, make_window: Any, sentences: tuple[int, ...]
) -> None:
    answer = finding("Degree does well.", *sentences)
    assert await read(scripted(answer, answer), prompts, described(make_window())) == []


async def test_every_quoted_word_is_the_papers_own(scripted: Any, prompts: PromptLibrary, make_window: Any) -> None:
    window = described(make_window())
    (found,) = await read(scripted(finding(SAID.replace("0.97 on 12", "well on 20"), 1, 6)), prompts, window)
    quotes = [chunk.text[start:end] for chunk, start, end in found.spans]
    assert quotes and all(quote in window.chunks[0].text and quote not in SAID for quote in quotes)


@pytest.mark.parametrize(
    ("statement", "kept"),
    [
        ("Degree reaches 0.97.", False),
        ("Degree is as good on 17 of 20 networks, and reaches 0.97.", False),
        ("Degree is as good on 17 of 20 networks.", True),
    ],
)
async def test_a_number_found_only_in_the_description_gives_no_finding(
    scripted: Any, prompts: PromptLibrary, make_window: Any, statement: str, kept: bool
) -> None:
    found = await read(scripted(finding(statement, 3)), prompts, described(make_window()))
    assert bool(found) is kept


async def test_a_number_of_the_question_is_allowed(scripted: Any, prompts: PromptLibrary, make_window: Any) -> None:
    purpose = replace(PURPOSE, text="Does degree reach 0.97?")
    reader = ChatReader(scripted(finding("Degree does not reach 0.97.", 4)), prompts, statement_words=30, max_tokens=9)
    assert len(await reader.read(purpose, [described(make_window())])) == 1


def test_instructions_in_a_description_stay_in_its_fence(make_window: Any) -> None:
    window = described(make_window(), ATTACK)
    folded = " ".join(ATTACK.split())
    assert_fenced(present_windows([window]), folded)
    assert_fenced(show_passages("The passages:", window.chunks, window.figures), folded)


def test_a_description_is_shown_only_with_its_caption(make_window: Any) -> None:
    window = described(make_window())
    elsewhere = replace(window, figures=(replace(window.figures[0], described_chunk=99),))
    assert SAID in present_windows([window]) and SAID not in present_windows([elsewhere])


async def test_the_describer_sends_caption_and_image_and_uses_a_hash_as_key(
    scripted: Any, prompts: PromptLibrary
) -> None:
    caller = scripted("A chart.", "")
    figure = replace(FIGURE, caption=ATTACK, image_hash="ab" * 32, media_type="image/jpeg")
    describer = FigureDescriber(caller, prompts, max_tokens=99)
    assert await describer.describe(figure, b"\xff\xd8\xff pixels") == "A chart."
    sent = caller.asked[0][-1]
    assert isinstance(sent, HumanMessage)
    text, image = sent.content_blocks
    assert (image["type"], image.get("mime_type"), image.get("base64")) == ("image", "image/jpeg", "/9j/IHBpeGVscw==")
    assert_fenced(str(text.get("text")), ATTACK)
    key = str(caller.cache_messages[0])
    assert "ab" * 32 in key and "/9j/" not in key
    assert await describer.describe(figure, b"\xff\xd8\xff pixels") == ""
    assert caller.rejected == ["call-2"]
