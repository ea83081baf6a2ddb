"""What may be quoted in an answer: whole sentences, or beginnings of them that end with a clause."""

from __future__ import annotations

import pytest

from citeloom.models.extractive.attributable import attributable_passages, is_broken_off
from citeloom.models.extractive.quotable import MAX_WORDS


@pytest.mark.parametrize(
    ("text", "quoted"),
    [
        (
            "We found that degree explains most edges in all networks.",
            "We found that degree explains most edges in all networks",
        ),
        ("However, degree explains most edges of the networks here [3].", None),
        (
            "However, degree explains most edges of all the larger networks [3].",
            "degree explains most edges of all the larger networks",
        ),
        (
            "Samples were sequenced at a depth of 30 reads (Figure 2).",
            "Samples were sequenced at a depth of 30 reads",
        ),
        (
            "Sensitivity was 93.1% and specificity 94.5% over all sites, which is higher than that of any other "
            "classifier that was described in all of the literature that we know of and have read so far with care.",
            "Sensitivity was 93.1% and specificity 94.5% over all sites",
        ),
        ("These methods combine parameters and so they do better than others.", None),
        ("We will describe the method in the part that follows this one.", None),
        ("This was odd.", None),
        (
            "While global methods have advantages over the local ones, they were slower and need more memory, as was "
            "seen on most of the machines of the groups in this field over all of these years of their work.",
            "While global methods have advantages over the local ones, they were slower and need more memory",
        ),
        (
            "To define the usefulness of such scores and to extend them, "
            + "we looked at many other things " * 6
            + ".",
            None,
        ),
        (
            "More recent models such as these message passing networks, "
            + "and many other ones that came later " * 5
            + ".",
            None,
        ),
        (
            "Members of small ensembles differ in the order of their data, which "
            + "matters a lot in practice " * 6
            + ".",
            "Members of small ensembles differ in the order of their data",
        ),
    ],
)
def test_the_words_are_one_run_of_the_source(text: str, quoted: str | None) -> None:
    passages = attributable_passages(text)
    assert [passage.text for passage in passages] == ([quoted] if quoted else [])
    for passage in passages:
        assert text[passage.start : passage.end] == passage.text
        assert len(passage.text.split()) <= MAX_WORDS


@pytest.mark.parametrize(
    ("text", "words", "broken"),
    [
        ("Degree explains most. It does.", "Degree explains most", False),
        ("Degree explains most [3]. It does.", "Degree explains most", False),
        ("Degree explains most (Figure 2) [3].", "Degree explains most", False),
        ("Degree explains most, which is odd.", "Degree explains most", True),
        ("Degree explains most", "Degree explains most", False),
    ],
)
def test_a_sentence_that_goes_on_is_known(text: str, words: str, broken: bool) -> None:
    assert is_broken_off(text, text.index(words) + len(words)) is broken
