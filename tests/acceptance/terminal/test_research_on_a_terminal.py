"""`research` on a real terminal: the answer is shown while it is written, and no part of it twice."""

from __future__ import annotations

import os
import pty
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.cli_process import CLI, environment
from tests.support.event_streams import Gate
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import completion, envelope, markers

QUESTION = "Do ensembles of seeds give better calibrated confidence?"
# A sentence is shown once the next one has begun; the stream stops at the last word of the second of three.
DRAFT = "Ensembles give better calibrated confidence than single networks do{0}. Seeds differ{0}."
WITHIN_SECOND = 29  # chunks


def writes(text: str) -> Any:
    def answer(body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        (first, *_) = markers({"messages": body["messages"][-1:]})
        return envelope(body, content=text.format(f" {first}"))

    return answer


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=writes(DRAFT)) as running:
        yield running


class OnTerminal:
    """A command on a terminal of its own, 100 columns wide."""

    def __init__(self, *arguments: str | Path, **settings: str) -> None:
        self._mine, theirs = pty.openpty()
        self._process = subprocess.Popen(
            [sys.executable, str(CLI), *map(str, arguments)],
            env={**environment(settings), "COLUMNS": "100", "LINES": "40", "TERM": "xterm-256color"},
            stdin=subprocess.DEVNULL,
            stdout=theirs,
            stderr=theirs,
        )
        os.close(theirs)
        self._seen = b""
        self._came = threading.Condition()
        self._reading = threading.Thread(target=self._read)
        self._reading.start()

    def _read(self) -> None:
        while True:
            try:
                more = os.read(self._mine, 65536)
            except OSError:  # the other side is closed
                more = b""
            with self._came:
                self._seen += more
                self._came.notify_all()
            if not more:
                return

    @property
    def text(self) -> str:
        """The text on the screen, without cursor movements and progress lines."""
        plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self._seen.decode("utf-8", "replace")).replace("\r", "\n")
        return "\n".join(line for line in plain.split("\n") if not re.match(r"[\u2800-\u28ff] |  searches:", line))

    def wait_for(self, words: str) -> None:
        with self._came:
            assert self._came.wait_for(lambda: words in " ".join(self.text.split()), 60), self.text

    def interrupt(self) -> None:
        self._process.send_signal(signal.SIGINT)

    def end(self) -> int:
        code = self._process.wait(60)
        self._reading.join()
        os.close(self._mine)
        return code


def test_the_answer_appears_while_it_is_written_and_references_appear_once(server: FakeOpenAI, home: Path) -> None:
    server.gate = Gate(after=WITHIN_SECOND)
    command = OnTerminal("research", QUESTION, "--home", home, CHAT_MODEL="m", CHAT_BASE_URL=server.base_url)
    command.wait_for("confidence than single networks")
    assert "Seeds differ" not in " ".join(command.text.split())
    server.gate.open()
    assert command.end() == 0
    flat = " ".join(command.text.split())
    assert flat.count("Ensembles give better calibrated confidence than single networks do") == 1
    assert flat.count("References") == 1
    assert "That was a draft" not in flat
    assert "[E" not in flat.split("Note:")[0]  # notes name evidence by its id


def test_a_text_changed_by_the_checks_is_shown_once_more(server: FakeOpenAI, home: Path) -> None:
    server.behaviour = writes(DRAFT + " Others agree (Jones et al., 2021).")
    command = OnTerminal(
        "research", QUESTION, "--home", home, CHAT_MODEL="m", CHAT_BASE_URL=server.base_url, MAX_REPAIRS="0"
    )
    assert command.end() == 0
    flat = " ".join(command.text.split())
    before, after = flat.split("That was a draft. The answer after the checks:")
    assert "Others agree (Jones et al., 2021)." in before
    assert "Jones" not in after.split("Next:")[0]
    assert flat.count("References") == 1


def test_a_notice_says_that_an_interrupted_draft_starts_over(server: FakeOpenAI, home: Path) -> None:
    broken: list[Any] = ["cut"]
    server.behaviour = lambda body: broken.pop() if body.get("stream") and broken else writes(DRAFT)(body)
    command = OnTerminal("research", QUESTION, "--home", home, CHAT_MODEL="m", CHAT_BASE_URL=server.base_url)
    assert command.end() == 0
    before, after = command.text.split("The connection broke off; the answer starts over:")
    cut = next(body for body in server.requests if body.get("stream"))
    opening = completion(cut, server.tool_turns)["choices"][0]["message"]["content"].split()[:6]
    assert " ".join(opening) in " ".join(before.split())
    assert "Ensembles give better calibrated" in " ".join(after.split())
    assert "That was a draft" not in after


def test_ctrl_c_during_an_answer_pauses_it_and_the_same_command_resumes(server: FakeOpenAI, home: Path) -> None:
    given = ("research", QUESTION, "--home", home)
    settings = {"CHAT_MODEL": "m", "CHAT_BASE_URL": server.base_url}
    server.gate = Gate(after=WITHIN_SECOND)
    command = OnTerminal(*given, **settings)
    command.wait_for("confidence than single networks")
    calls = server.calls()
    command.interrupt()
    assert command.end() == 3
    assert "Traceback" not in command.text
    # The notice is on its own line below the streamed words.
    assert any(line.startswith("Ensembles give better") for line in command.text.split("\n"))
    server.gate.open()
    again = OnTerminal(*given, **settings)
    assert again.end() == 0
    assert "Seeds differ" in " ".join(again.text.split())
    assert server.requests[calls]["stream"]  # the draft is asked for again, and nothing before it


def test_a_pipe_gets_only_the_final_text(server: FakeOpenAI, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(CLI), "research", QUESTION, "--home", str(home)],
        env=environment({"CHAT_MODEL": "m", "CHAT_BASE_URL": server.base_url}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.startswith(f"# {QUESTION}\n\nEnsembles give")
    assert done.stdout.count("Ensembles give") == 1
    assert "Ensembles give" not in done.stderr
