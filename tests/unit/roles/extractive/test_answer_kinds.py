"""Which sentence may be called the answer to a question: it has its words and the kind of thing that is asked for."""

from __future__ import annotations

import pytest

from citeloom.documents import Paper
from citeloom.roles.extractive.answer_kinds import AnswerKind, answers, asked_for

PAPER = Paper("lee2020edges", "Edges of biomedical networks", ("Ada Lee", "Ben Kim"), 2020)


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("What AUROC did the model reach on known indications?", "number"),
        ("How many patients were in the data set?", "number"),
        ("How often is a finding true?", "number"),
        ("By what percentage does the hazard rise?", "number"),
        ("What is a hetnet?", "definition"),
        ("What are Adaptive Conformal Inference algorithms?", "definition"),
        ("Which algorithm swaps edges?", "name"),
        ("Who wrote the first program?", "name"),
        ("Is the count sensitive to node degree?", "yes-no"),
        ("Why do curved bundles get lost?", "reason"),
        ("How do networks pass messages?", "open"),
    ],
)
def test_the_kind_is_read_from_the_form_of_the_question(question: str, kind: AnswerKind) -> None:
    assert asked_for(question).kind == kind


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            "What AUROC did the model reach on the known indications?",
            "The known indications were ranked high (AUROC = 97.4%)",
        ),
        (
            "How many patients were in the validation data set?",
            "In all, 349 patients were included in the validation data set",
        ),
        (
            "How many hours did 20 epochs take in the study of lynx?",
            "We used 20 epochs which took approximately 10 hours",
        ),
        ("What is a hetnet?", "Hetnets (short for heterogeneous networks) are networks with multiple types of nodes"),
        ("Which algorithm randomly swaps edges?", "Edges are swapped randomly by an algorithm called XSwap"),
        ("Is the path count sensitive to node degree?", "The path count is sensitive to node degree"),
        (
            "Is there a bias of node degree in evaluation?",
            "There are biases related to node degree that evaluation has to consider",
        ),
        (
            "Why are curved bundles lost in tracking?",
            "Curved bundles are lost in tracking because the step is too long",
        ),
        ("How many genes did Lee and Kim analyse?", "Our analysis covers 1,200 genes"),
    ],
)
def test_a_sentence_with_words_and_kind_answers(question: str, sentence: str) -> None:
    assert answers(question, sentence, PAPER)


@pytest.mark.parametrize(
    ("question", "sentence"),
    [
        (
            "What AUROC did the model reach on the known indications?",
            "AUROC is the area under the curve of known indications",
        ),
        ("What AUROC did the model reach for vaccines?", "The model reached an AUROC of 97.4% for known indications"),
        (
            "What AUROC did the model reach on known indications?",
            "Of known indications 755 were ranked high by the model",
        ),
        ("How many hours did 20 epochs take?", "We used 20 epochs of the same hours"),
        ("How many patients smoked?", "In all, 349 patients were included"),
        ("What is a hetnet?", "Hetnets are useful for many things"),
        ("What is Manubot?", "Manubot is still under active development"),
        ("Which algorithm randomly swaps edges?", "The algorithm swaps edges randomly to keep the degree"),
        ("Is MATH value related to survival?", "The relation of MATH value to survival was tested with linear models"),
        ("Why are curved bundles lost in tracking?", "Curved bundles are lost in tracking with all the methods"),
        ("Is the degree-weighted path count sensitive to degree?", "Paths occur by chance, based on node degree alone"),
        ("Why?", "Because it is so"),
        ("水稻种子多久发芽？", "Seeds germinate in 5 days"),
        ("", "Seeds germinate in 5 days"),
    ],
)
def test_other_passages_may_only_bear_on_it(question: str, sentence: str) -> None:
    assert not answers(question, sentence, PAPER)
