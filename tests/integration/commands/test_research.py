"""`research` as in a shell: output, files, JSON, runs, and refusals."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents.plain_text import format_quote
from tests.integration.commands.conftest import Citeloom
from tests.integration.commands.test_other_languages import QUESTION as CHINESE, multilingual
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import SAMPLES, THREE

QUESTION = "Do ensembles of seeds give better calibrated confidence?"
ELSEWHERE = "Which irrigation schedule suits tomatoes in a greenhouse?"


def test_the_answer_goes_to_stdout_and_everything_else_to_stderr(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("research", QUESTION, "--home", home)
    assert done.code == 0, done.err
    assert done.out.startswith(f"# {QUESTION}\n\n") and "## References" in done.out
    answer, _, listed = done.out.partition("## References\n\n")
    assert "[1]" in answer and "okafor2022ensembles" not in answer and "Next:" not in done.out
    assert listed.startswith("- **[1]** ") and '\n  - "' in listed
    lines = done.err.splitlines()
    assert lines[0] == f"Home: {home}"
    for said in (
        "question across papers",
        "3 papers found by their summaries and passages",
        " passages to read",
        " findings from ",
        "writing the answer from ",
        "Nearest passages, not judged: ",
        "--out DIR",
    ):
        assert said in done.err
    assert "\x1b" not in done.out + done.err


def test_the_json_is_that_of_a_section_plus_question_route_and_answered(citeloom: Citeloom, home: Path) -> None:
    record = citeloom("research", QUESTION, "--home", home, "--json").json
    assert list(record)[:4] == ["thread_id", "question", "route", "answered"]
    assert record["question"] == QUESTION and "section" not in record
    assert record["answered"] is None and record["outcome"] == "passages"
    assert record["route"] == {"track": "survey", "papers": [], "categories": [], "kind": "focused", "start": []}
    for name in ("text", "citations", "evidence", "references", "usage", "warnings", "files"):
        assert name in record
    assert record["citations"] and record["files"] == {}
    for citation in record["citations"]:
        assert format_quote(citation["chunk_text"], citation["start"], citation["end"]) in record["text"]
        assert len(citation["quote"].split()) <= 45


def test_an_answer_says_if_the_question_limited_the_search_to_one_paper(citeloom: Citeloom, home: Path) -> None:
    question = "What do ensembles cost in okafor2022ensembles?"
    said = "Only okafor2022ensembles was searched, since the question names it"
    record = citeloom("research", question, "--home", home, "--json").json
    assert any(said in line for line in record["warnings"])
    assert said in citeloom("research", question, "--home", home).err
    chosen = citeloom("research", question, "--home", home, "--papers", "okafor2022ensembles").err
    assert "was searched" not in chosen and "searching okafor2022ensembles" in chosen


@pytest.mark.parametrize("name", ["Okafor 2022", "Okafor et al. 2022", "okafor2022ensembles"])
def test_a_question_about_a_named_paper_shows_its_nearest_passages(citeloom: Citeloom, home: Path, name: str) -> None:
    record = citeloom("research", f"What does {name} say about irrigation schedules?", "--home", home, "--json").json
    assert record["outcome"] == "passages" and "Nothing near" not in record["text"]
    assert {citation["key"] for citation in record["citations"]} == {"okafor2022ensembles"}


def test_a_question_from_another_field_is_left_unanswered_without_an_error(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("research", ELSEWHERE, "--home", home)
    assert done.code == 0 and "Nothing near" in done.out and "does not answer" not in done.out
    assert "References" not in done.out and "Nothing near: 0 citations" in done.err
    assert "Next: rephrase the question" in done.err
    record = citeloom("research", ELSEWHERE, "--home", home, "--json").json
    assert record["answered"] is False and record["citations"] == record["references"] == []
    assert f"Looked at: {record['coverage']['passages']['read']} passages of " in record["text"]


def test_a_question_in_a_language_unknown_to_the_model_gets_a_hint(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("research", "Wie viele Startwerte braucht ein Verbund kleiner Netze?", "--home", home)
    assert done.code == 0 and "seems to be in German" in done.out and "EMBEDDING_MODEL" in done.out
    assert "seems to be in" not in citeloom("research", ELSEWHERE, "--home", home).out


def test_sentences_that_answer_the_question_are_listed_first(citeloom: Citeloom, home: Path) -> None:
    record = citeloom("research", "How many seeds does an ensemble need?", "--home", home, "--json").json
    first, second = (" ".join(item["quote"].split()) for item in record["citations"][:2])
    assert "Twenty seeds are a reasonable default" in first
    assert "five seeds, pooled, then one temperature" in second


def test_files_are_written_if_a_folder_is_named(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    out = tmp_path / "answers"
    record = citeloom("research", QUESTION, "--home", home, "--out", out, "--format", "html", "--json").json
    stem = "do-ensembles-of-seeds-give-better-calibrated-confidence"
    assert {path.name for path in out.iterdir()} == {
        f"{stem}.{end}" for end in ("md", "bib", "evidence.html", "json", "html")
    }
    assert (out / f"{stem}.md").read_text(encoding="utf-8").startswith(f"# {QUESTION}\n")
    assert json.loads((out / f"{stem}.json").read_text(encoding="utf-8")) == record
    report = (out / f"{stem}.evidence.html").read_text(encoding="utf-8")
    assert QUESTION in report and record["citations"][0]["quote"].split(",")[0] in report
    cited = {citation["key"] for citation in record["citations"]}
    assert all(f"{{{key}," in (out / f"{stem}.bib").read_text(encoding="utf-8") for key in cited)


@pytest.mark.parametrize(
    ("style", "shape"),
    [
        ("key", "({key})"),
        ("latex", "\\cite"),
        pytest.param("pandoc", "[@{key}", marks=pytest.mark.long),
        pytest.param("key-page", "[{key}]", marks=pytest.mark.long),
    ],
)
def test_other_styles_cite_the_same_evidence(citeloom: Citeloom, home: Path, style: str, shape: str) -> None:
    usual = citeloom("research", QUESTION, "--home", home, "--json").json
    other = citeloom("research", QUESTION, "--home", home, "--cite-style", style, "--json").json
    assert other["thread_id"] == usual["thread_id"]
    assert shape.format(key=other["citations"][0]["key"]) in other["text"]
    assert [item["evidence_id"] for item in other["citations"]] == [item["evidence_id"] for item in usual["citations"]]


def test_questions_are_listed_shown_and_resumed_as_runs(citeloom: Citeloom, home: Path, tmp_path: Path) -> None:
    first = citeloom("research", QUESTION, "--home", home, "--length", "60", "--json").json
    (run,) = citeloom("runs", "list", "--home", home, "--json").json
    assert (run["section"], run["title"], run["status"]) == ("research", QUESTION, "finished")
    shown = citeloom("runs", "show", run["thread_id"], "--home", home)
    assert f"research: {QUESTION}" in shown.out and "[need]" in shown.out
    searches = [line for line in shown.out.splitlines() if line.startswith("[")]
    assert all(re.search(r"-> \d+ findings? \(E\d+(, E\d+){0,4}(, \.\.\.)?\)$", line) for line in searches), searches
    again = citeloom("runs", "resume", run["thread_id"], "--home", home, "--out", tmp_path / "out", "--json").json
    assert again["text"] == first["text"] and Path(again["files"]["md"]).is_file()
    repeated = citeloom("research", QUESTION, "--home", home, "--length", "60")
    assert "was finished earlier" in repeated.err
    assert citeloom("runs", "delete", run["thread_id"], "--home", home).code == 0
    assert citeloom("runs", "list", "--home", home, "--json").json == []


def test_limits_narrow_the_answer(citeloom: Citeloom, home: Path) -> None:
    whole = citeloom("research", QUESTION, "--home", home, "--json").json
    one = citeloom("research", QUESTION, "--home", home, "--papers", "okafor2022ensembles", "--json").json
    assert {citation["key"] for citation in one["citations"]} == {"okafor2022ensembles"}
    assert one["route"]["track"] == "one_paper"
    few = citeloom("research", QUESTION, "--home", home, "--sources", "1", "--json").json
    assert len(few["references"]) == 1 <= len(whole["references"])
    late = citeloom("research", QUESTION, "--home", home, "--from-year", "2021", "--json").json
    assert all(item["key"] != "obrien2019seeds" for item in late["evidence"])
    once = citeloom("research", ELSEWHERE, "--home", home, "--single-shot", "--json").json
    assert once["answered"] is False


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("",), "nothing to look for"),
        (("  \n ",), "nothing to look for"),
        (("why " * 10_000,), "10,000 words"),
        (("What \x07 rings?",), "U+0007"),
        ((QUESTION, "--venue", "Journal of Nothing"), "Journal of Nothing"),
        ((QUESTION, "--papers", "nobody1999"), "nobody1999"),
        ((QUESTION, "--papers", " , "), "--papers is empty"),
        ((QUESTION, "--from-year", "2020", "--to-year", "2010"), "Swap the two years"),
        ((QUESTION, "--sources", "0"), "--sources"),
        ((QUESTION, "--length", "3"), "--length"),
        ((QUESTION, "--cite-style", "mla"), "--cite-style"),
        ((QUESTION, "--csl", "no-such-style"), "no-such-style"),
        ((QUESTION, "--format", "html"), "--out"),
    ],
    ids=lambda given: str(given)[:30],
)
def test_bad_input_is_reported_in_one_line_and_changes_nothing(
    citeloom: Citeloom, home: Path, arguments: tuple[str, ...], said: str
) -> None:
    done = citeloom("research", *arguments, "--home", home)
    assert done.code == 2 and done.out == ""
    (error,) = [line for line in done.err.splitlines() if line.startswith("Error: ")]
    assert said in error
    assert citeloom("runs", "list", "--home", home, "--json").json == []


def test_an_empty_home_names_the_command_that_fills_it(citeloom: Citeloom, tmp_path: Path) -> None:
    done = citeloom("research", QUESTION, "--home", tmp_path / "nowhere")
    assert done.code == 2 and "ingest" in done.err and not (tmp_path / "nowhere").exists()


@pytest.fixture
def endpoint() -> Iterator[dict[str, str]]:
    with FakeOpenAI(behaviour=multilingual) as server:
        yield {"EMBEDDING_MODEL": "multilingual", "EMBEDDING_BASE_URL": server.base_url, "EMBEDDING_API_KEY": "k"}


def test_a_chinese_question_is_answered_from_english_papers_with_a_multilingual_embedding(
    citeloom: Citeloom, tmp_path: Path, endpoint: dict[str, str]
) -> None:
    papers = tmp_path / "papers"
    papers.mkdir()
    for name in (*(f"{key}.md" for key in THREE), "library.bib"):
        shutil.copy(SAMPLES / name, papers / name)
    assert citeloom("ingest", papers, "--home", tmp_path / "home", **endpoint).code == 0
    done = citeloom("research", CHINESE, "--home", tmp_path / "home", "--json", **endpoint)
    assert done.code == 0, done.err
    assert done.json["outcome"] != "nothing" and done.json["question"] == CHINESE
    assert "varga2021calibration" in {citation["key"] for citation in done.json["citations"]}
    assert "bundled embedding" not in done.err


def test_the_bundled_embedding_says_that_it_reads_only_english(citeloom: Citeloom, home: Path) -> None:
    done = citeloom("research", CHINESE, "--home", home, "--json")
    assert done.code == 0 and done.json["answered"] is False
    assert "CITELOOM_EMBEDDING_MODEL" in done.err and "English" in done.err


def test_a_terminal_shows_a_panel(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from citeloom.commands import run_display

    record: dict[str, Any] = {
        "question": "What of [seeds]?",
        "text": "## Of seeds\n\nThey matter [a2019, page 2].\x1b[31m",
        "cite_style": "key-page",
        "references": [{"label": "a2019", "text": "A. 2019. “Seeds.”"}],
    }
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    run_display.show_answer(record)
    out = capsys.readouterr().out
    assert "What of [seeds]?" in out and "They matter [a2019, page 2]." in out and "╭" in out
    assert "\x1b[31m" not in out


def test_suggested_commands_name_the_given_home(citeloom: Citeloom, home: Path) -> None:
    """The suggested command would otherwise open another library."""
    done = citeloom("research", QUESTION, "--home", home)
    (shown,) = [line for line in done.err.splitlines() if "shows a cited paper" in line]
    assert f"--home {home} papers show " in shown
