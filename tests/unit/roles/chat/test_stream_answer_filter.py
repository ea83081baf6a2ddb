"""The streamed part of an answer equals the part that is kept."""

from __future__ import annotations

import pytest
from hypothesis import given, settings, strategies as st

from citeloom.roles.chat.model_answers import CleanStream, extract_answer, prose
from citeloom.roles.protocols import Draft
from tests.support.listener import Heard

TEXT = "Degree explains edges [E1].\n\n## Sources of error\n\nReferences to other work differ [E2]."


def kept(text: str) -> str:
    return extract_answer(Draft(prose(text))).text


def heard(draft: str, length: int) -> Heard:
    listener = Heard()
    stream = CleanStream(listener, kept)
    for start in range(0, len(draft), length):
        stream.piece(draft[start : start + length])
    stream.finish()
    return listener


@pytest.mark.parametrize("length", [1, 3, 10, 1000])
@pytest.mark.parametrize(
    "draft",
    [
        TEXT,
        f"## Answer\n\n{TEXT}",
        f"{TEXT}\n\n## References\n\n- [E1] Smith 2020",
        f"{TEXT}\n\n**Bibliography**",
        f"# Answers vary\n\n{TEXT}",
        "NOT ANSWERED",
        "NOT ANSWERED.\n\nThe nearest is a study of looms [E1].",
        "**Not answered.**",
        "Not answered by one paper, but by two [E1].",
        "",
    ],
)
def test_streamed_pieces_joined_equal_the_answer(draft: str, length: int) -> None:
    assert heard(draft, length).text == kept(draft)


PARTS = [
    "# Answer",
    "## References",
    "**Sources",
    "sources",
    "\n",
    "\n\n",
    " ",
    "not",
    " answered",
    ".",
    "word",
    "#",
    ":",
]


@settings(max_examples=400, deadline=None, derandomize=True)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join), st.integers(1, 9))
def test_any_way_of_splitting_the_stream_gives_the_same_text(draft: str, length: int) -> None:
    draft = draft.strip()  # as `prose` leaves it
    assert heard(draft, length).text == kept(draft)


def test_the_models_own_references_are_never_streamed() -> None:
    listener = Heard()
    stream = CleanStream(listener, kept)
    for piece in ("Edges [E1]", ".", "\n\n", "## Ref", "erences", "\n", "- Smith", " 2020"):
        stream.piece(piece)
        assert "Ref" not in listener.text
    stream.finish()
    assert listener.text == "Edges [E1]."
