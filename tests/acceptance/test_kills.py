"""`kill -9` at seeded moments of a run, then the same command again: no committed call is ever made twice.

The embedding is the endpoint's too, so that its calls are counted with the others.
"""

from __future__ import annotations

import json
import math
import random
import re
import shutil
import signal
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_process import Finished, finish, run, start
from tests.support.killed_runs import CONCURRENCY, answers, home_with_three_papers, settings_of
from tests.support.killing_server import KillingServer, Moment
from tests.support.sample_library import EXPERIMENT
from tests.support.scripted_agent import plans_and_reads

SEEDS = 20
SEARCHES = 8  # of the agent: the run must be long enough to be killed in every part, again and again
NEEDS = ("variance between seeds", "small ensembles of networks", "calibration error", "early stopping", "label noise")


@dataclass(frozen=True)
class Written:
    """What a run left: its text, its record without the count of replays, and the calls that it made."""

    text: str
    record: dict[str, Any]
    calls: int


class Bench:
    """A home with three papers, and the same command again and again."""

    def __init__(self, server: KillingServer, template: Path, folder: Path) -> None:
        self.server = server
        self.folder = folder
        self.home = folder / ".citeloom"
        shutil.copytree(template, self.home)
        self.before = answers(self.home)
        server.forget()

    def settings(self, key: str) -> dict[str, str]:
        return settings_of(self.server, key) | {"MAX_SEARCH_ITERATIONS": str(SEARCHES)}

    def command(self, *more: str) -> tuple[str, ...]:
        return ("discussion", "--exp", str(EXPERIMENT), "--out", "out", "--home", str(self.home), *more)

    def give(self, key: str, *more: str) -> Finished:
        return run(*self.command(*more), cwd=self.folder, settings=self.settings(key))

    def give_and_kill(self, moment: Moment, *more: str) -> Finished:
        self.server.at = moment
        self.server.victim = start(*self.command(*more), cwd=self.folder, settings=self.settings(moment.key))
        return finish(self.server.victim)

    def committed(self) -> int:
        """Answers that the journal has of this run."""
        return answers(self.home) - self.before

    def written(self, *keys: str) -> Written:
        out = self.folder / "out"
        record = json.loads((out / "discussion.json").read_text(encoding="utf-8"))
        record["usage"].pop("journal_hits")  # a node that is taken up again reads its answers again
        record.pop("thread_id")
        calls = sum(self.server.asked[key] for key in keys)
        return Written((out / "discussion.md").read_text(encoding="utf-8"), record, calls)


@pytest.fixture(scope="module")
def server() -> Iterator[KillingServer]:
    with KillingServer() as running:
        running.behaviour = lambda body: plans_and_reads(body, NEEDS)
        running.tool_turns = SEARCHES
        yield running


@pytest.fixture(scope="module")
def template(server: KillingServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return home_with_three_papers(server, tmp_path_factory.mktemp("template"))


@pytest.fixture(scope="module")
def undisturbed(server: KillingServer, template: Path, tmp_path_factory: pytest.TempPathFactory) -> Written:
    session = Bench(server, template, tmp_path_factory.mktemp("undisturbed"))
    done = session.give("only")
    assert done.code == 0, done.err
    written = session.written("only")
    assert written.calls == session.committed() > 20
    assert len({citation["key"] for citation in written.record["citations"]}) >= 2
    return written


@pytest.fixture
def session(server: KillingServer, template: Path, undisturbed: Written, tmp_path: Path) -> Bench:
    return Bench(server, template, tmp_path)


def same_section(one: Written, other: Written) -> None:
    assert one.text == other.text
    assert one.record == other.record


@pytest.mark.parametrize("seed", range(SEEDS))
def test_a_killed_run_pays_again_only_for_calls_in_flight(seed: int, session: Bench, undisturbed: Written) -> None:
    dice = random.Random(seed)
    # One moment in each twentieth of the run, alternately before and after an answer.
    number = min(undisturbed.calls, math.ceil((seed + dice.random()) / SEEDS * undisturbed.calls))
    killed = session.give_and_kill(Moment("first", dice.choice(["asked", "answered"]), number))
    assert killed.code == -signal.SIGKILL, killed.err
    committed = session.committed()
    resumed = session.give("second")
    assert resumed.code == 0, resumed.err
    written = session.written("first", "second")
    under_way = session.server.asked["first"] - committed
    # A call is in flight until its answer is on disk, slightly longer than its connection is in use.
    assert 0 <= under_way <= 2 * CONCURRENCY
    assert session.server.asked["second"] == undisturbed.calls - committed
    assert written.calls <= undisturbed.calls + under_way
    same_section(written, undisturbed)


def test_a_run_killed_repeatedly_ends_with_the_same_section(session: Bench, undisturbed: Written) -> None:
    """Every attempt is killed at its fifth request; each must have moved the run on."""
    keys: list[str] = []
    for attempt in range(undisturbed.calls):
        keys.append(f"attempt-{attempt}")
        before = session.committed()
        done = session.give_and_kill(Moment(keys[-1], "answered", 2 * CONCURRENCY + 1))
        if done.code == 0:
            break
        assert done.code == -signal.SIGKILL, done.err
        assert session.committed() > before
    assert 3 < len(keys) < undisturbed.calls
    written = session.written(*keys)
    assert written.calls <= undisturbed.calls + (len(keys) - 1) * 2 * CONCURRENCY
    same_section(written, undisturbed)


def test_repeating_a_command_makes_no_call(session: Bench, undisturbed: Written) -> None:
    assert session.give("first").code == 0
    again = session.give("second")
    assert again.code == 0
    assert session.server.asked["second"] == 0
    assert "finished earlier" in again.err
    same_section(session.written("first", "second"), undisturbed)


def test_a_fresh_run_repeats_its_calls_and_resumes_after_a_kill(session: Bench, undisturbed: Written) -> None:
    assert session.give("first").code == 0
    chat = undisturbed.record["usage"]["llm_calls"]
    assert session.give("anew", "--fresh").code == 0
    assert session.server.asked["anew"] == chat  # vectors belong to the library, and are never asked for again
    committed = session.committed()
    killed = session.give_and_kill(Moment("killed", "answered", chat // 2), "--fresh")
    assert killed.code == -signal.SIGKILL
    kept = session.committed() - committed
    assert kept > 0
    resumed = session.give("resumed", "--fresh")
    assert resumed.code == 0, resumed.err
    assert session.server.asked["resumed"] == chat - kept
    written = session.written()
    assert written.record["citations"] == undisturbed.record["citations"]
    assert written.record["usage"]["llm_calls"] == chat


def test_two_equal_commands_at_once_are_paid_for_once(session: Bench, undisturbed: Written) -> None:
    """The first is held at its fifth request until the second has said that it waits."""
    reached, go_on = gate(session.server, "first", 5)
    first = start(*session.command(), cwd=session.folder, settings=session.settings("first"))
    assert reached()
    second = start(*session.command("--out", "other"), cwd=session.folder, settings=session.settings("second"))
    assert second.stderr is not None
    said = []
    for line in second.stderr:
        said.append(line)
        if "in progress in another process" in line:
            break
    go_on()
    other, done = finish(second), finish(first)
    assert (done.code, other.code) == (0, 0), done.err + "".join(said) + other.err
    assert any("in progress in another process" in line for line in said)
    assert session.server.asked["second"] == 0
    assert "finished earlier" in other.err
    same_section(session.written("first", "second"), undisturbed)
    texts = [(session.folder / folder / "discussion.md").read_text(encoding="utf-8") for folder in ("out", "other")]
    assert texts[0] == texts[1]


def gate(server: KillingServer, key: str, number: int) -> tuple[Callable[[], bool], Callable[[], None]]:
    """Hold the `number`th request of `key`: a wait for it to have come, and the word to answer it."""
    held, open_ = server.hold(key, number)
    return lambda: held.wait(timeout=120), open_.set


def test_a_killed_run_is_listed_and_resumed_by_its_id(session: Bench, undisturbed: Written) -> None:
    """The id alone is enough: the settings are kept with the run, only the keys are not."""
    settings = session.settings("first")
    chosen = ("--model", settings.pop("CHAT_MODEL"), "--base-url", settings.pop("CHAT_BASE_URL"))
    session.server.at = Moment("first", "asked", undisturbed.calls // 2)
    session.server.victim = start(*session.command(*chosen), cwd=session.folder, settings=settings)
    assert finish(session.server.victim).code == -signal.SIGKILL
    (listed,) = run("runs", "list", "--json", "--home", session.home, cwd=session.folder, settings=settings).json
    assert listed["status"] == "killed"
    asked = session.server.asked["first"]
    assert re.fullmatch(r"discussion-[0-9a-f]{16}", listed["thread_id"])
    resumed = run(
        "runs",
        "resume",
        listed["thread_id"],
        "--out",
        "out",
        "--home",
        session.home,
        cwd=session.folder,
        settings=settings,
    )
    assert resumed.code == 0, resumed.err
    assert session.server.asked["first"] - asked <= undisturbed.calls // 2 + 2 * CONCURRENCY
    same_section(session.written("first"), undisturbed)
