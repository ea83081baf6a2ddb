"""One seeded run of what `make torture` sweeps: killed at a request, at an answer kept, at a checkpoint, then ended."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.support.killed_runs import KilledRuns, Write, home_with_three_papers
from tests.support.killing_server import KillingServer, Moment

SEED = 4


@pytest.mark.long
def test_a_section_killed_three_times_ends_the_same_and_nothing_is_paid_twice(tmp_path: Path) -> None:
    dice = random.Random(SEED)
    for name in ("template", "undisturbed", "killed"):
        (tmp_path / name).mkdir()
    with KillingServer() as server:
        template = home_with_three_papers(server, tmp_path / "template")
        undisturbed = KilledRuns(server, template, tmp_path / "undisturbed", "discussion")
        assert undisturbed.attempt().asked > 15
        killed = KilledRuns(server, template, tmp_path / "killed", "discussion")
        assert killed.attempt(Moment("", "asked", dice.randint(5, 10))).killed
        assert killed.attempt(Write("answer", "before", dice.randint(2, 5))).killed
        assert killed.attempt(Write("checkpoint,step", "after", dice.randint(1, 3))).killed
        assert not killed.attempt().killed
        killed.check_against(undisturbed)


def test_a_step_whose_output_is_stored_is_not_repeated_when_killed_before_its_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "killed").mkdir()
    with KillingServer() as server:
        killed = KilledRuns(server, home_with_three_papers(server, tmp_path), tmp_path / "killed", "discussion")
        for resumed in ("", "Resuming run discussion-"):
            attempt = killed.attempt(Write("checkpoint,step", "before", 5))
            assert attempt.killed and resumed in attempt.finished.err
