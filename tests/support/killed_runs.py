"""Repeats one command, killing it until it ends, against a server that counts the requests of each attempt."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli_process import ROOT, Finished, environment, finish, run, start
from tests.support.copied_homes import Address, answers, copied
from tests.support.killing_server import KillingServer, Moment
from tests.support.sample_library import EXPERIMENT, SAMPLES, THREE

CONCURRENCY = 4
# Everything a run writes to disk, as named by `interrupted_section.py`.
EVERY_WRITE = "answer,checkpoint,step,register,file"
SECTIONS = ("introduction", "methods", "results", "discussion", "conclusion", "abstract")
_REPLAYS = (
    # A resumed node reads its answers again, which changes the count of reused answers.
    re.compile(rb'("journal_hits": )\d+'),
    re.compile(rb"(Answers taken from the journal</th><td>)[\d,]+"),
)


@dataclass(frozen=True)
class Write:
    """The `number`th (from 1) of these writes of a process, before or after it happens; 0 only counts them."""

    writes: str
    side: str
    number: int


@dataclass(frozen=True)
class Attempt:
    """How one process ended, what it requested, and what the journal kept of it."""

    finished: Finished
    asked: int
    kept: int

    @property
    def lost(self) -> int:
        """Calls in flight when the process was killed."""
        return self.asked - self.kept

    @property
    def killed(self) -> bool:
        return self.finished.code == -signal.SIGKILL


class KilledRuns:
    """A copy of a home with papers, in which `command` is repeated, each time with a key of its own."""

    def __init__(self, server: KillingServer, template: Address, folder: Path, command: str) -> None:
        self.server = server
        self.folder = folder
        self.home = copied(template, folder)
        self._arguments = (command, "--exp", str(EXPERIMENT), "--out", "out")
        self.attempts: list[Attempt] = []
        self._before = answers(self.home)
        server.forget()

    def attempt(self, at: Moment | Write | None = None) -> Attempt:
        """Run the command, and kill it at that moment; the key of a `Moment` is filled in here."""
        key = f"attempt-{len(self.attempts)}"
        settings = settings_of(self.server, key) | {"HOME": str(self.home)}
        before = answers(self.home)
        if isinstance(at, Write):
            process = start_interrupted(self.folder, at, settings, *self._arguments)
        else:
            self.server.at = Moment(key, at.side, at.number) if at is not None else None
            process = start(*self._arguments, cwd=self.folder, settings=settings)
        self.server.victim = process
        ended = finish(process)
        made = Attempt(ended, self.server.asked[key], answers(self.home) - before)
        self.attempts.append(made)
        assert ended.code in (0, -signal.SIGKILL), ended.err
        # A call is in flight until its answer is on disk, which is slightly longer than its connection is used.
        assert 0 <= made.lost <= (2 * CONCURRENCY if made.killed else 0), ended.err
        return made

    def chain(self, at: Moment | Write) -> list[Attempt]:
        """Each attempt resumes the run and is killed at its own such moment, until one ends."""
        while not self.attempts or self.attempts[-1].killed:
            self.attempt(at)
            assert len(self.attempts) < 300, "a killed run does not move on"
        return self.attempts

    def calls(self) -> int:
        """The requests of all attempts."""
        return sum(attempt.asked for attempt in self.attempts)

    def kept(self) -> int:
        """The number of their answers in the journal."""
        return answers(self.home) - self._before

    def files(self) -> dict[str, bytes]:
        """The files in the output folder by name, without the count of replays.

        A kill while a file is written leaves it under a hidden name next to the previous version; such files do not
        count.
        """
        found = {path.name: path.read_bytes() for path in (self.folder / "out").iterdir() if path.name[0] != "."}
        for name, content in found.items():
            for replays in _REPLAYS:
                found[name] = content = replays.sub(rb"\1-", content)
        return found

    def check_against(self, undisturbed: KilledRuns) -> None:
        """The same files byte for byte, no answer stored twice, and no repeated calls except those lost by kills."""
        mine, theirs = self.files(), undisturbed.files()
        assert mine.keys() == theirs.keys()
        differing = [name for name, content in mine.items() if content != theirs[name]]
        assert not differing, differing
        assert self.kept() == undisturbed.kept()
        assert self.calls() <= undisturbed.calls() + sum(attempt.lost for attempt in self.attempts)


def start_interrupted(folder: Path, at: Write, settings: dict[str, str], *arguments: str) -> subprocess.Popen[str]:
    """Start the program in a folder, to be killed at a write."""
    script = ROOT / "tests" / "support" / "interrupted_section.py"
    return subprocess.Popen(
        [sys.executable, str(script), at.writes, str(at.number), at.side, *arguments],
        cwd=folder,
        env=environment(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )


def settings_of(server: KillingServer, key: str) -> dict[str, str]:
    """Chat and embedding settings for the counting server, which identifies the process by its key."""
    return {
        "CHAT_MODEL": "fake",
        "CHAT_BASE_URL": server.base_url,
        "CHAT_API_KEY": key,
        "EMBEDDING_MODEL": "fake-embedding",
        "EMBEDDING_BASE_URL": server.base_url,
        "EMBEDDING_API_KEY": key,
        "MAX_CONCURRENCY": str(CONCURRENCY),
        "TOP_K_INITIAL": "6",
        "SCORE_THRESHOLD": "0.1",
    }


def home_with_three_papers(server: KillingServer, folder: Path, home: Address = Path("home")) -> Address:
    """A home to copy, embedded by the counting server: a folder in `folder`, or a database."""
    papers = [SAMPLES / f"{key}.md" for key in THREE]
    settings = settings_of(server, "ingest") | {"HOME": str(home)}
    done = run("ingest", *papers, "--bib", SAMPLES / "library.bib", cwd=folder, settings=settings)
    assert done.code == 0, done.err
    return home if isinstance(home, str) else folder / home
