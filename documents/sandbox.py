"""Runs programs and functions on untrusted input within limits of time, memory and output.

Whatever runs here is killed on cancellation, on timeout, and when our process ends (`supervisor.py`). A purely
computing function runs in a process too, since in a thread it would hold the interpreter's lock and block everything
else. It is passed by module and name, so no code crosses the process boundary: arguments and result are JSON.
"""

from __future__ import annotations

import asyncio
import base64
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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final, ParamSpec, TypeVar

from ..errors import InputError
from .safe_files import FileRefusedError

P = ParamSpec("P")
T = TypeVar("T")

_THIS: Final = "citeloom.documents.sandbox"
_SUPERVISOR: Final = Path(__file__).with_name("supervisor.py")
_CORES: Final = 8  # CPU seconds per second of the wall-clock limit, so that the latter is reached first
_OUTPUT: Final = 256 << 20  # bytes
_ERRORS: Final = 64 << 10  # bytes of error output that are read
_LONG: Final = 64 << 10  # characters of arguments; longer ones are passed in a file
_BYTES: Final = "$base64"  # bytes are encoded as a JSON object with this as its only key


@dataclass(frozen=True, slots=True)
class Ended:
    """The result of a program: its exit code (128 plus the signal number if killed) and output."""

    code: int
    output: bytes
    errors: str


@dataclass(frozen=True, slots=True)
class CallLimits:
    """The limits of a call: seconds of time and bytes of memory."""

    seconds: float
    memory: int


class OutOfTimeError(Exception):
    """A program was killed because it timed out."""


class StoppedError(Exception):
    """A program was killed, or never started, because its task was cancelled."""


class SandboxError(Exception):
    """A call that ended without a result; the message is the reason."""


class CancelToken:
    """The cancellation state of a task, and the pipes of its running programs: closing one kills its program."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipes: set[IO[bytes]] = set()
        self.cancelled = False

    def cancel(self) -> None:
        """Kill the running programs, and all that are added later."""
        with self._lock:
            self.cancelled = True
            for pipe in self._pipes:
                pipe.close()

    def add(self, pipe: IO[bytes]) -> None:
        with self._lock:
            self._pipes.add(pipe)
            if self.cancelled:
                pipe.close()

    def discard(self, pipe: IO[bytes]) -> None:
        with self._lock:
            self._pipes.discard(pipe)


_UNCANCELLED: Final = CancelToken()
_TOKEN: ContextVar[CancelToken] = ContextVar("citeloom_cancel_token", default=_UNCANCELLED)


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """`asyncio.to_thread` for work that may run programs, which are killed if it is cancelled."""
    token = CancelToken()
    before = _TOKEN.set(token)
    try:
        return await asyncio.to_thread(function, *args, **kwargs)
    except asyncio.CancelledError:
        token.cancel()
        raise
    finally:
        _TOKEN.reset(before)


def raise_if_stopped() -> None:
    """Raise `StoppedError` in a thread of `in_thread` whose task was cancelled."""
    if _TOKEN.get().cancelled:
        raise StoppedError


def run(
    command: Sequence[str], *, seconds: float, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> Ended:
    """Run a program without input, in the environment `env` or ours, in a folder, and kill it after some seconds.

    Raises `OutOfTimeError`, `StoppedError`, and OSError if no process can be created.
    """
    raise_if_stopped()
    # Isolated mode, so that no module in the current folder shadows one of Python's.
    supervisor = [sys.executable, "-I", "-S", str(_SUPERVISOR), str(math.ceil(seconds) * _CORES), str(_OUTPUT)]
    token, over = _TOKEN.get(), threading.Event()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        # In its own session, so that Ctrl-C on the terminal only reaches us. Its input is unbuffered, so that any
        # thread may close it, and more than once.
        process: subprocess.Popen[bytes]
        streams: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": output, "stderr": errors, "cwd": cwd}
        with subprocess.Popen([*supervisor, *command], 0, env=env, start_new_session=True, **streams) as process:
            pipe = process.stdin
            assert pipe is not None

            def end() -> None:
                over.set()
                pipe.close()

            timer = threading.Timer(seconds, end)
            timer.daemon = True
            token.add(pipe)
            try:
                timer.start()
                process.wait()
            finally:  # also on Ctrl-C, which interrupts the wait itself in a program without an event loop
                timer.cancel()
                pipe.close()
                token.discard(pipe)
                process.wait()
        raise_if_stopped()
        if over.is_set():
            raise OutOfTimeError
        output.seek(0)
        errors.seek(0)
        return Ended(process.returncode, output.read(), errors.read(_ERRORS).decode("utf-8", "replace"))


def run_sandboxed(function: Callable[..., Any], limits: CallLimits, *arguments: Any) -> Any:
    """Call `function(*arguments)` in a separate process and return its result; blocks.

    `function` must be in our modules and need nothing from this process. Arguments and result are plain data and bytes;
    dataclasses arrive as dictionaries and paths as text. Raises `FileRefusedError` if the function refuses its input,
    `SandboxError` if it otherwise fails, crashes or exceeds a limit, and `StoppedError` if cancelled.
    """
    given = json.dumps(arguments, default=_as_plain)
    with contextlib.ExitStack() as stack:
        if len(given) > _LONG:
            file = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="citeloom-"))) / "arguments.json"
            file.write_text(given, encoding="utf-8")
            given = str(file)
        # -P: a json.py in the current folder must not be imported.
        command = [sys.executable, "-P", "-m", _THIS, function.__module__, function.__qualname__]
        try:
            ended = run([*command, str(limits.memory), given], seconds=limits.seconds)
        except OutOfTimeError:
            raise SandboxError(f"took longer than {limits.seconds:g} seconds") from None
    try:
        answer = json.loads(ended.output, object_hook=_from_plain)
        if "refused" not in answer:
            return answer["result"]
    except (ValueError, KeyError, TypeError):
        raise SandboxError(f"ended with exit code {ended.code}") from None
    raise FileRefusedError(str(answer["refused"]))


def _as_plain(value: object) -> object:
    if isinstance(value, bytes):
        return {_BYTES: base64.b64encode(value).decode("ascii")}
    return str(value) if isinstance(value, Path) else asdict(value)  # type: ignore[call-overload]  # or a TypeError


def _from_plain(found: dict[str, Any]) -> object:
    return base64.b64decode(found[_BYTES], validate=True) if found.keys() == {_BYTES} else found


def main() -> None:
    """Run the function named by the arguments and print its result, or why it refuses its input."""
    module, name, memory, given = sys.argv[1:]
    answer = os.dup(1)
    os.dup2(2, 1)  # library output must not mix with the result
    function = getattr(importlib.import_module(module), name)
    with contextlib.suppress(ImportError):  # on Windows, which has no such limit
        import resource

        # An endlessly expanding file must not exhaust the machine.
        resource.setrlimit(resource.RLIMIT_AS, (int(memory), int(memory)))
    text = given if given.startswith("[") else Path(given).read_text(encoding="utf-8")
    try:
        result = {"result": function(*json.loads(text, object_hook=_from_plain))}
    except (FileRefusedError, InputError) as error:
        result = {"refused": error.message if isinstance(error, InputError) else str(error)}
    with os.fdopen(answer, "w", encoding="utf-8") as out:
        json.dump(result, out, default=_as_plain)


if __name__ == "__main__":
    main()
