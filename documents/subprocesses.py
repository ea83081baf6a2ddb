"""Runs a program within limits; it is killed on cancellation, on timeout, and when our process ends.

Every program that reads untrusted input is run here. See `supervisor.py` for how it is killed with our process.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final, ParamSpec, TypeVar

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
