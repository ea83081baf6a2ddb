"""The shell in a process of its own on a real terminal, operated as a person would."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pexpect

from tests.support.cli_process import CLI, environment

PROMPT = "You:"
_CONTROL = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b[()][A-Z0-9]|\x1b\][^\x07]*\x07|\x1b[=>]|\r")
_PATIENCE = 60  # seconds; a test that waits longer has failed


class ShellOnTerminal:
    """Types lines and waits for expected output, so that no test has to sleep."""

    def __init__(self, child: pexpect.spawn) -> None:
        self.child = child

    def type(self, line: str, *awaited: str) -> str:
        """Type a line, wait for each of these texts in turn and for the next prompt; returns the output in between."""
        self.child.sendline(line)
        return self.sees(*awaited, PROMPT)

    def press(self, key: str) -> None:
        """Send characters unchanged, such as Tab; `Ctrl-C` and `Ctrl-D` by name."""
        if key.startswith("Ctrl-"):
            self.child.sendcontrol(key[-1].lower())
        else:
            self.child.send(key)

    def sees(self, *awaited: str) -> str:
        """Wait for each of these texts in turn; returns the output so far as a person reads it."""
        seen = ""
        for text in awaited:
            self.child.expect_exact(text)
            seen += self.child.before + self.child.after
        return _CONTROL.sub("", seen)

    def ends(self) -> int:
        """Wait for the end; returns the exit code."""
        self.child.expect_exact(pexpect.EOF)
        self.child.wait()
        return int(self.child.exitstatus)


@contextmanager
def shell(*arguments: str | Path, cwd: Path, **settings: str) -> Iterator[ShellOnTerminal]:
    """`chat` on a terminal of 160 columns; settings by name, `PATH` and `DISPLAY` under their own names."""
    plain: Mapping[str, str] = {name: settings.pop(name) for name in ("PATH", "DISPLAY") if name in settings}
    child = pexpect.spawn(
        sys.executable,
        [str(CLI), "chat", *map(str, arguments)],
        cwd=str(cwd),
        # The terminal of a test does not answer queries for its cursor position.
        env={**environment(settings), "DISPLAY": "", "PROMPT_TOOLKIT_NO_CPR": "1", "TERM": "xterm-256color", **plain},
        dimensions=(60, 160),
        encoding="utf-8",
        timeout=_PATIENCE,
    )
    try:
        yield ShellOnTerminal(child)
    finally:
        child.close(force=True)
