"""Needs made by rules: what is searched for and read for holds nothing of the user's own results."""

from __future__ import annotations

import re

import pytest

from citeloom.roles.extractive.planners import searchable

OWN = [
    ("TCGA to CCLE: best 37/71 (52.1%), mean 0.44 ± 0.03 over 5 seeds.", "TCGA to CCLE"),
    ("The hypothesis that dropout helps is refuted here.", "dropout helps"),
    ("Partly supported: ensembles of seeds beat one network by 3.2 points (p < 0.05).", "ensembles of seeds"),
    ("We found that our model gains 1e-3 nats, −0.2 dB and 1,234 tokens.", "model gains"),
    ("AUROC rose from 0.81 to 0.87.", "AUROC rose from to"),
    ("0.5 dropout", "dropout"),
    ("Supported.", ""),
    ("37/71", ""),
]


@pytest.mark.parametrize(("field", "kept"), OWN)
def test_numbers_verdicts_and_here_do_not_reach_a_search(field: str, kept: str) -> None:
    text = searchable(field)
    assert kept in text
    assert not re.search(r"(?<![\w-])\d|refuted|supported|\bhere\b|\bour\b|\bwe\b", text, re.IGNORECASE), text


@pytest.mark.parametrize(
    "field",
    ["BERT-base with k-means++ and F1 scores", "GPT-4 and ResNet50 on CIFAR-10", "node2vec embeddings of graphs"],
)
def test_names_that_hold_numbers_stay(field: str) -> None:
    assert searchable(field) == field
