"""What may be quoted in an answer: whole sentences, or beginnings of them that lose nothing that limits them."""

from __future__ import annotations

import pytest

from citeloom.roles.extractive.attributable_sentences import attributable_passages, tells_of_doing
from citeloom.roles.extractive.quotable_sentences import MAX_ATTRIBUTED


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
            "Samples were sequenced at a depth of 30 reads (Figure 2)",
        ),
        (
            "Sensitivity was 93.1% and specificity 94.5% over all sites, which is higher than what any other "
            "classifier reached " + "that was ever described or seen anywhere " * 6 + ".",
            "Sensitivity was 93.1% and specificity 94.5% over all sites",
        ),
        ("These methods combine parameters and so they do better than others.", None),
        ("We will describe the method in the part that follows this one.", None),
        ("This was odd.", None),
        (
            "Patients with more of it had double the hazard of death (HR, 2.18; [Fig. 4](#pone.g004), left).",
            "Patients with more of it had double the hazard of death (HR, 2.18; [Fig. 4](#pone.g004), left)",
        ),
        (
            "MATH, taken as a number, was strongly related to survival; each tenth more was a hazard 8.8% greater.",
            "MATH, taken as a number, was strongly related to survival; each tenth more was a hazard 8.8% greater",
        ),
        ("GFR, estimated glomerular filtration rate of the body; CKD, chronic kidney disease of adults.", None),
        (
            "While global methods have advantages over the local ones, they were slower and need more memory, and "
            + "the machines were seen again and again " * 6
            + ".",
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
            + "matters a lot anywhere " * 12
            + ".",
            "Members of small ensembles differ in the order of their data",
        ),
        (
            "On average, degree explains most edges of all the larger networks [3].",
            "On average, degree explains most edges of all the larger networks",
        ),
        (
            "Known indications were ranked very high by the model (AUROC = 97.4%, Figure @fig:performance).",
            "Known indications were ranked very high by the model (AUROC = 97.4%, Figure @fig:performance)",
        ),
        (
            "There are also biases of node degree that have to be considered [@url:https://example.org/xswap/].",
            "There are also biases of node degree that have to be considered",
        ),
        (
            "All analyses were checked for convergence with Tracer [23].",
            "All analyses were checked for convergence with Tracer",
        ),
    ],
)
def test_the_words_are_one_run_of_the_source(text: str, quoted: str | None) -> None:
    passages = attributable_passages(text)
    assert [passage.text for passage in passages] == ([quoted] if quoted else [])
    for passage in passages:
        assert text[passage.start : passage.end] == passage.text
        assert len(passage.text.split()) <= MAX_ATTRIBUTED


_CLAIM = "Paths of the given type tended to occur more frequently between treatments than between other pairs of nodes"


@pytest.mark.parametrize(
    "clause",
    [
        "after accounting for different levels of connectivity (node degrees) in the hetnet",
        "but not in the permuted networks, where no path of any type was more frequent than others",
        "unless the network was restricted to edges that were known before the year of the trials",
        "which holds only for types of path that were found in all of the five networks at hand",
        "(only where the nodes had more than five edges of the types that were looked at by others)",
    ],
)
@pytest.mark.parametrize("padding", [0, 9])
def test_a_clause_that_limits_what_is_said_is_never_cut_off(clause: str, padding: int) -> None:
    text = f"{_CLAIM}, {clause}{' of all the parts of the library' * padding}."
    passages = attributable_passages(text)
    assert all(passage.text == text[:-1] for passage in passages)
    assert bool(passages) is (padding == 0)


@pytest.mark.parametrize(
    ("words", "doing"),
    [
        ("We aimed to tell the two groups apart", True),
        ("We thus examined the relation of the two scores", True),
        ("We found that the two groups can be told apart", False),
        ("Degree explains most edges", False),
    ],
)
def test_what_was_done_is_distinguished_from_what_was_found(words: str, doing: bool) -> None:
    assert tells_of_doing(words) is doing
