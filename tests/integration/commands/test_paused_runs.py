"""Runs that stop early: completed calls are kept, exit code 3, and the same command resumes."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import CLI, environment, finish, start
from tests.support.killing_server import KillingServer, Moment
from tests.support.openai_server import FakeOpenAI, Status
from tests.support.sample_library import SAMPLES


def chat(server: FakeOpenAI, **settings: str) -> dict[str, str]:
    return {
        "CHAT_MODEL": "fake",
        "CHAT_BASE_URL": server.base_url,
        "MAX_RETRIES": "0",
        "MAX_CONCURRENCY": "4",
        "TOP_K_INITIAL": "3",
        **settings,
    }


def test_a_busy_server_pauses_the_run_and_the_same_command_resumes_it(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    command = ("discussion", "--exp", exp, "--home", home, "--json")
    server.behaviour = busy_from(server, 6)
    paused = citeloom(*command, **chat(server))
    assert paused.code == 3 and paused.out == ""
    (said,) = [line for line in paused.err.splitlines() if line.startswith("Paused:")]
    assert "429" in said and "same command" in said
    assert not paused.errors
    (run,) = citeloom("runs", "list", "--json", "--home", home).json
    assert run["status"] == "paused" and "429" in run["detail"]
    answered = server.answered - refused(server)
    server.behaviour = None
    asked = server.calls()
    done = citeloom(*command, **chat(server))
    assert done.code == 0, done.err
    assert "Resuming run" in done.err
    assert done.json["usage"]["llm_calls"] == answered + server.calls() - asked
    assert citeloom("runs", "list", "--json", "--home", home).json[0]["status"] == "finished"


def busy_from(server: FakeOpenAI, number: int):  # type: ignore[no-untyped-def]
    """A behaviour: the first `number` requests are answered, all later ones with 429."""
    from tests.support.openai_server import Raw

    def behave(_: object) -> Raw | None:
        if server.calls() <= number:
            return None
        return Raw(json.dumps({"error": {"message": "slow down"}}), status=429)

    return behave


def refused(server: FakeOpenAI) -> int:
    return server.calls() - 6


def test_a_server_that_is_busy_from_the_start_pauses_too(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    server.failures = [Status(429)] * 50
    done = citeloom("discussion", "--exp", exp, "--home", home, **chat(server))
    assert done.code == 3
    assert done.err.splitlines()[-1].startswith("Paused:")


def test_a_key_revoked_during_a_run_pauses_it(citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI) -> None:
    server.behaviour = withdrawing(server)
    done = citeloom("discussion", "--exp", exp, "--home", home, **chat(server, CHAT_API_KEY="key-5b2e"))
    assert done.code == 3, done.err
    assert "CITELOOM_CHAT_API_KEY" in done.err and "key-5b2e" not in done.err


def withdrawing(server: FakeOpenAI):  # type: ignore[no-untyped-def]
    from tests.support.openai_server import Raw

    def behave(_: object) -> Raw | None:
        if server.calls() <= 5:
            return None
        return Raw(json.dumps({"error": {"message": "Incorrect API key provided: key-5b2e"}}), status=401)

    return behave


def test_an_unreachable_server_pauses_the_run_which_resumes_once_it_is_back(
    citeloom: Citeloom, home: Path, exp: Path
) -> None:
    command = ("discussion", "--exp", exp, "--home", home, "--json")
    server = FakeOpenAI()

    def go_away(_: object) -> None:
        if server.calls() == 6:
            server.go_away()

    server.behaviour = go_away
    with server:
        paused = citeloom(*command, **chat(server, MAX_RETRIES="1"))
    assert paused.code == 3, paused.err
    assert paused.err.splitlines()[-1].startswith("Paused:") and "same command" in paused.err
    with FakeOpenAI(port=int(server.base_url.split(":")[2].split("/")[0])) as back:
        done = citeloom(*command, **chat(back))
        assert done.code == 0, done.err
        assert done.json["usage"]["llm_calls"] <= server.answered + back.answered


def test_ctrl_c_pauses_a_run_that_the_same_command_resumes(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    with KillingServer() as server:
        settings = {**chat(server), "CHAT_API_KEY": "first"}
        command = ("discussion", "--exp", exp, "--home", home, "--json")
        came, go_on = server.hold("first", 5)
        process = start(*command, cwd=tmp_path, settings=settings)
        assert came.wait(timeout=300)
        process.send_signal(signal.SIGINT)
        done = finish(process)
        go_on.set()
        assert done.code == 3, done.err
        assert done.err.splitlines()[-1].startswith("Interrupted.") and "same command" in done.err
        assert f"cli.py discussion --exp {exp}" in done.err.splitlines()[-1]
        assert "Traceback" not in done.err
        resumed = citeloom(*command, **{**settings, "CHAT_API_KEY": "second"})
        assert resumed.code == 0, resumed.err
        assert resumed.json["usage"]["llm_calls"] <= server.asked["first"] + server.asked["second"]
        # Of the first process's calls only those in flight at Ctrl-C are made again.
        assert server.asked["second"] <= resumed.json["usage"]["llm_calls"]


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        ("@article{varga2021calibration, title = {Half an entry", "library.bib"),
        (
            "@article{obrien2019seeds, title={One}, year={2019}}\n@article{obrien2019seeds, title={Two}}",
            "obrien2019seeds",
        ),
    ],
    ids=["unreadable", "duplicate"],
)
def test_a_bad_bib_entry_is_reported_and_the_others_are_kept(
    broken: str, named: str, citeloom: Citeloom, tmp_path: Path
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    for key in ("obrien2019seeds", "okafor2022ensembles"):
        shutil.copy(SAMPLES / f"{key}.md", papers)
    good = "@article{okafor2022ensembles, title = {Small Ensembles}, author = {Okafor, Chidi}, year = {2022}}\n"
    (papers / "library.bib").write_text(good + broken, encoding="utf-8")
    done = citeloom("ingest", papers, "--home", tmp_path / "home", "--json")
    assert done.code == 4, done.err
    assert [line for line in done.err.splitlines() if line.startswith("Refused:") and named in line], done.err
    assert done.json["refused"] and all(item["reason"] for item in done.json["refused"])
    keys = {paper["key"] for paper in citeloom("papers", "list", "--json", "--home", tmp_path / "home").json}
    assert "okafor2022ensembles" in keys and len(keys) == 2


@pytest.mark.long
def test_a_budget_holds_across_kills(home: Path, exp: Path, tmp_path: Path) -> None:
    """Calls in flight at a kill may have been paid for, so they count."""
    limit = 12
    with KillingServer() as server:
        for key in ("first", "second", "third"):
            settings = {**chat(server, MAX_CALLS=str(limit)), "CHAT_API_KEY": key}
            server.at = Moment(key, "asked", 3)
            server.victim = start("discussion", "--exp", exp, "--home", home, cwd=tmp_path, settings=settings)
            assert finish(server.victim).code in (-signal.SIGKILL, 3)  # 3: no budget was left for it
        settings["CHAT_API_KEY"] = "last"
        done = finish(start("discussion", "--exp", exp, "--home", home, cwd=tmp_path, settings=settings))
        assert done.code in (0, 3), done.err
        assert server.asked["first"] >= 3
        assert sum(server.asked.values()) <= limit


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_while_writing_the_output_is_reported_in_one_line(tmp_path: Path, home: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, str(CLI), "papers", "list", "--home", str(home)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env=environment({}),
        )
    assert done.returncode == 3
    assert done.stderr.splitlines()[-1].startswith("Paused: the disk is full")
    assert "Traceback" not in done.stderr


def test_an_ingest_stops_before_its_limit_and_resumes(citeloom: Citeloom, server: FakeOpenAI, tmp_path: Path) -> None:
    settings = {
        "EMBEDDING_MODEL": "fake-embedding",
        "EMBEDDING_BASE_URL": server.base_url,
        "MAX_CONCURRENCY": "1",
    }
    command = ("ingest", SAMPLES, "--home", tmp_path / "home")
    stopped = citeloom(*command, "--max-tokens", "30000", **settings)
    assert stopped.code == 3, stopped.err
    assert "--max-tokens" in stopped.err.splitlines()[-1]
    asked = [text for body in server.requests for text in body["input"]]
    assert 0 < sum(len(text.split()) for text in asked) <= 30_000
    done = citeloom(*command, "--json", **settings)
    assert done.code == 0, done.err
    everything = [text for body in server.requests for text in body["input"]]
    assert len(everything) > len(asked)
    assert len(everything) == len(set(everything)), "a text was embedded twice"
