"""Questions in the shell on a terminal: stages, answers, follow-ups and interruptions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.shell_on_terminal import PROMPT, ShellOnTerminal, shell

pytest.importorskip("pexpect", reason="terminals of this system cannot be driven")

QUESTION = "How are scores of wearers calibrated?"
OFF_TOPIC = "quantum computing applications in medieval literature"
STAGES = (
    "Stage 1: Searching summaries",
    "papers to look into",
    "Stage 2: Gathering",
    "Retrieved",
    "Stage 3: Synthesizing",
)


@pytest.fixture
def librarian() -> Librarian:
    return Librarian()


@pytest.fixture
def server(librarian: Librarian) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=librarian) as running:
        yield running


def person_at(home: Path, server: FakeOpenAI, cwd: Path, *arguments: str) -> Any:
    chat = {"CHAT_MODEL": "fake", "CHAT_BASE_URL": server.base_url, "CHAT_API_KEY": "k", "MAX_REPAIRS": "0"}
    return shell("--home", home, *arguments, cwd=cwd, **chat)


def asked(person: ShellOnTerminal, question: str, *more: str) -> str:
    """Ask, and wait through all stages for the answer."""
    return person.type(question, *STAGES, "Research Results", "References", *more, "Next steps")


def finds_nothing(person: ShellOnTerminal, librarian: Librarian) -> None:
    librarian.score = 0.0
    person.type(
        f"research {OFF_TOPIC}",
        "Stage 1",
        f'No papers found relevant to query: "{OFF_TOPIC}". Try refining',
        "Looked at:",
    )


def cited_keys(shown: str) -> dict[str, str]:
    """The key of each number in the references of an answer as they appear in its panel."""
    _, _, references = shown.partition("References")
    lines = " ".join(references.replace("│", " ").split())
    return dict(re.findall(r"• \[(\d)\] [^•]*?\((\w+\d{4}\w+)\)", lines))


def test_an_answer_shows_its_stages_references_and_next_steps(home: Path, server: FakeOpenAI, tmp_path: Path) -> None:
    with person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        shown = asked(person, f"research {QUESTION}")
        assert re.search(r"Found \d+ papers to look into", shown)
        assert re.search(r"Retrieved \d+ content chunks", shown)
        assert QUESTION in shown
        assert "[1]" in shown
        key = cited_keys(shown)["1"]
        person.type("summary 1", f"{key}: ")
        person.type("open 1", "File: ", f"{key}.md")


def test_an_answer_is_improved_and_saved(home: Path, server: FakeOpenAI, librarian: Librarian, tmp_path: Path) -> None:
    with person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        person.type("improve shorter", "There is no answer to improve.")
        asked(person, f"research {QUESTION}")
        librarian.said = "Feedback was heeded in this way"
        shown = person.type(
            "improve say more on wearers", "Improving research answer", *STAGES, "Research Results", "Next"
        )
        assert "Feedback was heeded in this way" in " ".join(shown.split())
        person.type("save", "Saving research results...", "Research results saved to:", ".evidence.html")
    (markdown,) = (tmp_path / "results").glob("how-are-scores-of-wearers-calibrated_*.md")
    text = markdown.read_text(encoding="utf-8")
    assert text.startswith(f"# {QUESTION}\n")
    assert "Feedback was heeded in this way" in text and "## References" in text
    assert markdown.with_suffix(".bib").is_file()


def test_an_empty_search_leaves_a_clean_state(
    home: Path, server: FakeOpenAI, librarian: Librarian, tmp_path: Path
) -> None:
    with person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        finds_nothing(person, librarian)
        person.type("summary 1", "There is no list that 1 could refer to")
        person.type("save", "There is nothing to save.")
        person.type("improve shorter", "There is no answer to improve.")


def test_an_empty_search_keeps_the_last_answer(
    home: Path, server: FakeOpenAI, librarian: Librarian, tmp_path: Path
) -> None:
    with person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        key = cited_keys(asked(person, f"research {QUESTION}"))["1"]
        finds_nothing(person, librarian)
        person.type("summary 1", f"{key}: ")
        person.type("save", "Research results saved to:")
    (markdown,) = (tmp_path / "results").glob("*.md")
    assert markdown.read_text(encoding="utf-8").startswith(f"# {QUESTION}\n")


def test_following_up_keeps_the_numbers_and_continues_in_another_shell(
    home: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    with person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        first = asked(person, f"research {QUESTION}")
        second = person.type("What about their limits?", "Understood as: ", *STAGES, "Research Results", "Next steps")
        numbers = cited_keys(first)
        assert numbers and cited_keys(second)
        for number, key in cited_keys(second).items():
            assert numbers.setdefault(number, key) == key
        person.press("Ctrl-D")
        left = person.sees("chat --thread chat-")
        thread = person.child.readline().strip()
        assert "To continue this conversation" in left and person.ends() == 0
    with person_at(home, server, tmp_path, "--thread", f"chat-{thread}") as person:
        person.sees("2 turns. The last question:", PROMPT)
        number, key = next(iter(numbers.items()))
        person.type(f"summary {number}", f"{key}: ")
        third = person.type("and what else?", "Understood as: ", *STAGES, "Research Results", "Next steps")
        assert cited_keys(third)
        for number, key in cited_keys(third).items():
            assert numbers.setdefault(number, key) == key


def test_an_answer_interrupted_by_ctrl_c_or_kill_loses_nothing(
    home: Path, server: FakeOpenAI, librarian: Librarian, tmp_path: Path
) -> None:
    librarian.hang = {1, 2}  # the writer's first request and its second
    with person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        person.child.sendline(f"research {QUESTION}")
        person.sees("Stage 3: Synthesizing")
        person.press("Ctrl-C")
        person.sees("Completed calls are saved; `resume` continues.", PROMPT)
        person.type("find calibration", "papers, page 1")
        person.child.sendline("resume")
        person.sees("Resuming this question at step 'answer'.", "Stage 3: Synthesizing")
        librarian.reached[2].wait()
        person.child.kill(9)
        person.child.wait()
    threads = [line for line in _conversations(home) if line.startswith("chat-")]
    with person_at(home, server, tmp_path, "--thread", threads[0]) as person:
        person.sees("Interrupted question: ", "`resume` continues it.")
        person.type("resume", "Resuming this question", "Research Results", "References", "Next steps")
    answered = [body for body in server.requests if body not in librarian.hung]
    assert len({str(body["messages"]) for body in answered}) == len(answered), "no answer was paid for twice"


def _conversations(home: Path) -> list[str]:
    from citeloom.stores.folder_home import FolderHome
    from citeloom.stores.run_register import ConversationRegister
    from tests.support.home_tables import run_tables

    return [entry.thread_id for entry in ConversationRegister(run_tables(FolderHome(home).runs_file)).all()]


def test_a_model_that_refuses_is_reported_with_its_stage(home: Path, tmp_path: Path, librarian: Librarian) -> None:
    from tests.support.openai_server import Status

    def refuse_writing(body: Json) -> Any:
        made = librarian(body)
        return Status(400, "the prompt is too long") if body in librarian.writing else made

    with FakeOpenAI(behaviour=refuse_writing) as server, person_at(home, server, tmp_path) as person:
        person.sees(PROMPT)
        person.type(f"research {QUESTION}", "Stage 3", "Failed to synthesize research answer:", "too long")
        person.type("summary 1", "There is no list that 1 could refer to")
        person.type("list", "3 papers")
