"""Workers that need the same answers, each a process of its own, and what they paid for."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tests.support.cli_process import ROOT


@dataclass(frozen=True)
class CallWorkers:
    """Started workers; `folder` has a file for each with the keys that it paid for."""

    folder: Path
    processes: Sequence[subprocess.Popen[str]]

    def paid(self) -> list[list[str]]:
        """The keys that each worker has paid for so far."""
        return [(self.folder / str(seed)).read_text().split() for seed in range(len(self.processes))]

    @property
    def running(self) -> bool:
        """Whether any of them has work left."""
        return any(process.poll() is None for process in self.processes)

    def ended(self, *workers: int) -> list[int]:
        """The exit codes of these workers, once they have ended."""
        for worker in workers:
            self.processes[worker].communicate()
        return [self.processes[worker].returncode for worker in workers]


@contextmanager
def call_workers(
    url: str, folder: Path, calls: int, prefixes: Sequence[Sequence[str]], most: int | None = None
) -> Iterator[CallWorkers]:
    """A worker for each prefix of a command line; killed at the end of the block if they still run."""
    folder.mkdir(exist_ok=True)
    given = [] if most is None else [str(most)]
    command = [sys.executable, "-m", "tests.support.shared_calls", url]
    started = [
        subprocess.Popen(
            [*prefix, *command, str(seed), str(calls), str(folder / str(seed)), *given],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
        )
        for seed, prefix in enumerate(prefixes)
    ]
    try:
        for process in started:
            assert process.stdout is not None and process.stdout.readline() == "ready\n"
        for process in started:
            assert process.stdin is not None
            process.stdin.write("go\n")
            process.stdin.flush()
        yield CallWorkers(folder, started)
    finally:
        for process in started:
            process.kill()
            process.communicate()
