"""Themes: the phrases of an experiment that sources speak of too, spelled to follow "On ..."."""

from citeloom.experiment import Experiment, Hypothesis, PaperConcept
from citeloom.roles.extractive.themes import core_phrases, experiment_themes, themes_in, vocabulary
from citeloom.text.words import form_of

EXPERIMENT = Experiment(
    paper_concept=PaperConcept(
        title="Node degree as a baseline for edge prediction",
        description="Edge prediction may reward learning node degree alone. Models overfit small graphs.",
        open_questions=["How much does node degree explain of edge prediction?", "Which models overfit?"],
    ),
    hypothesis=Hypothesis(description="Node degree alone predicts gene essentiality in small graphs."),
    summary="Node degree explains edge prediction; gene essentiality remains open. Few models overfit.",
)
SOURCES = [
    ("one", "Node degree is a strong baseline. Edge prediction often rewards node degree."),
    ("two", "Learning node embeddings is costly. Overfitting is common, and overfitting is costly."),
    ("three", "It is essential to measure node degree. Some models overfit."),
]


def labels() -> list[str]:
    return [theme.label for theme in experiment_themes(EXPERIMENT, vocabulary(SOURCES))]


def test_a_shared_phrase_is_a_theme_and_a_chance_neighbour_is_none() -> None:
    assert {"node degree", "edge prediction"} <= set(labels())
    assert "learning node" not in labels()


def test_a_verb_is_named_by_its_noun() -> None:
    assert "overfitting" in labels()
    assert "overfit" not in labels()


def test_an_adjective_of_another_meaning_is_no_match() -> None:
    assert form_of("essentiality") != form_of("essential")
    themes = experiment_themes(EXPERIMENT, vocabulary(SOURCES))
    assert not [theme for theme in themes_in("It is essential to look twice.", themes) if "essential" in theme.label]


def test_a_phrase_covers_the_words_in_it() -> None:
    themes = experiment_themes(EXPERIMENT, vocabulary(SOURCES))
    assert [theme.label for theme in themes_in("Edge prediction is hard.", themes)] == ["edge prediction"]


def test_searches_are_planned_for_what_the_experiment_comes_back_to() -> None:
    assert core_phrases(EXPERIMENT, vocabulary([]))[:2] == ["node degree", "edge prediction"]
