"""The labelled draft with 25 planted faults against the sample papers, without a judge and with one that is right."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.faulty_draft import CASES, score_draft
from citeloom import Settings, open_library
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.checking_model import CheckingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import SAMPLES, index_samples

FAULTS = json.loads((CASES / "faulty_draft.json").read_text(encoding="utf-8"))["faults"]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    keys = [file.stem for file in sorted(SAMPLES.glob("*.md"))]
    return index_samples(tmp_path_factory.mktemp("draft") / "home", LocalEmbedding(), keys).root


@pytest.fixture
def judge() -> Iterator[FakeOpenAI]:
    labels = {fault["words"].lower(): fault["as"][0] for fault in FAULTS if fault["judged"]}
    labels["mean confidence on new persons rose"] = "not_found"  # in the paper that is cited
    with FakeOpenAI(behaviour=CheckingModel(labels)) as running:
        yield running


def test_without_a_judge_18_faults_are_found_and_no_sound_sentence_is_blamed(home: Path) -> None:
    with open_library(home, settings=Settings(_env_file=None)) as library:  # type: ignore[call-arg]
        score = score_draft(library)
    assert not score.missed and len(score.found) == 18 and len(score.left_to_judge) == 7
    assert not score.false


def test_faults_found_by_a_judge_are_listed_beside_wrong_details(home: Path, judge: FakeOpenAI) -> None:
    settings = Settings(_env_file=None, chat_model="fake", chat_base_url=judge.base_url)  # type: ignore[call-arg]
    with open_library(home, settings=settings) as library:
        score = score_draft(library, judged=True)
    assert not score.false
    # This judge names the first sentence of a passage, not the one that cites, and no sentence that needs a citation.
    assert [line.partition(" [")[0] for line in score.missed] == ["another paper's finding", "no citation"]
