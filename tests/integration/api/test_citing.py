"""Papers for a sentence of a text."""

from __future__ import annotations

from pathlib import Path

import pytest

from citeloom import open_library
from citeloom.api import citing
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.sample_library import index_samples

KEYS = ("okafor2022ensembles", "moreau2025machines", "obrien2019seeds", "varga2021calibration")


def test_a_paper_without_a_passage_among_the_nearest_is_not_ranked_lower_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = index_samples(tmp_path / "home", LocalEmbedding(), KEYS)
    monkeypatch.setattr(citing, "_POOL", 1)  # as in a large library, where others have all of the nearest
    sentence = "Most of what pooling twenty networks brings is there with five members."
    with open_library(home.root) as library:
        papers = citing.suggest_citations(library, sentence)["papers"]
    assert papers[0]["key"] == "okafor2022ensembles"
