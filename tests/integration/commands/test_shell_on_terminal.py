"""`chat` as a person uses it, on a terminal: lists and their numbers, files, errors, Ctrl-C."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.support.cli_process import CLI
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.shell_on_terminal import PROMPT, shell

pytest.importorskip("pexpect", reason="terminals of this system cannot be driven")


def test_numbers_refer_to_the_papers_of_the_last_list(home: Path, tmp_path: Path) -> None:
    with shell("--home", home, cwd=tmp_path) as person:
        person.sees("3 papers", PROMPT)
        listed = person.type("list", "obrien2019seeds", "okafor2022ensembles", "varga2021calibration", "Next steps")
        assert "│ 2 │ okafor2022ensembles" in listed
        shown = person.type("summary 3", "varga2021calibration: ", "Next steps")
        assert "File: " in shown and "Abstract [" in shown
        found = person.type("find calibration", "papers, page 1", "Next steps")
        assert "obrien2019seeds" in found
        person.type("summary 1", "obrien2019seeds: ", "Next steps")
        person.type("summary 9", "The last list has no number 9")
        person.type("summary 1", "obrien2019seeds: ")
        person.press("Ctrl-D")
        assert person.ends() == 0


@pytest.mark.long
def test_results_are_saved_under_the_question_without_overwriting_a_file(home: Path, tmp_path: Path) -> None:
    with shell("--home", home, cwd=tmp_path) as person:
        person.sees(PROMPT)
        person.type("save", "There is nothing to save.")
        person.type("sem-search How well are scores calibrated?", "passages", "Next steps")
        person.type("save", "Search results saved to:")
        person.type("save mine.md", "Search results saved to:")
        (tmp_path / "mine.md").write_text("my own words", encoding="utf-8")
        person.type("save mine.md", "mine.2.md")
        person.type("save mine.pdf", "saved as markdown")
        person.child.sendline("quit")
        assert person.ends() == 0
    (saved,) = (tmp_path / "results").iterdir()
    assert saved.name.startswith("how-well-are-scores-calibrated_20")
    assert saved.read_text(encoding="utf-8") == (tmp_path / "mine.2.md").read_text(encoding="utf-8")
    assert (tmp_path / "mine.md").read_text(encoding="utf-8") == "my own words"
    assert "varga2021calibration" in saved.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.skipif(os.uname().sysname != "Linux", reason="the opener of this system cannot be replaced on PATH")
def test_open_uses_the_systems_opener_or_shows_the_path(home: Path, tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    opener = programs / "xdg-open"
    opener.write_text(f'#!/bin/sh\necho "$@" >> "{tmp_path}/opened"\n', encoding="utf-8")
    opener.chmod(0o755)
    path = f"{programs}:{os.environ['PATH']}"
    with shell("--home", home, cwd=tmp_path, PATH=path, DISPLAY=":7") as person:
        person.sees(PROMPT)
        person.type("list", "Next steps")
        person.type("open 1", "Opened with", "obrien2019seeds.md")
        opener.write_text("#!/bin/sh\nexit 4\n", encoding="utf-8")
        person.type("open 1", "could not open it (exit code 4).", "obrien2019seeds.md")
        person.type("open nobody2000", "no paper 'nobody2000'")
    assert (tmp_path / "opened").read_text(encoding="utf-8").endswith("obrien2019seeds.md\n")
    with shell("--home", home, cwd=tmp_path, PATH=path) as person:
        person.sees(PROMPT)
        person.type("open varga2021calibration", "File: ", "varga2021calibration.md")


def test_an_unknown_command_suggests_a_similar_one(home: Path, tmp_path: Path) -> None:
    with shell("--home", home, cwd=tmp_path) as person:
        person.sees(PROMPT)
        person.type("fnd calibration", "Did you mean 'find calibration'?")
        person.type("xyzzy", "'help' lists the commands")
        told = person.type("help", "rebuild-index", "quit")
        assert "summary N|KEY" in told


@pytest.mark.long
def test_an_empty_library_is_reported_at_once_and_works_when_papers_are_added(home: Path, tmp_path: Path) -> None:
    empty = tmp_path / "later"
    with shell("--home", empty, cwd=tmp_path) as person:
        person.sees(f"The library is empty. Index your papers first: python {CLI} ingest PAPERS --bib FILE.", PROMPT)
        person.type("list", "no paper is indexed here. Index your papers first")
        home.rename(empty)
        person.type("list", "3 papers")


@pytest.mark.long
def test_a_library_that_cannot_be_opened_is_reported_at_the_prompt(home: Path, tmp_path: Path) -> None:
    with shell(
        "--home", home, cwd=tmp_path, EMBEDDING_MODEL="another", EMBEDDING_BASE_URL="http://127.0.0.1:9"
    ) as person:
        person.sees(PROMPT)
        person.sees("was created with the embedding model")
        person.type("list", "was created with the embedding model")
        person.press("Ctrl-D")
        assert person.ends() == 0


@pytest.mark.long
def test_lines_are_remembered_and_completed(home: Path, tmp_path: Path) -> None:
    with shell("--home", home, cwd=tmp_path) as person:
        person.sees(PROMPT)
        person.type("find calibration", "papers, page 1", "Next steps")
        person.press("Ctrl-C")
        person.sees("Ctrl-D or 'quit' leaves.", PROMPT)
        person.child.sendline("quit")
        assert person.ends() == 0
    with shell("--home", home, cwd=tmp_path) as person:
        person.sees(PROMPT)
        person.press("\x1b[A\x1b[A\r")  # up, up
        person.sees("papers, page 1", "Next steps", PROMPT)
        person.press("summary var\t")
        person.sees("ga2021calibration")
        person.type("", "varga2021calibration: ")


@pytest.mark.long
def test_ctrl_c_pauses_a_section_and_resume_pays_for_no_call_twice(home: Path, exp: Path, tmp_path: Path) -> None:
    hung: list[Json] = []

    def hang_once(body: Json) -> str | None:
        writing = not body.get("response_format") and not body.get("tools")
        if writing and not hung:
            hung.append(body)
            return "hang"
        return None

    with (
        FakeOpenAI(behaviour=hang_once) as server,  # type: ignore[arg-type]
        shell(
            "--home",
            home,
            "--exp",
            exp,
            cwd=tmp_path,
            CHAT_MODEL="fake",
            CHAT_BASE_URL=server.base_url,
            CHAT_API_KEY="k",
        ) as person,
    ):
        person.sees(PROMPT)
        person.type("resume", "Nothing is paused.")
        person.child.sendline("section discussion")
        person.sees("writing the discussion")
        person.press("Ctrl-C")
        person.sees("Completed calls are saved", PROMPT)
        person.type("list", "varga2021calibration", "Next steps")
        person.type("resume", "Section", "References", "Next steps")
        person.type("save", "Section saved to:", ".evidence.html")
        person.type("section discusion", "Did you mean 'discussion'?")
        asked = [body["messages"] for body in server.requests if body not in hung]
    assert len({str(messages) for messages in asked}) == len(asked)
    assert sorted(path.suffix for path in (tmp_path / "results").iterdir()) == [".bib", ".html", ".json", ".md"]
