"""Fifty seeded runs against a server that fails in 10, 30 or 60% of its calls, in eight ways and a ninth.

429 with Retry-After, 500, no answer in time, a connection cut off or closed, JSON that breaks off, nothing at all,
10 MB, and JSON of another schema. Each run ends with a section or paused; a healthy server then finishes every one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from citeloom.stores.home import Home
from tests.support.fake_clock import FakeClock
from tests.support.faulty_runs import FaultyServer, Run, check_runs, run_all
from tests.support.sample_library import index_samples
from tests.support.word_embedding import WordEmbedding

SEEDS = range(50)


@dataclass(frozen=True)
class Done:
    """All runs, what the server met, and the home they share."""

    runs: list[Run]
    server: FaultyServer
    home: Home


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Done]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("citeloom.models.http.limiter.Clock", FakeClock)
        home = index_samples(tmp_path_factory.mktemp("faults") / ".citeloom", WordEmbedding())
        with FaultyServer() as server:
            yield Done(run_all(home, server, SEEDS), server, home)


def test_every_run_ends_finished_or_paused_and_none_is_lost(done: Done) -> None:
    check_runs(done.runs, done.server, done.home)


def test_every_fault_rate_occurred(done: Done) -> None:
    paused = Counter(run.model.rpartition("-")[2] for run in done.runs if len(run.ends) > 1)
    at_once = Counter(run.model.rpartition("-")[2] for run in done.runs if len(run.ends) == 1)
    assert at_once["10"] > 0 and at_once["30"] > 0, "no run came through"
    assert paused["60"] > 0, "no run paused"
    print(f"paused {dict(paused)}, came through at once {dict(at_once)}")  # noqa: T201
