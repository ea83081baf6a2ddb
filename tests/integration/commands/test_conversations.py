"""Conversations from the command line and from Python: listed, shown, exported, deleted, continued."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from collections.abc import Iterator
from contextlib import aclosing
from pathlib import Path

import pytest

import citeloom as package
from citeloom import CiteloomError, Conversation, Settings, open_library
from citeloom.errors import ConfigurationError
from tests.integration.commands.conftest import Citeloom
from tests.integration.commands.test_shell_in_pipe import piped
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI

QUESTION = "How does temperature scaling change the calibration for new wearers?"
FOLLOWING = "What about its limits?"


@pytest.fixture(scope="module")
def spoken(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A home with a conversation of two turns, without a chat model, and its id; to be copied, never written to."""
    folder = tmp_path_factory.mktemp("conversation")
    home = Path(shutil.copytree(sample_home, folder / "home"))
    done = piped(f"research {QUESTION}\n{FOLLOWING}\n", home, folder)
    thread = re.search(r"chat --thread (chat-\w+)", done.stderr)
    assert thread is not None, done.stderr
    return home, thread[1]


@pytest.fixture
def told(spoken: tuple[Path, str], home: Path) -> str:
    """The id of the conversation, in a separate home."""
    made, thread = spoken
    shutil.rmtree(home)
    shutil.copytree(made, home)
    return thread


def test_conversations_are_listed_shown_exported_and_deleted(
    told: str, home: Path, tmp_path: Path, citeloom: Citeloom
) -> None:
    (listed,) = citeloom("conversations", "list", "--json", "--home", home).json
    assert (listed["thread_id"], listed["turns"], listed["title"]) == (told, 2, QUESTION)
    assert QUESTION in citeloom("conversations", "list", "--home", home).out
    shown = citeloom("conversations", "show", told[:9], "--home", home).out
    assert shown.startswith(f"# {QUESTION}\n") and "## 2. What about its limits? (What about" in shown
    record = citeloom("conversations", "show", told, "--json", "--home", home).json
    assert [turn["asked"] for turn in record["turns"]] == [QUESTION, FOLLOWING]
    first = record["turns"][0]
    assert first["answered"] is None and first["references"][0]["label"] == "1"
    assert citeloom("conversations", "export", told, tmp_path / "talk.md", "--home", home).code == 0
    assert (tmp_path / "talk.md").read_text(encoding="utf-8").strip() == shown.strip()
    (tmp_path / "talk.md").write_text("mine", encoding="utf-8")
    kept = citeloom("conversations", "export", told, tmp_path / "talk.md", "--home", home)
    assert kept.code == 0 and "talk.2.md" in kept.err and (tmp_path / "talk.md").read_text(encoding="utf-8") == "mine"
    citeloom("conversations", "export", told, tmp_path / "talk.json", "--home", home)
    assert json.loads((tmp_path / "talk.json").read_text(encoding="utf-8"))["turns"] == record["turns"]
    assert citeloom("conversations", "delete", told, "--home", home).code == 0
    assert citeloom("conversations", "list", "--json", "--home", home).json == []
    gone = citeloom("conversations", "show", told, "--home", home)
    assert gone.code == 2 and "There is no conversation" in gone.err


def test_old_conversations_expire_as_the_setting_says(told: str, home: Path, citeloom: Citeloom) -> None:
    import sqlite3

    assert citeloom("conversations", "list", "--json", "--home", home, CONVERSATION_DAYS="30").json
    connection = sqlite3.connect(home / "runs.sqlite")
    with connection:
        connection.execute("UPDATE conversations SET updated_at = updated_at - 31 * 86400")
    connection.close()
    done = citeloom("conversations", "list", "--json", "--home", home, CONVERSATION_DAYS="30")
    assert done.json == [] and "Deleted 1 conversation unused for 30 days" in done.err


def test_an_unknown_thread_is_refused_before_the_shell_opens(home: Path, citeloom: Citeloom) -> None:
    done = citeloom("chat", "--thread", "chat-none", "--home", home)
    assert done.code == 2 and "There is no conversation 'chat-none'" in done.err


def test_python_can_converse_without_an_event_loop(home: Path, tmp_path: Path) -> None:
    with open_library(home) as library, Conversation(library) as talk:
        assert talk.turns == []
        with pytest.raises(CiteloomError, match="no question has been answered yet"):
            talk.export(tmp_path / "none.md")
        first = talk.ask(QUESTION)
        assert (first["number"], first["outcome"], first["question"]) == (1, "passages", QUESTION)
        second = talk.ask(FOLLOWING)
        assert second["question"] != FOLLOWING and second["asked"] == FOLLOWING
        thanked = talk.ask("Thank you, that was helpful!")
        assert (thanked["outcome"], thanked["question"]) == ("nothing", "Thank you, that was helpful!")
        assert "nothing was searched" in thanked["text"]
        assert talk.ask("And of its limits?")["question"] == "And of temperature scaling's limits?"
        alone = talk.ask("Where is the sensor worn?", alone=True)
        assert alone["question"] == "Where is the sensor worn?"
        talk.export(tmp_path / "talk.md")
        thread = talk.thread_id
    with open_library(home) as library:
        again = Conversation(library, thread[:9])
        assert [turn["number"] for turn in again.turns] == [1, 2, 3, 4, 5]
        assert again.turns[0]["text"] == first["text"]
        with pytest.raises(CiteloomError):
            Conversation(library, "chat-none")
    assert QUESTION in (tmp_path / "talk.md").read_text(encoding="utf-8")


def test_feedback_adds_what_was_missing_without_a_chat_model(home: Path) -> None:
    with open_library(home) as library:
        talk = Conversation(library)
        first = talk.ask(QUESTION)
        better = talk.improve("say more about random seeds")
    assert better["question"] == first["question"]
    assert not any("seed" in citation["quote"] for citation in first["citations"])
    assert any("seed" in citation["quote"] for citation in better["citations"])
    assert {citation["key"] for citation in first["citations"]} <= {citation["key"] for citation in better["citations"]}


def test_feedback_on_a_topic_outside_the_library_adds_nothing_without_a_chat_model(home: Path) -> None:
    with open_library(home) as library:
        talk = Conversation(library)
        first = talk.ask(QUESTION)
        better = talk.improve("say more about medieval sonnets")
    assert {item["key"] for item in better["citations"]} <= {item["key"] for item in first["citations"]}
    assert len(better["citations"]) <= len(first["citations"])
    assert not any("sonnet" in citation["quote"] for citation in better["citations"])


@pytest.fixture
def librarian() -> Iterator[tuple[Librarian, FakeOpenAI]]:
    made = Librarian()
    with FakeOpenAI(behaviour=made) as server:
        yield made, server


def test_python_can_converse_inside_an_event_loop(home: Path, librarian: tuple[Librarian, FakeOpenAI]) -> None:
    model, server = librarian
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, chat_api_key="k", max_repairs=0)  # type: ignore[arg-type]

    async def talk() -> None:
        async with package.aopen_library(home, settings=settings) as library, Conversation(library) as talk:
            with pytest.raises(ConfigurationError, match=r"await citeloom\.Conversation\.aask"):
                talk.ask(QUESTION)
            first = await talk.aask(QUESTION)
            kinds = []
            async with aclosing(talk.stream(FOLLOWING)) as events:
                async for event in events:
                    kinds.append(event["kind"])
                    last = event
            assert last["kind"] == "done" and last["result"]["number"] == 2
            assert {"stage", "evidence", "token", "citation"} <= set(kinds)
            shown = [entry["label"] for entry in first["references"]]
            numbers = {entry["key"]: entry["label"] for entry in last["result"]["references"]}
            for entry in first["references"]:
                assert numbers.get(entry["key"], entry["label"]) == entry["label"]
            assert shown[0] == "1"
            better = await talk.aimprove("shorter")
            assert better["question"] == last["result"]["question"] and "shorter" in model.prompts[-1]

    asyncio.run(talk())
