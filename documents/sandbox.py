"""Calls a function on untrusted input in a process of its own, within limits of time and memory.

The function is named by its module, so that no code crosses the border; arguments and result are JSON. A function that
only computes holds the interpreter's lock, which in a thread would keep everybody else waiting.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from .memory_limit import bound_memory
from .subprocesses import OutOfTimeError, run

_THIS: Final = "citeloom.documents.sandbox"


@dataclass(frozen=True, slots=True)
class CallLimits:
    """What a call may use: seconds of time, and bytes of memory."""

    seconds: float
    memory: int


class SandboxError(Exception):
    """A call that ended without a result; the message is the reason."""


def sandboxed(function: Callable[..., Any], limits: CallLimits, *arguments: Any) -> Any:
    """The result of `function(*arguments)`, called in a process of its own; blocks.

    It must be a function of a module of ours, that raises nothing and needs nothing of this process. Raises
    `SandboxError` if it fails, passes a limit or crashes; `StoppedError` if it is cancelled.
    """
    with tempfile.TemporaryDirectory(prefix="citeloom-") as folder:
        given = Path(folder) / "arguments.json"
        given.write_text(json.dumps(arguments), encoding="utf-8")
        # -P: a json.py in the current folder must not be imported.
        command = [sys.executable, "-P", "-m", _THIS, function.__module__, function.__qualname__]
        try:
            ended = run([*command, str(limits.memory), str(given)], seconds=limits.seconds)
        except OutOfTimeError:
            raise SandboxError(f"took longer than {limits.seconds:g} seconds") from None
    try:
        return json.loads(ended.output)
    except ValueError:
        raise SandboxError(f"ended with exit code {ended.code}") from None


def main() -> None:
    """Print the result of the function that the arguments name."""
    module, name, memory, file = sys.argv[1:]
    answer = os.dup(1)
    os.dup2(2, 1)  # what a library prints must not mix with the result
    function = getattr(importlib.import_module(module), name)
    bound_memory(int(memory))
    result = function(*json.loads(Path(file).read_bytes()))
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(result, out)


if __name__ == "__main__":
    main()
