"""What may be quoted in an answer: whole sentences, or beginnings of them that end with a clause."""

from __future__ import annotations

import pytest

from citeloom.models.extractive.attributable import attributable_passages, tells_of_doing
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
            "Patients with more of it had double the hazard of death (HR, 2.18; [Fig. 4](#pone.g004), left).",
            "Patients with more of it had double the hazard of death",
        ),
        (
            "MATH, taken as a number, was strongly related to survival; each tenth more was a hazard 8.8% greater.",
            "MATH, taken as a number, was strongly related to survival; each tenth more was a hazard 8.8% greater",
        ),
        ("GFR, estimated glomerular filtration rate of the body; CKD, chronic kidney disease of adults.", None),
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
    ("words", "doing"),
    [
        ("We aimed to tell the two groups apart", True),
        ("We thus examined the relation of the two scores", True),
        ("We found that the two groups can be told apart", False),
        ("Degree explains most edges", False),
    ],
)
def test_what_was_done_is_told_from_what_was_found(words: str, doing: bool) -> None:
    assert tells_of_doing(words) is doing
