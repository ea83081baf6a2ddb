"""What the shell keeps and refuses: the last real answer stays usable, and nonsense is not sent as a question."""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import Finished
from tests.support.sample_library import THREE

Chat = Callable[..., Finished]

QUESTION = "How does temperature scaling change the calibration for new wearers?"
UNANSWERED = "ask Which enzyme catalyses lactose synthesis in mammary tissue?"


@pytest.fixture
def chat(home: Path, tmp_path: Path, citeloom: Citeloom, monkeypatch: pytest.MonkeyPatch) -> Chat:
    """`chat` in this process, which reads these lines from a pipe."""

    def give(*lines: str, thread: str = "") -> Finished:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))
        return citeloom("chat", "--home", home, *(["--thread", thread] if thread else []))

    return give


def test_after_an_unanswered_follow_up_the_last_answer_can_be_opened_saved_and_improved(
    chat: Chat, tmp_path: Path
) -> None:
    done = chat(f"research {QUESTION}", UNANSWERED, "summary 1", "save answer.md", "improve shorter")
    assert done.err.count("No papers found relevant") == 1, done.err
    assert "\nFile: " in done.out
    assert QUESTION in (tmp_path / "answer.md").read_text(encoding="utf-8")
    assert done.code == 0, done.err
    # The feedback concerns the last answer, not the unanswered question.
    assert done.out.count(f"# {QUESTION}") == 2, done.out
    thread = re.search(r"chat --thread (chat-\w+)", done.err)
    assert thread is not None
    chat(UNANSWERED, thread=thread[1])
    again = chat("save later.md", "summary 1", thread=thread[1])
    assert again.code == 0, again.err
    assert (tmp_path / "later.md").is_file()


def test_a_list_does_not_discard_the_answer(chat: Chat, tmp_path: Path) -> None:
    done = chat(f"research {QUESTION}", "list", "find seeds", "save kept.md")
    assert done.code == 0, done.err
    assert QUESTION in (tmp_path / "kept.md").read_text(encoding="utf-8")


def test_a_section_lists_its_papers_with_keys(chat: Chat, exp: Path) -> None:
    references = chat(f"section discussion {exp}").out.partition("## References")[2]
    assert any(f"**[1]** {key} - " in references for key in THREE), references


def test_a_line_of_words_found_in_no_paper_gets_a_hint(chat: Chat) -> None:
    lines = ["foo bar", "asdf qwerty", "calibraton temperature"]
    done = chat(*lines)
    assert done.code == 2
    assert done.err.count("neither a command nor a question") == 3
    assert all(f"'ask {line}'" in done.err for line in lines)
    assert "Stage 1" not in done.err


@pytest.mark.long
def test_a_line_that_may_be_a_question_is_asked(chat: Chat) -> None:
    done = chat(
        "temperature scaling",
        "Varga calibration",
        "varga2021calibration limitations?",
        "what else",
        "node degree bias in knowledge graphs",
        "Wie funktioniert Temperaturskalierung",
        "ask foo bar",
    )
    assert "neither a command nor a question" not in done.err
    assert done.code == 0, done.err


@pytest.mark.parametrize("option", ["", "--fulltext "])
def test_find_gives_the_same_papers_in_the_shell_and_on_the_command_line(
    option: str, home: Path, chat: Chat, citeloom: Citeloom
) -> None:
    query = "the calibration of an ensemble"
    found = citeloom("find", *option.split(), query, "--home", home, "--json").json["papers"]
    shown = chat(f"find {option}{query}").out
    numbered = [line.split()[3] for line in shown.splitlines() if line[:3].strip("│ ").isdigit()]
    assert numbered == [paper["key"] for paper in found]


def test_a_thank_you_gets_a_reply_and_keeps_the_last_answer(chat: Chat) -> None:
    done = chat("research How many seeds?", "Thank you!", "Thanks", "ok", "Thanks a lot, that helps!", "summary 1")
    assert done.code == 0, done.err
    assert "neither a command" not in done.err and "Unknown command" not in done.err
    assert done.out.count("nothing was searched") == 4 and "\nFile: " in done.out
    assert done.err.count("Stage 1") == 1
