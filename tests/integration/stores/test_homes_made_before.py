"""A home made before modules, symbols, graph nodes and tables were renamed: nothing in it is lost, or paid for again.

`tests/data/home_before_renames.tar.xz` holds the home, the papers, prompts and experiment that it was made from, a file
that was written then, and `made.json`: ids, texts, settings, and what each run had paid. How much is read and shown at
once has changed since, so more or fewer calls may be left than then. The home knows its model server as
`models.example`; the server of a test stands in for it as the proxy, on whatever port is free.
"""

from __future__ import annotations

import json
import os
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom import Conversation, open_library, research, search, write_paper, write_section
from tests.support.cli_process import Finished, run_here
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import request_hash

ARCHIVE = Path(__file__).resolve().parents[2] / "data" / "home_before_renames.tar.xz"
DEFAULTS_THEN = {"READ_TOKENS": "13000"}  # of the settings whose defaults have changed since
KEYS = ["obrien2019seeds", "okafor2022ensembles", "varga2021calibration"]
QUESTION = "How does temperature scaling change the calibration for new wearers?"
SECTIONS = {"abstract", "introduction", "methods", "results", "discussion", "conclusion"}

Made = dict[str, Any]
Command = Callable[..., Finished]


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The unpacked archive, for commands that only read."""
    return unpacked(tmp_path_factory.mktemp("made before"))


@pytest.fixture
def made(tmp_path: Path) -> Made:
    """What was noted when the home was made, which is unpacked in the folder that the test works in."""
    return noted(unpacked(tmp_path))


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeOpenAI]:
    """The server that the home knows as `models.example`."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    with FakeOpenAI() as running:
        monkeypatch.setenv("http_proxy", running.base_url.removesuffix("/v1"))
        yield running


@pytest.fixture
def command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """A command on the home in a folder, which has to succeed; settings by name."""

    def give(folder: Path, *arguments: str | Path, **settings: str) -> Finished:
        done = run_here(monkeypatch, capsys, "--home", folder / "home", *arguments, settings=settings)
        assert done.code == 0, done.err
        return done

    return give


def unpacked(folder: Path) -> Path:
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def noted(folder: Path) -> Made:
    found: Made = json.loads((folder / "made.json").read_text(encoding="utf-8"))
    return found


def use_settings(monkeypatch: pytest.MonkeyPatch, settings: dict[str, str]) -> None:
    for name, value in {**settings, "PROMPTS_DIR": "prompts", **DEFAULTS_THEN}.items():
        monkeypatch.setenv(f"CITELOOM_{name}", value)


def assert_only_the_rest_is_done(server: FakeOpenAI, made: Made, name: str, usage: dict[str, Any]) -> None:
    again = {request_hash(body) for body in server.requests} & set(made["answered"])
    assert not again, "an answer that is in the journal was paid for again"
    assert usage["journal_hits"] <= made[name]["replayed"], "steps that were done are done again"


def test_its_papers_are_listed_shown_and_found(kept: Path, command: Command) -> None:
    assert [paper["key"] for paper in command(kept, "papers", "list", "--json").json] == KEYS
    assert "both are fitted on wearers unseen in training" in command(kept, "papers", "show", KEYS[2]).out
    with open_library(kept / "home") as library:
        by_meaning = search(library, "one temperature for all wearers", mode="dense")
        by_words = search(library, "temperature scaling", mode="bm25")
    assert KEYS[2] in {hit["key"] for hit in by_meaning} & {hit["key"] for hit in by_words}


def test_the_doctor_finds_nothing_wrong(kept: Path, command: Command) -> None:
    record = command(kept, "doctor", "--json").json
    assert record["library"]["papers"] == 3
    assert [finding for finding in record["findings"] if finding["level"] == "problem"] == []


def test_its_papers_are_not_embedded_again(made: Made, command: Command, tmp_path: Path) -> None:
    first = command(tmp_path, "ingest", tmp_path / "papers", "--json").json
    assert (first["chunks_embedded"], first["refused"]) == (0, [])  # figures are read, which that version did not know
    report = command(tmp_path, "ingest", tmp_path / "papers", "--json").json
    assert (report["papers_unchanged"], report["chunks_embedded"], report["refused"]) == (3, 0, [])


def test_all_runs_and_conversations_are_listed_and_shown(kept: Path, command: Command) -> None:
    made = noted(kept)
    listed = command(kept, "runs", "list", "--json").json
    assert {entry["thread_id"]: entry["status"] for entry in listed} == made["runs"]
    for name in ("finished_section", "paused_paper", "paper_at_keep"):
        shown = command(kept, "runs", "show", made[name]["run"], "--json").json
        assert shown["queries"] and (shown["result"] is not None) == (name == "finished_section")
    talks = command(kept, "conversations", "list", "--json").json
    turns = {talk["thread_id"]: talk["turns"] for talk in talks}
    assert turns == {made["conversation"]["thread"]: 2, made["paused_turn"]["thread"]: 1}


def test_what_was_spent_is_still_known(kept: Path, command: Command) -> None:
    made = noted(kept)
    usage = command(kept, "usage", "--json").json
    assert usage["total"] == made["usage"]
    paid = {row["run"]: row["llm_calls"] for row in usage["runs"]}
    for name in ("paused_discussion", "paused_paper", "paper_at_keep"):
        assert paid[made[name]["run"]] == made[name]["paid"]
    assert command(kept, "journal", "stats", "--json").json["answers"] == len(made["answered"])


def test_a_finished_section_is_shown_again(
    made: Made, command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    section = made["finished_section"]
    resumed = command(tmp_path, "runs", "resume", section["run"], "--json", "--out", tmp_path / "out")
    assert resumed.json["text"] == section["text"]
    use_settings(monkeypatch, {})
    with open_library(tmp_path / "home") as library:
        again = write_section(library, "methods", "exp.json")
    assert (again["thread_id"], again["text"]) == (section["run"], section["text"])


def test_a_finished_section_is_rendered_again_from_its_checkpoint(made: Made, command: Command, tmp_path: Path) -> None:
    """Another citation style needs the state of the graph as it was kept then."""
    command(tmp_path, "methods", "--exp", "exp.json", "--cite-style", "pandoc", PROMPTS_DIR="prompts", **DEFAULTS_THEN)
    assert f"[@{KEYS[2]}" in (tmp_path / "methods.md").read_text(encoding="utf-8")


def test_an_answer_is_given_again_without_a_call(
    made: Made, tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(monkeypatch, made["settings"])
    with open_library(tmp_path / "home") as library:
        answer = research(library, QUESTION)
    assert (answer["thread_id"], answer["text"]) == (made["research"]["run"], made["research"]["text"])
    assert server.calls() == 0


def test_a_file_written_then_still_holds(kept: Path, command: Command) -> None:
    command(kept, "verify", kept / "methods.json")


@pytest.mark.parametrize("name", ["paused_discussion", "paused_paper", "paper_at_keep"])
def test_a_paused_run_resumes_by_its_id(
    name: str, made: Made, command: Command, tmp_path: Path, server: FakeOpenAI
) -> None:
    resumed = command(tmp_path, "runs", "resume", made[name]["run"], "--json", "--out", tmp_path / "out")
    record = resumed.json
    assert_only_the_rest_is_done(server, made, name, record["usage"])
    assert record["usage"]["llm_calls"] == made[name]["paid"] + server.calls()
    assert record["text"] and record["citations"]
    if name != "paused_discussion":
        assert {section["section"] for section in record["sections"]} == SECTIONS
    listed = command(tmp_path, "runs", "list", "--json").json
    assert {entry["thread_id"]: entry["status"] for entry in listed} == {**made["runs"], made[name]["run"]: "finished"}


def test_a_paused_paper_resumes_from_python(
    made: Made, tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(monkeypatch, made["settings"])
    with open_library(tmp_path / "home") as library:
        record = write_paper(library, "exp.json")
    assert record["thread_id"] == made["paused_paper"]["run"]
    assert_only_the_rest_is_done(server, made, "paused_paper", record["usage"])


def test_a_conversation_continues_with_its_third_turn(
    made: Made, tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(monkeypatch, made["settings"])
    server.behaviour = model = Librarian()
    with open_library(tmp_path / "home") as library:
        talk = Conversation(library, made["conversation"]["thread"])
        assert [turn["text"] for turn in talk.turns] == made["conversation"]["texts"]
        turn = talk.ask("And for sensors in a pocket?")
        assert turn["number"] == 3 and turn["answered"]
        assert [turn["number"] for turn in talk.turns] == [1, 2, 3]
    assert len(model.rewriting) == 1, "the turns before are remembered"
    assert_only_the_rest_is_done(server, made, "conversation", turn["usage"])


def test_a_paused_turn_resumes_when_it_is_asked_again(
    made: Made, tmp_path: Path, server: FakeOpenAI, monkeypatch: pytest.MonkeyPatch
) -> None:
    use_settings(monkeypatch, made["settings"])
    server.behaviour = model = Librarian()
    with open_library(tmp_path / "home") as library:
        turn = Conversation(library, made["paused_turn"]["thread"]).ask(made["paused_turn"]["asked"])
    assert turn["number"] == 2 and turn["answered"]
    assert not model.rewriting, "it resumes after the completed step"
    assert_only_the_rest_is_done(server, made, "paused_turn", turn["usage"])
