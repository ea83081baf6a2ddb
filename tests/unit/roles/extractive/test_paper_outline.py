"""What each section of a whole paper says of the experiment: every section something, and nothing twice."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest

from citeloom.citations.checks.repeated_sentences import without_repeats
from citeloom.experiment import (
    SECTION_KINDS,
    Experiment,
    ExperimentError,
    load_experiment,
    parse_experiment,
    require_fields,
)
from citeloom.roles.extractive.paper_outline import share_of
from citeloom.section_kinds import WRITING_ORDER
from citeloom.text.normalize import plain_wording

ROOT = Path(__file__).resolve().parents[4]
LONG = "{0} tells first how the seeds were pooled. We {0} second that the error was halved. It {0} third leans on that."
SAME = "One and the same sentence stands in every field of it."


def paper_of(experiment: Experiment) -> dict[str, str]:
    texts: dict[str, str] = {}
    said: set[str] = set()
    for kind in WRITING_ORDER:
        sentences = [item.text for paragraph in share_of(kind, experiment, said) for item in paragraph if item.text]
        texts[kind] = " ".join(sentences)
        said |= set(map(plain_wording, sentences))
    return texts


def experiments() -> list[Experiment]:
    """Every mixture of fields that are empty, hold several sentences, or the same sentence as all others."""
    made = []
    for description, results, reasoning, summary in product((SAME, "", "long"), repeat=4):
        for verdict, metrics in (("supported", {}), ("", {"error": 0.5}), ("who knows", {"error": 0.5})):
            fields = {"description": description, "results": results, "reasoning": reasoning, "summary": summary}
            text = {name: LONG.format(name) if value == "long" else value for name, value in fields.items()}
            made.append(
                parse_experiment(
                    {
                        "paper_concept": {"description": text.pop("description"), "open_questions": ["Why is it so?"]},
                        "hypothesis": {"method_combination": "Seeds + temperature", "description": SAME},
                        "execution_result": {"stdout": "error 0.5"},
                        "verdict": verdict,
                        "metrics": metrics,
                        **text,
                    }
                )
            )
    return made


def can_be_written(experiment: Experiment) -> bool:
    try:
        for kind in SECTION_KINDS:
            require_fields(experiment, kind)
    except ExperimentError:
        return False
    return True


def test_whatever_is_stated_each_section_says_something_and_none_repeats_another() -> None:
    tried = 0
    for experiment in experiments():
        if not can_be_written(experiment):
            continue
        tried += 1
        texts = paper_of(experiment)
        assert all(texts.values()), experiment
        earlier: dict[str, str] = {}
        for kind, text in texts.items():
            assert without_repeats(text, earlier) == (text, ()), kind
            earlier[kind] = text
    assert tried > 100


@pytest.fixture
def sample() -> dict[str, str]:
    return paper_of(load_experiment(ROOT / "examples" / "exp.json"))


def test_the_sample_keeps_each_statement_where_a_reader_looks_for_it(sample: dict[str, str]) -> None:
    assert sample["abstract"].startswith("We train 100 networks")
    assert "Two cheap remedies are in use" in sample["introduction"]
    assert "We train 100 networks" not in sample["introduction"]
    assert "On new wearers at the wrist, the calibration error was" in sample["results"]
    assert sample["discussion"].startswith("The experiment supports the hypothesis in part.")
    assert sample["conclusion"].startswith("The hypothesis is supported in part: a five-member seed ensemble")


def test_a_sentence_that_leans_on_another_stays_behind_it(sample: dict[str, str]) -> None:
    before = "Five pooled seeds with one temperature more than halved"
    assert sample["abstract"].index(before) < sample["abstract"].index("The same recipe")
