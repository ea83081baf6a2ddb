"""Every result says how much of the work succeeded: on the screen, in the report and in the JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import envelope

QUESTION = "How does temperature scaling change the calibration error?"


def chat(server: FakeOpenAI) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "SCORE_THRESHOLD": "0"}


def unreadable(server: FakeOpenAI, *, but: int = 0) -> None:
    """A model that reads the first passages and then no more."""
    given: set[str] = set()

    def behaviour(body: Any) -> Any:
        asked = json.dumps(body.get("response_format", {}))
        if "PassageReading" not in asked:
            return None
        task = str(body["messages"][1]["content"])
        if task in given or len(given) < but:
            given.add(task)
            return None
        return envelope(body, content="I cannot read this.")

    server.behaviour = behaviour


@pytest.mark.parametrize("command", ["discussion", "research"])
def test_passages_that_the_model_could_not_read_are_reported_everywhere(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path, command: str
) -> None:
    unreadable(server)
    asked = [QUESTION] if command == "research" else ["--exp", exp]
    done = citeloom(command, *asked, "--home", home, "--out", tmp_path, "--json", **chat(server))
    coverage = done.json["coverage"]["passages"]
    assert coverage["unreadable"] > 0 == coverage["read"] and coverage["proposed"] >= coverage["unreadable"]
    assert done.code == 4 and f"{coverage['unreadable']} unreadable" in done.err
    warning = f"Only 0 of {coverage['unreadable']} passages shown to the model were read"
    assert warning in done.err and any(warning in line for line in done.json["warnings"])
    report = Path(done.json["files"]["evidence.html"]).read_text("utf-8")
    assert f"{coverage['unreadable']} unreadable" in report and warning in report


def test_an_answer_without_readable_passages_does_not_say_that_the_library_has_none(
    citeloom: Citeloom, home: Path, server: FakeOpenAI
) -> None:
    server.behaviour = lambda body: envelope(body, content="OK")
    done = citeloom("research", QUESTION, "--home", home, "--json", **chat(server))
    coverage, text = done.json["coverage"], done.json["text"]
    assert text.startswith(f"The model could read none of the {coverage['passages']['unreadable']} passages")
    assert "does not answer" not in text and "Nothing near" not in done.err and "Nothing could be read: 0" in done.err
    assert coverage["papers"]["read"] == 0 and "citeloom setup" in text and "rephrase" not in done.err


def test_a_run_that_read_all_passages_says_so_and_succeeds(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    done = citeloom("discussion", exp, "--home", home, "--out", tmp_path, "--json", **chat(server))
    passages, sentences = done.json["coverage"]["passages"], done.json["coverage"]["sentences"]
    assert done.code == 0 and passages["read"] > 0 == passages["unreadable"]
    assert sentences["judged"] + sentences["unjudged"] == sentences["cited"] > 0
    assert f"{passages['read']} read, 0 unreadable" in done.err and "shown to the model were read" not in done.err


@pytest.mark.long
def test_a_paper_counts_the_passages_of_its_sections(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path) -> None:
    record = citeloom("paper", "--exp", exp, "--home", home, "--out", tmp_path, "--json").json
    for things, counts in record["coverage"].items():
        for name, count in counts.items():
            assert count == sum(section["coverage"][things][name] for section in record["sections"])
    assert record["coverage"]["passages"]["read"] > 0
