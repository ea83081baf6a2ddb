"""Runs a program within limits; it ends when its work is cancelled, when its time is over, and when we end.

Every program that reads what others wrote is run here. See `supervisor.py` for how it is ended with us.
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
_CORES: Final = 8  # that a program may keep busy, so that its time is over first by the clock
_OUTPUT: Final = 256 << 20  # bytes
_ERRORS: Final = 64 << 10  # bytes of what it complains about that are read


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended: its exit code, 128 and more for a signal, and what it wrote."""

    code: int
    output: bytes
    errors: str


class OutOfTimeError(Exception):
    """A program that was killed because its time was over."""


class StoppedError(Exception):
    """A program that was killed, or never started, because the work that it was for was cancelled."""


class _Stop:
    """Whether a piece of work was cancelled, and which programs it has under way."""

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
    """The pipe that a supervisor watches; cut once, from any thread."""

    def __init__(self, pipe: IO[bytes]) -> None:
        self._pipe = pipe
        self._lock = threading.Lock()

    def cut(self) -> None:
        with self._lock, contextlib.suppress(OSError):
            self._pipe.close()


_STOP: ContextVar[_Stop | None] = ContextVar("citeloom_stop", default=None)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread` for work that may wait for programs: they are killed when it is cancelled."""
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
    """Raise `StoppedError` in a thread of `in_thread` whose work was cancelled."""
    stop = _STOP.get()
    if stop is not None and stop.asked:
        raise StoppedError


def run(command: Sequence[str], *, seconds: float, env: Mapping[str, str] | None = None) -> Ended:
    """Run a program to its end, nothing on its standard input.

    Args:
        command: its path and arguments.
        seconds: after which it is killed.
        env: all of its environment; ours when left out.

    Raises `OutOfTimeError`, `StoppedError`, and OSError when no process can be made.
    """
    raise_if_stopped()
    # Isolated, so that no module of the folder where the user stands is taken for one of Python's.
    supervisor = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(math.ceil(seconds) * _CORES), str(_OUTPUT)]
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # In a session of its own: Ctrl-C on the terminal is ours to answer.
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
    """Wait for the program, or for its time to be over; False then."""
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
    finally:  # also for Ctrl-C, which reaches the wait itself in a program without an event loop
        timer.cancel()
        leash.cut()
        if stop is not None:
            stop.discard(leash)
        process.wait()
    return not over.is_set()
