"""Needs made by rules: searches contain none of the user's own results."""

from __future__ import annotations

import re

import pytest

from citeloom.experiment import Experiment
from citeloom.roles.extractive.statement_needs import split_question, statement_needs, strip_own_results
from citeloom.roles.protocols import Need

OWN = [
    ("TCGA to CCLE: best 37/71 (52.1%), mean 0.44 ± 0.03 over 5 seeds.", "TCGA to CCLE"),
    ("The hypothesis that dropout helps is refuted here.", "dropout helps"),
    ("Partly supported: ensembles of seeds beat one network by 3.2 points (p < 0.05).", "ensembles of seeds"),
    ("We found that our model gains 1e-3 nats, −0.2 dB and 1,234 tokens.", "model gains"),
    ("AUROC rose from 0.81 to 0.87.", "AUROC rose from to"),
    ("0.5 dropout", "dropout"),
    ("The rate was 3.1e-4, and of another run None or null.", "and of another run"),
    ("A drift of 2E-7 per step.", "per step"),
    ("Supported.", ""),
    ("37/71", ""),
]


@pytest.mark.parametrize(("field", "kept"), OWN)
def test_the_users_own_numbers_and_verdicts_do_not_reach_a_search(field: str, kept: str) -> None:
    text = strip_own_results(field)
    assert kept in text
    assert not re.search(
        r"(?<![\w-])\d|e-4|E-7|\bnone\b|null|refuted|supported|\bhere\b|\bour\b|\bwe\b", text, re.IGNORECASE
    ), text


@pytest.mark.parametrize(
    "field",
    ["BERT-base with k-means++ and F1 scores", "GPT-4 and ResNet50 on CIFAR-10", "node2vec embeddings of graphs"],
)
def test_names_that_contain_numbers_are_kept(field: str) -> None:
    assert strip_own_results(field) == field


EXPERIMENT = Experiment.model_validate(
    {
        "paper_concept": {
            "title": "Optimizers of sparse linear models",
            "description": "Sparse models are fitted by many optimizers. Few studies report which one was used.",
            "open_questions": ["Is either better?"],
        },
        "hypothesis": {"description": "Coordinate descent reaches a lower error than gradient descent."},
        "results": "Both reached 0.7.",
    }
)


def test_every_statement_is_searched_and_one_without_a_subject_gets_the_title() -> None:
    needs = statement_needs("introduction", EXPERIMENT)
    assert [need.text for need in needs] == [
        "Sparse models are fitted by many optimizers. Few studies report which one was used.",
        "Is either better?",
        "Coordinate descent reaches a lower error than gradient descent.",
    ]
    assert any("sparse linear models" in query for query in needs[1].queries)
    assert "Sparse models are fitted by many optimizers." in needs[0].queries


def test_a_statement_on_methods_asks_for_methods() -> None:
    fields = {"hypothesis": {"description": "Descent wins.", "method_combination": "coordinate descent with restarts"}}
    needs = statement_needs("methods", Experiment.model_validate({**EXPERIMENT.model_dump(), **fields}))
    assert {need.text: need.asks for need in needs}["coordinate descent with restarts"] == "method"
    assert all(need.asks == "finding" for need in statement_needs("introduction", EXPERIMENT))


def test_a_need_is_named_by_its_text_if_its_searches_are_parts_of_it() -> None:
    text = "Error fell from 0.12 to 0.05. It rose again on new wearers."
    assert Need("N1", text, ("Error fell from to", "It rose again on new wearers.")).search == text
    assert Need("N1", "Is it better?", ("drop in error", "gain")).search == "drop in error; gain"


def test_a_question_is_searched_clause_by_clause() -> None:
    asked = (
        "How fast do they replicate in resting cells, where in the cell wall do they sit, and what limits their growth?"
    )
    assert split_question(asked)[:2] == [
        "How fast do they replicate in resting cells",
        "where in the cell wall do they sit",
    ]


@pytest.mark.parametrize(
    "asked",
    [
        "What does Lee et al. 2022 say about splitting data?",
        "What do Lee et al. (2022) say about splitting data?",
        "What does Fig. 2 of this paper show about calibration?",
        "Which small networks, e.g. MobileNet, are calibrated well by scaling?",
        "Is an ensemble of networks vs. a single network better calibrated?",
        "What did Dr. Smith find about seeds of networks?",
        "What does No. 3 of the rules say about splits?",
        "What does J. Smith say about splitting the data?",
    ],
)
def test_a_question_is_not_cut_at_an_abbreviation(asked: str) -> None:
    assert len(split_question(asked)) == 1


@pytest.mark.parametrize(
    "second", ["Does a single network need more data?", "how many seeds does a calibrated network need?"]
)
def test_a_question_of_two_sentences_has_two_parts(second: str) -> None:
    asked = f"Explain how ensembles of seeds are calibrated. {second}"
    assert split_question(asked)[:2] == ["Explain how ensembles of seeds are calibrated", second.strip("?")]
