"""Runs programs and functions on untrusted input within limits of time, memory and output.

Whatever runs here is killed on cancellation, on timeout, and when our process ends (`supervisor.py`). A function is
named by its module, so that no code crosses the border; arguments and result are JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, ParamSpec, TypeVar


def bound_memory(limit: int) -> None:
    """Let this process use at most `limit` bytes, so that a file that expands endlessly kills it, not the machine.

    Windows has no such limit.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


P = ParamSpec("P")
T = TypeVar("T")

_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_CORES: Final = 8  # cores that a program may use, so that the wall-clock limit is reached first
_OUTPUT: Final = 256 << 20  # bytes
_ERRORS: Final = 64 << 10  # bytes of error output that are read


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a program: its exit code (128 plus the signal number if killed) and output."""

    code: int
    output: bytes
    errors: str


class OutOfTimeError(Exception):
    """A program was killed because it timed out."""


class StoppedError(Exception):
    """A program was killed, or never started, because its task was cancelled."""


class _Stop:
    """The cancellation state of a task, and its running programs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._leashes: set[_Leash] = set()
        self.asked = False

    def ask(self) -> None:
        with self._lock:
            self.asked = True
            leashes = tuple(self._leashes)
        for leash in leashes:
            leash.cut()

    def add(self, leash: _Leash) -> None:
        with self._lock:
            self._leashes.add(leash)
            asked = self.asked
        if asked:
            leash.cut()

    def discard(self, leash: _Leash) -> None:
        with self._lock:
            self._leashes.discard(leash)


class _Leash:
    """The pipe that a supervisor watches; may be cut once, from any thread."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def cut(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._pipe.close()


_STOP: ContextVar[_Stop | None] = ContextVar("citeloom_stop", default=None)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread` for work that may run programs, which are killed if it is cancelled."""
    stop = _Stop()
    before = _STOP.set(stop)
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except asyncio.CancelledError:
        stop.ask()
        raise
    finally:
        _STOP.reset(before)


def raise_if_stopped() -> None:
    """Raise `StoppedError` in a thread of `in_thread` whose task was cancelled."""
    stop = _STOP.get()
    if stop is not None and stop.asked:
        raise StoppedError


def run(command: Sequence[str], *, seconds: float, env: Mapping[str, str] | None = None) -> Ended:
    """Run a program to completion, with empty standard input.

    Args:
        command: its path and arguments.
        seconds: the timeout after which it is killed.
        env: its complete environment; ours if omitted.

    Raises `OutOfTimeError`, `StoppedError`, and OSError if no process can be created.
    """
    raise_if_stopped()
    # Isolated mode, so that no module in the current folder shadows one of Python's.
    supervisor = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(math.ceil(seconds) * _CORES), str(_OUTPUT)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # In its own session, so that Ctrl-C on the terminal only reaches us.
        with subprocess.Popen(
            [*supervisor, *command],
            stdin=subprocess.PIPE,
            stdout=output,
            stderr=errors,
            env=env,
            start_new_session=True,
        ) as process:
            assert process.stdin is not None
            in_time = _wait(process, _Leash(process.stdin), seconds)
        raise_if_stopped()
        if not in_time:
            raise OutOfTimeError
        output.seek(0)
        errors.seek(0)
        return Ended(process.returncode, output.read(), errors.read(_ERRORS).decode("utf-8", "replace"))


def _wait(process: subprocess.Popen[bytes], leash: _Leash, seconds: float) -> bool:
    """Wait for the program to end; False if it timed out."""
    over = threading.Event()

    def end() -> None:
        over.set()
        leash.cut()

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    stop = _STOP.get()
    if stop is not None:
        stop.add(leash)
    try:
        timer.start()
        process.wait()
    finally:  # also on Ctrl-C, which interrupts the wait itself in a program without an event loop
        timer.cancel()
        leash.cut()
        if stop is not None:
            stop.discard(leash)
        process.wait()
    return not over.is_set()


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
