"""Which sentences may be quoted: every row was taken wrongly, or missed, by an earlier rule."""

import pytest
from hypothesis import given, strategies as st

from citeloom.roles.extractive.passage_scores import MAX_WORDS, Genre, genre_of, is_quotable, quotable_passages

FIT = [
    "Deep networks trained on few samples overfit unless their capacity is limited by regularization",
    "Permuted networks are useful for computing the performance that degree alone would give",
    "A temperature fitted on unseen wearers repairs most of the overconfidence of small classifiers",
    "In noisy data we found that deep networks overfit unless their capacity is limited",
    "Accuracy fell from 0.851 on the wrist to 0.598 in the trouser pocket and 0.537 on the ankle",
    "Ensembles of five networks gave most of the gain that twenty networks would have given",
    "The network contains 47,031 nodes of 11 types (Table) and 2,250,197 edges of 24 types (see Fig. 2A)",
]
UNFIT = {
    "leans on the sentence before": "This shows that deep networks on few samples overfit without regularization",
    "steers the reader": "However, deep networks trained on few samples overfit unless they are regularized",
    "adverb that joins": "Surprisingly, deep networks trained on few samples overfit unless they are regularized",
    "points to a figure": "Deep networks trained on few samples overfit unless they are regularized as Figure 3 shows",
    "points to a table": "Deep networks trained on few samples overfit as the second column of Table 2 shows",
    "a citation inside": "Deep networks [@doi:10.1000/1] trained on few samples overfit unless they are regularized",
    "names other authors": "Deep networks trained by Smith et al. overfit unless their capacity is limited",
    "a definite thing of its own paper": "The inference is achieved by optimizing a penalized likelihood over groups",
    "a caption": "The red dots and red regression line represent preprints that moved between the two groups",
    "a caption of points": "Red dots represent the samples that moved between both groups after the second round",
    "a caption of bars": "Bar plots (left) show the number of pairs of genes for each tissue that was predicted",
    "a caption of a panel": "Classic learning of many tasks (left) gives each task a head on shared representations",
    "bars of errors": "Error bars and shaded regions show bootstrapped intervals of ninety-five percent",
    "an axis without marks": "The y axis shows the area under the curve of both models for all the samples",
    "an axis": "The _x_-axis shows the difference in accuracy from a model that was trained on permuted labels",
    "points to what follows": "By simulation it was shown how much, for the sample sizes that are common in sensing",
    "a panel letter": "E, Heatmap of mutational signatures for patients with at least one hypermutant tumor",
    "a formula": "Deep networks trained with $n < 100$ samples overfit unless their capacity is limited",
    "a question": "Why do deep networks trained on few samples overfit when they are not regularized?",
    "a plan": "In the next section we will discuss why deep networks overfit unless they are regularized",
    "leads to a formula": "If the features of nodes alone are known, the model looks like this",
    "too short": "Deep networks overfit on few samples",
    "too long": "Deep networks " + "that are trained on few samples " * 8 + "overfit",
    "half a bracket": "Deep networks trained on few samples (and noisy labels overfit unless they are regularized",
    "a table row": "Accuracy 0.81 0.83 0.85 0.87 0.89 0.91 0.93 of 5 networks and 20 networks here",
}


@pytest.mark.parametrize("sentence", FIT)
def test_a_self_contained_finding_is_quotable(sentence: str) -> None:
    assert is_quotable(sentence)


@pytest.mark.parametrize("sentence", UNFIT.values(), ids=UNFIT.keys())
def test_a_sentence_that_depends_on_others_is_not_quotable(sentence: str) -> None:
    assert not is_quotable(sentence)


GENRES: list[tuple[Genre, str]] = [
    ("announcement", "A common use of supervised learning on networks is the task of predicting missing edges"),
    ("announcement", "We study ensembles of one to twenty small networks for activity recognition with a wrist sensor"),
    ("announcement", "For an image-level task, we want to predict the class of the object that is shown"),
    ("announcement", "Overfitting refers to models that learn the noise of their training data as well"),
    ("announcement", "We need a way to collect information from neighbours and give it to the nodes"),
    ("announcement", "Points of such a map typically represent stations and lines connections between them"),
    ("announcement", "We thus present a quantitative rule, a new hallmark of the growth of cities in dry regions"),
    (
        "procedure",
        "We trained a model on sites and then sampled to measure how well more sites improved over our baseline",
    ),
    ("procedure", "The map allows us to compare both towns to determine if the level of traffic relates to income"),
    ("procedure", "We trained a baseline model on the labels of the experts and then sampled from the rest"),
    ("procedure", "Temperatures were fitted on wrist windows of the calibration persons of each rotation"),
    ("detail", "Gene nodes have 302 distinct degrees for their edges, resulting in 91,204 pairs of degrees"),
    ("other", "Small networks had 35% lower calibration error than large ones on new wearers"),
    ("other", "The scaled ensemble had 2.5 times the accuracy of a single network"),
    ("detail", "The network contains 47,031 nodes of 11 types and 2,250,197 edges of 24 types"),
    ("other", "We trained two models and found that the larger one was less accurate on unseen sites"),
    ("other", "Random rotation raised accuracy in the untrained pocket position from 0.571 to 0.688"),
    ("other", "Methods that were tuned on one site cannot be expected to work on another without labels"),
    ("other", "Soil moisture probes are buried in heavy clay at two depths in every second field"),
]


@pytest.mark.parametrize(("genre", "sentence"), GENRES)
def test_aims_definitions_counts_and_procedures_are_told_from_findings(genre: Genre, sentence: str) -> None:
    assert genre_of(sentence) == genre


@pytest.mark.parametrize(
    ("genre", "sentence"),
    [
        ("announcement", "Reusing labels across types would substantially reduce the number of labels to be written"),
        ("procedure", "We report the area under the curve of both models for each of the samples"),
        ("procedure", "The data set is split into 75% for training and 25% for evaluation"),
    ],
)
def test_wishes_and_settings_are_not_findings(genre: Genre, sentence: str) -> None:
    assert genre_of(sentence) == genre


@pytest.mark.parametrize(
    "closing", [".", " [@doi:10.1/x; @key].", r" \[1, 2\].", "^12^.", " [3,4].", " (Fig. 3A).", " (Figure @fig:nodes)."]
)
def test_the_closing_citation_stays_outside_the_quotation(closing: str) -> None:
    text = f"It began so. {FIT[0]}{closing} And so it went on."
    assert [text[passage.start : passage.end] for passage in quotable_passages(text)] == [FIT[0]]


def test_a_statement_set_in_bold_is_quoted_without_its_asterisks() -> None:
    said = "Corollary 1: The smaller the studies in a field, the less likely its findings are to be true"
    (passage,) = quotable_passages(f"**{said}.** Small samples mean smaller power.")
    assert passage.text == said and passage.start == 2


def test_a_sentence_wrapped_over_lines_is_judged_as_one_line() -> None:
    assert not quotable_passages(
        UNFIT["a definite thing of its own paper"].replace("The inference", "The\ninference") + "."
    )
    wrapped = FIT[0].replace(" overfit", "\noverfit")
    assert [passage.text for passage in quotable_passages(f"{wrapped}.")] == [wrapped]


@given(st.lists(st.sampled_from([*FIT, *UNFIT.values()]), max_size=8), st.sampled_from([" ", "\n", "\n\n"]))
def test_passages_are_exact_slices_and_never_too_long(sentences: list[str], between: str) -> None:
    text = between.join(f"{sentence}." for sentence in sentences)
    for passage in quotable_passages(text):
        assert text[passage.start : passage.end] == passage.text
        assert len(passage.text.split()) <= MAX_WORDS
