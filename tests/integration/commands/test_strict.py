"""Failing sentences are marked in every format, or with --strict left out of all and listed."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from typing import Any

import pytest

from citeloom import Settings, open_library, write_section
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import Finished
from tests.support.judging_model import DRAFT, FALSE, REVERSED, JudgingModel
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import envelope

MARKS = ("[not supported]", "[contradicted by its source]", "[number not found]")
CLAIMS = ("Every wearer slept well", "Calibration never helps", "It took 4242 hours")
WRITTEN = f"{DRAFT} It took 4242 hours."
FORMATS = ("--format", "tex", "--format", "docx", "--format", "html")


@pytest.fixture
def settings(server: FakeOpenAI) -> dict[str, str]:
    return {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "SCORE_THRESHOLD": "0", "MAX_REPAIRS": "0"}


@pytest.fixture
def discussion(citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, settings: dict[str, str]) -> Any:
    """The discussion in all formats; what was printed, and what each file says to a reader."""

    def write(*options: str, may_pause: bool = False, code: int = 0) -> tuple[Finished, dict[str, str]]:
        out = tmp_path / "out"
        given = ("discussion", "--exp", exp, "--home", home, "--out", out, "--max-searches", "0", "--json")
        done = citeloom(*given, *FORMATS, *options, **settings)
        assert done.code == code or (may_pause and done.code == 3), done.err
        return done, read(out)

    return write


def read(out: Path) -> dict[str, str]:
    """The words of each file, without what its format puts around brackets."""
    with zipfile.ZipFile(out / "discussion.docx") as archive:
        word = archive.read("word/document.xml").decode()
    texts = {
        "md": (out / "discussion.md").read_text(encoding="utf-8").partition("<!--")[0],
        "tex": (out / "discussion.tex").read_text(encoding="utf-8").replace("{[}", "[").replace("{]}", "]"),
        "html": re.sub(r"<[^>]+>", "", (out / "discussion.html").read_text(encoding="utf-8")),
        "docx": re.sub(r"<[^>]+>", "", word),
    }
    return {name: " ".join(text.split()) for name, text in texts.items()}


@pytest.mark.parametrize("style", ["key", "pandoc", "latex", "numeric", "key-page"])
def test_marks_are_visible_in_every_format(discussion: Any, server: FakeOpenAI, style: str) -> None:
    server.behaviour = JudgingModel(WRITTEN)
    done, files = discussion("--cite-style", style)
    for name, text in files.items():
        for mark in MARKS:
            assert text.count(mark) == 1, f"{mark} in {name}"
        assert re.search(r"Every wearer slept well .{3,90}? \[not supported\]\.", text), name
        assert "4242 hours [number not found]." in text, name
    assert done.json["left_out"] == []
    for mark, claim in zip(MARKS, CLAIMS, strict=True):
        line = next(line for line in done.err.splitlines() if line.startswith("Note: Marked in") and claim in line)
        assert line.count("Note:") == 1 and mark not in line


def test_strict_leaves_out_the_same_sentences_in_every_format_and_lists_them(
    discussion: Any, server: FakeOpenAI
) -> None:
    server.behaviour = JudgingModel(WRITTEN)
    discussion()
    calls = server.calls()
    done, files = discussion("--strict")
    assert server.calls() == calls, "a finished run is rendered again without a model call"
    for name, text in files.items():
        for words in (*MARKS, *CLAIMS):
            assert words not in text, f"{words} in {name}"
        assert "Ensembles of seeds were compared" in text and "It may help others too" in text, name
    record = done.json
    assert [tuple(item["marks"]) for item in record["left_out"]] == [(mark,) for mark in MARKS]
    for item, claim in zip(record["left_out"], CLAIMS, strict=True):
        assert claim in item["sentence"] and item["why"]
        assert any(line.startswith("Note: Left out of the text") and claim in line for line in done.err.splitlines())
    report = Path(record["files"]["evidence.html"]).read_text(encoding="utf-8")
    assert "Left out of the text" in report and CLAIMS[0] in report
    cited = {citation["key"] for citation in record["citations"]}
    bib = Path(record["files"]["bib"]).read_text(encoding="utf-8")
    assert set(re.findall(r"@\w+\{([^,]+),", bib)) == cited == {item["key"] for item in record["references"]}
    again, back = discussion("--no-strict")
    assert again.json["left_out"] == [] and all(MARKS[0] in text for text in back.values())


def test_strict_is_also_a_setting_and_resume_respects_it(
    citeloom: Citeloom, discussion: Any, server: FakeOpenAI, home: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    server.behaviour = JudgingModel(WRITTEN)
    settings["STRICT"] = "true"
    done, _ = discussion()
    assert len(done.json["left_out"]) == 3
    run = done.json["thread_id"]
    for option, left_out in (("--no-strict", 0), ("--strict", 3)):
        given = citeloom(
            "runs", "resume", run, option, "--home", home, "--out", tmp_path / "again", "--json", **settings
        )
        assert len(given.json["left_out"]) == left_out, given.err


def test_a_text_left_empty_by_strict_says_so(discussion: Any, server: FakeOpenAI) -> None:
    server.behaviour = JudgingModel(f"{FALSE} {REVERSED}")
    done, files = discussion("--strict", code=4)
    assert "Nothing is left of the discussion" in done.err and "Write without --strict" in done.err
    assert done.json["text"] == "" and done.json["references"] == []
    assert "Discussion" in files["md"] and CLAIMS[0] not in files["docx"]


class WritingSix(JudgingModel):
    """Writes each section of a paper: a sentence that its source supports, and one that it does not."""

    def __call__(self, body: Json) -> Json:
        request = body["messages"][-1]["content"]
        marker = re.search(r"^\[(E\d+)\] ", request, re.MULTILINE)
        if marker and not body.get("tools") and not body.get("response_format"):
            number = len(self.repairs) + 1
            self.repairs.append(request)
            words = f"Study number {number} compared ensembles of seeds with single networks [{marker[1]}]."
            return envelope(body, content=f"{words} In study number {number} the wearers slept well [{marker[1]}].")
        return super().__call__(body)


@pytest.mark.long
def test_a_strict_paper_keeps_its_other_sentences_and_names_those_left_out(
    citeloom: Citeloom, server: FakeOpenAI, home: Path, exp: Path, tmp_path: Path, settings: dict[str, str]
) -> None:
    server.behaviour = WritingSix()
    command = ("paper", "--exp", exp, "--home", home, "--out", tmp_path / "out", "--json")
    marked = citeloom(*command, **settings)
    assert marked.code == 0, marked.err
    assert marked.json["text"].count("[not supported]") == 6 and not marked.json["left_out"]
    calls = server.calls()
    done = citeloom(*command, "--strict", **settings)
    assert server.calls() == calls
    record = done.json
    assert "slept" not in record["text"] and record["text"].count("compared ensembles of seeds") == 6
    assert {item["section"] for item in record["left_out"]} == {item["section"] for item in record["sections"]}
    written = (tmp_path / "out" / "paper.md").read_text(encoding="utf-8").partition("<!--")[0]
    assert "slept" not in written and written.count("\n## ") == 7
    for citation in record["citations"]:
        assert citation["sentence"] in record["text"]


@pytest.mark.long
def test_a_run_interrupted_in_the_repair_gives_the_same_text(
    citeloom: Citeloom, discussion: Any, server: FakeOpenAI, settings: dict[str, str], tmp_path: Path
) -> None:
    settings["MAX_REPAIRS"] = "2"
    settings["MAX_RETRIES"] = "0"
    server.behaviour = JudgingModel(WRITTEN, f"{DRAFT} It took long.")
    whole, _ = discussion()
    calls = server.calls()
    server.behaviour = JudgingModel(WRITTEN, f"{DRAFT} It took long.")
    for limit in range(calls - 4, calls + 1):  # it stops before the writer, the judge, the repair and the judge again
        done, _ = discussion("--fresh", "--max-calls", str(limit), may_pause=limit < calls)
        assert done.code == (0 if limit == calls else 3)
    assert server.calls() == 2 * calls, "no answer was paid for twice"
    same = ("text", "citations", "findings", "left_out", "warnings", "numbers")
    assert json.dumps([done.json[name] for name in same]) == json.dumps([whole.json[name] for name in same])


def test_strict_applies_only_to_the_call_that_asks_for_it(home: Path, exp: Path, server: FakeOpenAI) -> None:
    server.behaviour = JudgingModel(WRITTEN)
    settings = Settings(
        chat_model="fake", chat_base_url=server.base_url, score_threshold=0, max_repairs=0, max_search_iterations=0
    )
    with open_library(home, settings=settings) as library:
        marked = write_section(library, "discussion", exp)
        strict = write_section(library, "results", exp, strict=True)
        again = write_section(library, "methods", exp)
    assert "[not supported]" in marked["text"] and "[not supported]" in again["text"]
    assert "slept" not in strict["text"] and len(strict["left_out"]) == 3
