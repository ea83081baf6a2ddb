"""`citeloom serve` in a process of its own, until the end of the block."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tests.support.cli_process import start

_ADDRESS = re.compile(r"http://[\d.]+:\d+")


@contextmanager
def served(home: Path, *options: str, settings: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a server on this home; ends the process, and fails when it ended before."""
    process = start("--home", home, "serve", "--port", "0", *options, cwd=home.parent, settings=settings)
    try:
        yield address_of(process)
        assert process.poll() is None, process.communicate()
    finally:
        process.terminate()
        process.communicate()


def address_of(process: subprocess.Popen[str]) -> str:
    """The address that a server prints when it can be reached."""
    assert process.stderr is not None
    lines: list[str] = []
    for line in process.stderr:
        lines.append(line)
        if found := _ADDRESS.search(line):
            return found[0]
    raise AssertionError("".join(lines))
