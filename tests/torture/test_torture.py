"""`kill -9` at every write of a section's run and at random moments of a paper's: `make torture`.

CITELOOM_TORTURE_BACKEND=postgres puts the homes into a PostgreSQL server, as `make engines` installs one.
Whatever was on disk is never paid for again, only calls in flight are lost, and the files are the same, to the byte.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.copied_homes import Address, new_database
from tests.support.killed_runs import EVERY_WRITE, SECTIONS, KilledRuns, Write, home_with_three_papers
from tests.support.killing_server import KillingServer, Moment
from tests.support.postgres_server import running_server

MOMENTS = int(os.environ.get("CITELOOM_TORTURE_MOMENTS", "60"))
# 1 kills at every write; n goes through the run n times faster.
STEP = int(os.environ.get("CITELOOM_TORTURE_STEP", "1"))
BACKEND = os.environ.get("CITELOOM_TORTURE_BACKEND", "folder")


@pytest.fixture(scope="module")
def server() -> Iterator[KillingServer]:
    with KillingServer() as running:
        yield running


@pytest.fixture(scope="module")
def template(server: KillingServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Address]:
    folder = tmp_path_factory.mktemp("template")
    if BACKEND == "folder":
        yield home_with_three_papers(server, folder)
        return
    with running_server() as url:
        yield home_with_three_papers(server, folder, new_database(url))


@pytest.fixture(scope="module")
def section(server: KillingServer, template: Address, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(KilledRuns(server, template, tmp_path_factory.mktemp("section"), "discussion"))


@pytest.fixture(scope="module")
def paper(server: KillingServer, template: Address, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    return Undisturbed(KilledRuns(server, template, tmp_path_factory.mktemp("paper"), "paper"))


class Undisturbed:
    """A run that nobody kills: what it left, its calls, and how many writes it made."""

    def __init__(self, runs: KilledRuns) -> None:
        self.runs = runs
        done = runs.attempt(Write(EVERY_WRITE, "after", 0))
        assert done.lost == 0 and done.asked > 10
        self.writes = int(done.finished.err.rsplit("writes: ", 1)[1])


@pytest.mark.parametrize("side", ["before", "after"])
@pytest.mark.parametrize("writes", ["answer", "checkpoint,step"])
def test_a_section_killed_at_each_write_in_turn_ends_the_same(
    writes: str, side: str, section: Undisturbed, server: KillingServer, template: Address, tmp_path: Path
) -> None:
    """A chain: each attempt makes one write more. Killed before a write it is at its second: the first is kept."""
    runs = KilledRuns(server, template, tmp_path, "discussion")
    attempts = runs.chain(Write(writes, side, STEP if side == "after" else STEP + 1))
    assert len(attempts) > 3
    runs.check_against(section.runs)
    report(f"section, {side} each of {writes}", runs)


@pytest.mark.parametrize("side", ["before", "after"])
def test_a_section_killed_at_the_register_or_any_file_ends_the_same(
    side: str, section: Undisturbed, server: KillingServer, template: Address, tmp_path: Path
) -> None:
    """Each attempt writes the files again, so each gets one write further than the one before it."""
    runs = KilledRuns(server, template, tmp_path, "discussion")
    number = 1
    while runs.attempt(Write("register,file", side, number)).killed:
        number += 1
    assert number > 4
    runs.check_against(section.runs)
    report(f"section, {side} each of register,file", runs)


@pytest.mark.parametrize("seed", range(MOMENTS))
def test_a_paper_killed_at_a_random_moment_ends_the_same(
    seed: int, paper: Undisturbed, server: KillingServer, template: Address, tmp_path: Path
) -> None:
    """One moment in each part of the run: a request, its answer, or a write of whatever kind."""
    dice = random.Random(seed)
    part = (seed + dice.random()) / MOMENTS
    at: Moment | Write
    if seed % 2:
        at = Write(EVERY_WRITE, dice.choice(["before", "after"]), 1 + int(part * paper.writes))
    else:
        at = Moment("", dice.choice(["asked", "answered"]), 1 + int(part * paper.runs.calls()))
    runs = KilledRuns(server, template, tmp_path, "paper")
    # Answers that come together share a commit, so a run may have a few writes less than the undisturbed one.
    assert runs.attempt(at).killed or at.number > 0.9 * paper.writes
    assert not runs.attempt().killed
    assert {f"{name}.md" for name in (*SECTIONS, "paper")} <= runs.files().keys()
    runs.check_against(paper.runs)
    report(f"paper, {at}", runs)


def report(what: str, runs: KilledRuns) -> None:
    kills = sum(attempt.killed for attempt in runs.attempts)
    lost = sum(attempt.lost for attempt in runs.attempts)
    print(f"{what}: {kills} kills, {runs.calls()} calls, {lost} lost by the kills")  # noqa: T201 - seen with -s
