"""Markers found without a model: for the topic sentence of a paragraph, and for a number found in another passage."""

from __future__ import annotations

from dataclasses import replace

import pytest

from citeloom.documents.paper_names import in_text_name
from citeloom.drafts.sentence_edits import complete_citations
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Source
from tests.support.citation_samples import make_source

NONE = Experiment.model_validate({"question": "What helps?"})


def source(identifier: str, text: str, key: str) -> Source:
    return replace(make_source(identifier, key), text=text)


SOURCES = [
    source("E1", "Hypnosis gave 12.5% of the smokers a year without smoking.", "varga2020"),
    source("E2", "Of 286 smokers half were hypnotised.", "varga2020"),
    source("E3", "Acupressure was tried by 77 people.", "lind2021"),
]


@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("Hypnosis helps few. It gave 12.5% a year [E1].", "Hypnosis helps few [E1]. It gave 12.5% a year [E1]."),
        (
            "Few were helped [E3]. Hypnosis did little [E1]. So hypnosis is weak.",
            "Few were helped [E3]. Hypnosis did little [E1]. So hypnosis is weak.",
        ),
        (
            "Hypnosis is weak. Few were helped [E3]. Hypnosis did little [E1].",
            "Hypnosis is weak [E1][E3]. Few were helped [E3]. Hypnosis did little [E1].",
        ),
        ("Paris is a city.\n\nIt helps [E1].", "Paris is a city.\n\nIt helps [E1]."),
        ("- Hypnosis. It helps.\n- It helps [E1].", "- Hypnosis. It helps.\n- It helps [E1]."),
        ("It helps [E1]. Paris is a city. It helps [E3].", "It helps [E1]. Paris is a city. It helps [E3]."),
        ("Paris is a city. It helps [E9].", "Paris is a city. It helps [E9]."),
        ("## What helps\n\nWhat helps? It helps [E1].", "## What helps\n\nWhat helps? It helps [E1]."),
    ],
)
def test_the_first_sentence_of_a_paragraph_gets_the_citations_of_the_others(text: str, completed: str) -> None:
    assert complete_citations(text, SOURCES, NONE, answer=True) == completed
    assert complete_citations(completed, SOURCES, NONE, answer=True) == completed
    assert complete_citations(text, SOURCES, NONE, answer=False) == text, "a section has statements of its own"


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("Hypnosis gave 12.5% of 286 smokers a year [E1].", "Hypnosis gave 12.5% of 286 smokers a year [E1][E2]."),
        ("Acupressure was tried by 286 people [E3].", "Acupressure was tried by 286 people [E3]."),
        ("Hypnosis gave 44.1% a year [E1].", "Hypnosis gave 44.1% a year [E1]."),
    ],
)
def test_a_number_from_another_passage_of_a_cited_paper_gets_its_marker(
    text: str, completed: str, answer: bool
) -> None:
    assert complete_citations(text, SOURCES, NONE, answer=answer) == completed


@pytest.mark.parametrize("answer", [True, False])
@pytest.mark.parametrize(
    ("text", "completed"),
    [
        ("It was weak [E3]. {} tried it on many. It helped 12.5% [E1].", "{} tried it on many [E1]."),
        ("It helped 12.5% [E1]. {} wondered why.", "{} wondered why [E1]."),
        ("{} tried it.\n\nIt helped 12.5% [E1].", "{} tried it."),
        ("It was weak [E1]. {} tried it. It helped [E3].", "{} tried it [E1]."),
        ("It helped [E3]. Lindens grow. It was weak [E3].", "Lindens grow. It"),
    ],
)
def test_a_sentence_naming_a_study_gets_the_marker_of_the_next_sentence_about_it(
    text: str, completed: str, answer: bool
) -> None:
    name = in_text_name(SOURCES[0].paper)
    named = [
        replace(item, paper=replace(item.paper, authors=("Ada Lind",), family_names=("Lind",))) for item in SOURCES[2:]
    ]
    assert completed.format(name) in complete_citations(text.format(name), [*SOURCES[:2], *named], NONE, answer=answer)
