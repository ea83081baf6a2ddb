"""The prose of an answer streamed in pieces equals that of the complete answer."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.roles.chat.model_answers import CleanStream, prose
from tests.support.listener import Heard

TEXT = "Degree explains edges [E1].\n\nIt `is` strong, **very**."
ANSWERS = [
    TEXT,
    f"  {TEXT}\n\n",
    f"Sure, here is the discussion:\n\n{TEXT}",
    f"Here is the section.\n\n# Discussion\n\n{TEXT}",
    f"```markdown\n{TEXT}\n```",
    f"```\nBelow is the text:\n\n## 4. Results\n{TEXT}\n```\n",
    f"**Introduction**\n\n{TEXT}",
    f"Results:\n{TEXT}",
    f"Results show that {TEXT}",
    f"# A heading of its own\n\n{TEXT}",
    f"**Bold** at the start. {TEXT}",
    f"<think>Which one? [E2]</think>\n\n{TEXT}",
    f"Thinking without a tag </think> {TEXT}",
    f"<think>a</think>b</think># Results\n\n{TEXT}",
    "<think>never ends",
    "Results",
    "Here is",
    "",
    "  \n",
    "a < b and </thin and so on",
    "Sure: " + 40 * "a long line that is no announcement ",
]


def heard(answer: str, length: int) -> Heard:
    listener = Heard()
    stream = CleanStream(listener, prose)
    for start in range(0, len(answer), length):
        stream.piece(answer[start : start + length])
    stream.finish()
    return listener


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("length", [1, 2, 5, 11, 1000])
def test_streamed_pieces_joined_equal_the_prose(answer: str, length: int) -> None:
    assert heard(answer, length).text == prose(answer)


PARTS = [
    "Here is the text:\n",
    "# Results\n",
    "Results",
    "\n",
    " ",
    "<think>",
    "</think>",
    "word",
    "[E1].",
    "**",
    "#",
    "`",
]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), st.integers(1, 9))
def test_any_way_of_splitting_the_stream_gives_the_same_text(answer: str, length: int) -> None:
    assert heard(answer, length).text == prose(answer)


def test_prose_is_streamed_as_soon_as_it_starts() -> None:
    listener = Heard()
    stream = CleanStream(listener, prose)
    for piece in ("The", " degree", " of", " a", " node", ". ", "It"):
        stream.piece(piece)
    assert listener.said == ["The", " degree", " of", " a", " node", ".", " It"]


def test_a_restart_is_emitted_only_after_a_piece() -> None:
    listener = Heard()
    stream = CleanStream(listener, prose)
    stream.piece("<think>so")
    stream.restart()
    assert listener.restarts == 0
    stream.piece("Degree explains")
    stream.restart()
    stream.piece("Edges are")
    stream.finish()
    assert listener.restarts == 1
    assert listener.text == "Edges are"
