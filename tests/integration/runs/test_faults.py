"""A server that fails in 10, 30 and 60% of its calls: a few seeds; tests/acceptance/test_faults.py has fifty."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.fake_clock import FakeClock
from tests.support.faulty_runs import FaultyServer, check_runs, run_all
from tests.support.sample_library import index_samples
from tests.support.word_embedding import WordEmbedding


def test_runs_end_finished_or_paused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("citeloom.models.http.limiter.Clock", FakeClock)
    home = index_samples(tmp_path / ".citeloom", WordEmbedding())
    with FaultyServer() as server:
        runs = run_all(home, server, range(1000, 1006))
        check_runs(runs, server, home)
    assert any(len(run.ends) == 1 for run in runs), "no run came through: nothing is tested of that"
    assert any(len(run.ends) > 1 for run in runs), "no run paused: nothing is tested of that"
