"""Which home is used, where output goes, and how earlier runs are shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from citeloom.citations.citation_styles import Citation
from citeloom.experiment import SECTION_KINDS
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import run
from tests.support.openai_server import FakeOpenAI


def model(server: FakeOpenAI) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "TOP_K_INITIAL": "3"}


def test_home_may_be_given_before_or_after_the_command(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    before = citeloom("--home", home, "papers", "list", "--json")
    after = citeloom("papers", "list", "--json", "--home", home)
    by_setting = citeloom("papers", "list", "--json", HOME=str(home))
    assert before.code == after.code == by_setting.code == 0
    assert before.json == after.json == by_setting.json
    assert len(before.json) == 3
    nearer = citeloom("--home", tmp_path / "nowhere", "papers", "list", "--json", "--home", home)
    assert nearer.json == before.json


def test_the_nearest_home_in_the_parent_folders_is_used(
    citeloom: Citeloom, home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home.rename(tmp_path / ".citeloom")
    (tmp_path / "deep" / "inside").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "deep" / "inside")
    done = citeloom("papers", "list", "--json")
    assert done.err.splitlines()[0] == f"Home: {tmp_path / '.citeloom'}"
    assert len(done.json) == 3


@pytest.mark.parametrize(
    "command",
    [("papers", "list"), ("papers", "show", "varga2021calibration"), ("runs", "list"), ("doctor",), ("discussion",)],
    ids=" ".join,
)
def test_the_first_line_names_the_home_and_stdout_is_one_json_value(
    command: tuple[str, ...], citeloom: Citeloom, home: Path, exp: Path
) -> None:
    more = ("--exp", exp) if command == ("discussion",) else ()
    done = citeloom("--home", home, *command, *more, "--json")
    assert done.code == 0, done.err
    assert done.err.splitlines()[0] == f"Home: {home}"
    assert done.json is not None


@pytest.mark.parametrize("command", ["search looms", "papers list", "runs list", "research why"])
def test_a_command_that_creates_no_home_does_not_say_new(command: str, citeloom: Citeloom, tmp_path: Path) -> None:
    done = citeloom("--home", tmp_path / "none", *command.split())
    assert done.err.splitlines()[0] == f"Home: {tmp_path / 'none'}" and not (tmp_path / "none").exists()


def test_each_section_has_a_command(citeloom: Citeloom) -> None:
    for kind in SECTION_KINDS:
        shown = citeloom(kind, "--help")
        assert shown.code == 0
        assert f"{kind}.bib" in shown.out and "Example:" in shown.out


@pytest.mark.parametrize("command", [(), ("runs",), ("papers",)], ids=["citeloom", "runs", "papers"])
def test_an_incomplete_command_shows_its_usage(command: tuple[str, ...], tmp_path: Path) -> None:
    done = run(*command, cwd=tmp_path)
    assert done.code == 2
    assert "Usage:" in done.out + done.err
    assert "Unexpected" not in done.err and not list(tmp_path.iterdir())


def test_runs_are_listed_shown_and_deleted(citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI) -> None:
    def runs() -> list[dict[str, object]]:
        found: list[dict[str, object]] = citeloom("runs", "list", "--json", "--home", home).json
        return found

    assert runs() == []
    written = citeloom("discussion", "--exp", exp, "--home", home, "--json", **model(server)).json
    (listed,) = runs()
    assert listed["thread_id"] == written["thread_id"] and listed["status"] == "finished"
    shown = citeloom("runs", "show", str(listed["thread_id"])[:14], "--json", "--home", home).json
    assert shown["result"]["text"] == written["text"]
    assert "default" not in {query["origin"] for query in shown["queries"]}, "default queries are not searched"
    calls = server.calls()
    deleted = citeloom("runs", "delete", str(listed["thread_id"]), "--home", home)
    assert deleted.code == 0 and runs() == []
    again = citeloom("discussion", "--exp", exp, "--home", home, "--json", **model(server))
    assert again.json["text"] == written["text"]
    assert server.calls() == calls, "answers outlive their run"
    assert again.json["usage"]["llm_calls"] == 0, "what a deleted run paid is not the new one's"
    assert again.json["usage"]["journal_hits"] == calls


def test_changing_the_citation_style_makes_no_call(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    command = ("discussion", "--exp", exp, "--home", home, "--json")
    plain = citeloom(*command, **model(server))
    calls = server.calls()
    shown = {"key": plain.json}
    for style in ("pandoc", "latex", "numeric", "key-page"):
        done = citeloom(*command, "--cite-style", style, **model(server))
        assert done.code == 0 and "finished earlier" in done.err
        shown[style] = done.json
    assert server.calls() == calls
    key = shown["key"]["citations"][0]["key"]
    assert f"({key}" in shown["key"]["text"]
    assert f"[@{key}, in section" in shown["pandoc"]["text"]
    assert f"\\cite{{{key}}}" in shown["latex"]["text"]
    assert "[1]" in shown["numeric"]["text"]
    assert f"[{key}, section" in shown["key-page"]["text"]
    quotes = {json.dumps([c["quote"] for c in record["citations"]]) for record in shown.values()}
    assert len(quotes) == 1
    assert {*Citation.__dataclass_fields__, "chunk_text"} == set(plain.json["citations"][0])


def test_a_finished_fresh_run_is_shown_again_without_a_call(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    command = ("discussion", "--exp", exp, "--home", home, "--json")
    first = citeloom(*command, **model(server)).json
    calls = server.calls()
    fresh = citeloom(*command, "--fresh", **model(server)).json
    assert fresh["thread_id"] != first["thread_id"]
    assert server.calls() == 2 * calls
    for record in (first, fresh):
        resumed = citeloom("runs", "resume", record["thread_id"], "--json", "--home", home)
        assert resumed.code == 0, resumed.err
        assert resumed.json["thread_id"] == record["thread_id"]
        assert "finished earlier" in resumed.err
    assert server.calls() == 2 * calls
    latest = citeloom(*command, **model(server)).json
    assert latest["thread_id"] == fresh["thread_id"]


def test_after_a_library_change_the_command_starts_a_new_run_and_says_so(
    citeloom: Citeloom, home: Path, exp: Path, server: FakeOpenAI
) -> None:
    command = ("discussion", "--exp", exp, "--home", home, "--json")
    before = citeloom(*command, **model(server)).json
    assert citeloom("papers", "remove", "varga2021calibration", "--home", home).code == 0
    after = citeloom(*command, **model(server))
    assert after.code == 0, after.err
    assert after.json["thread_id"] != before["thread_id"]
    assert "library has changed" in after.err and before["thread_id"] in after.err
    assert "varga2021calibration" not in after.json["text"]
    resumed = citeloom("runs", "resume", before["thread_id"], "--home", home)
    assert resumed.code == 2 and "another library" in resumed.err


def test_another_format_or_style_is_rendered_without_a_new_run(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path
) -> None:
    asked = ("--home", home, "discussion", "--exp", exp, "--out", tmp_path / "out", "--json")
    first = citeloom(*asked, "--format", "tex", "--format", "html")
    assert first.code == 0, first.err
    assert {"tex", "html", "md", "evidence.html"} <= set(first.json["files"])
    again = citeloom(*asked, "--format", "docx", "--csl", "ieee")
    assert again.code == 0, again.err
    assert "finished earlier" in again.err and Path(again.json["files"]["docx"]).is_file()
    assert again.json["references"] != first.json["references"]
    wrong = citeloom(*asked, "--format", "rtf")
    assert wrong.code == 2 and "rtf" in wrong.err
    unknown = citeloom(*asked, "--csl", "no-such-style")
    assert unknown.code == 2 and "no-such-style" in unknown.errors[0]
