"""The command `paper`: one run, one pause, one object of JSON."""

from __future__ import annotations

import re
from pathlib import Path

from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import Json, envelope

SETTINGS = {"TOP_K_INITIAL": "3", "MAX_SEARCH_ITERATIONS": "1", "MAX_REPAIRS": "0"}


def chat(server: FakeOpenAI) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, **SETTINGS}


def test_a_paused_paper_resumes_in_its_section_without_paying_twice(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    command = ("paper", "--exp", exp, "--home", home, "--out", tmp_path / "out")
    paused = citeloom(*command, "--max-calls", "30", **chat(server))
    assert paused.code == 3, paused.err
    assert not (tmp_path / "out" / "paper.md").exists()
    (run,) = citeloom("runs", "list", "--json", "--home", home).json
    assert run["thread_id"].startswith("paper-") and run["status"] == "paused"
    shown = citeloom("runs", "show", run["thread_id"], "--json", "--home", home).json
    assert shown["result"] is None and shown["queries"]

    done = citeloom(*command, "--json", **chat(server))
    assert done.code == 0, done.err
    assert f"Resuming run {run['thread_id']} at the " in done.err
    record = done.json
    assert record["thread_id"] == run["thread_id"]
    assert record["usage"]["llm_calls"] == server.calls()
    assert citeloom("usage", "--json", "--home", home).json["total"]["llm_calls"] == server.calls()

    again = citeloom(*command, **chat(server))
    assert "finished earlier" in again.err
    assert record["usage"]["llm_calls"] == server.calls()
    assert again.out.startswith(f"\n# {record['title']}\n\n## Abstract\n\n")


def test_a_paper_is_resumed_shown_and_deleted_by_its_id(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    assert citeloom("paper", "--exp", exp, "--home", home, "--out", out, "--max-calls", "30", **chat(server)).code == 3
    (run,) = citeloom("runs", "list", "--json", "--home", home).json
    done = citeloom("runs", "resume", run["thread_id"], "--out", out, "--json", "--home", home, **chat(server))
    assert done.code == 0, done.err
    assert sorted(path.name for path in out.glob("*.md")) == [
        "abstract.md",
        "conclusion.md",
        "discussion.md",
        "introduction.md",
        "methods.md",
        "paper.md",
        "results.md",
    ]
    shown = citeloom("runs", "show", run["thread_id"], "--json", "--home", home).json
    assert shown["status"] == "finished"
    assert shown["result"]["text"] == done.json["text"]
    assert [section["text"] for section in shown["result"]["sections"]] == [
        section["text"] for section in done.json["sections"]
    ]
    assert "report" not in shown["result"] and all("report" not in section for section in shown["result"]["sections"])
    assert citeloom("runs", "delete", run["thread_id"], "--home", home).code == 0
    assert citeloom("runs", "list", "--json", "--home", home).json == []


def test_the_json_of_a_paper_is_one_object_with_its_sections_in_order(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    done = citeloom("paper", "--exp", exp, "--home", home, "--out", tmp_path / "out", "--json")
    record = done.json
    names = ("thread_id", "title", "sections", "text", "citations", "evidence", "references", "findings", "warnings")
    assert {*names, "usage", "files"} <= record.keys()
    assert [section["section"] for section in record["sections"]] == [
        "abstract",
        "introduction",
        "methods",
        "results",
        "discussion",
        "conclusion",
    ]
    lines = done.err.splitlines()
    begun = [line.rsplit(" ", 1)[1] for line in lines if "default queries for the" in line]
    assert begun == ["methods", "results", "discussion", "conclusion", "introduction", "abstract"]


def test_an_empty_section_fails_again_on_resume_and_writing_again_repairs_it(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    mute = {"methods", "conclusion"}

    def answer(body: Json) -> Json | None:
        kind = re.search(r"The section to write: (\w+)", str(body["messages"][-1]["content"]))
        return envelope(body, content="") if kind and kind[1] in mute and not body.get("tools") else None

    server.behaviour = answer
    command = ("paper", "--exp", exp, "--home", home, "--out", tmp_path / "out", "--json")
    done = citeloom(*command, **chat(server))
    failed = "no text was written for: methods, conclusion. Write with --fresh"
    assert done.code == 4 and failed in done.err
    texts = {section["section"]: section["text"] for section in done.json["sections"]}
    assert {kind for kind, text in texts.items() if not text.strip()} == mute
    assert "## Discussion" in (tmp_path / "out" / "paper.md").read_text("utf-8")

    calls = server.calls()
    run = done.json["thread_id"]
    for again in (command, ("runs", "resume", run, "--home", home, "--out", tmp_path / "out", "--json")):
        resumed = citeloom(*again, **chat(server))
        assert resumed.code == 4 and failed in resumed.err and server.calls() == calls
    mute.clear()
    fresh = citeloom(*command, "--fresh", **chat(server))
    assert fresh.code == 0 and all(section["text"].strip() for section in fresh.json["sections"]), fresh.err
