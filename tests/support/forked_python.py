"""Scripts in processes of their own, forked from one that has imported what they need.

The imports of a command take one to four seconds of a processor, and tests start hundreds of commands. Each is still a
process with its own memory, files, environment and signals, and a child of the test, which can kill it and wait for it;
only its interpreter is not new, and it takes embeddings from those of the session. New ones are started on systems
other than Linux, with variables that an interpreter reads when it begins, by acceptance tests, and for all else than a
script of this repository: `python -c`, `python -m`, an installed `citeloom`, a command on a terminal.

As a program (`python -m tests.support.forked_python SOCKET`) it is the process from which the others are forked.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import json
import os
import re
import runpy
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
_SCRIPTS = {ROOT, ROOT / "examples", ROOT / "tests" / "support"}
SHARED = "MODEL_ANSWERS_OF_TESTS"  # the variable with the file that all processes of a test session share
_BEFORE_START = re.compile(r"(?!PYTHON_KEYRING)(PYTHON|LC_|LD_|MALLOC|OMP_|TZ$|LANG$|LANGUAGE$)")
_SUBREAPER = 36  # linux/prctl.h: orphans among the descendants become children of this process
# What commands import when they need it; those of `citeloom.commands` come with them.
_IMPORTED = """citeloom.cli citeloom.server.app citeloom.server.routes.people_page citeloom.zotero.syncing
citeloom.api.checking citeloom.stores.local.chroma chromadb tantivy tokenizers
httpx langgraph.checkpoint.sqlite.aio""".split()


NEW = subprocess.Popen  # which forks nothing


class Popen(subprocess.Popen[Any]):
    """`subprocess.Popen`, which forks the scripts of this repository that are started with this interpreter."""

    def _execute_child(self, args: Any, executable: Any, *rest: Any) -> None:
        before, _, kept, cwd, env, _, _, shell, p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, *more = rest
        unusual = executable or shell or before or kept or more[-2] or more[-1] not in (None, -1)
        command = [args] if isinstance(args, str) else [*map(str, args)]
        given = dict(os.environ if env is None else env)
        if unusual or not (_is_script(command) and _may_be_forked(given)):
            super()._execute_child(args, executable, *rest)  # type: ignore[misc]
            return
        streams = [own if fd == -1 else fd for own, fd in enumerate((p2cread, c2pwrite, errwrite))]
        request = {"argv": command[1:], "cwd": os.fspath(cwd or Path.cwd()), "env": given}
        self.pid = _origin().fork(json.dumps(request).encode(), streams)
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def _is_script(command: list[str]) -> bool:
    return len(command) > 1 and command[0] == sys.executable and Path(command[1]).parent in _SCRIPTS


def _may_be_forked(environment: dict[str, str]) -> bool:
    return sys.platform == "linux" and _read_at_start(environment) == _read_at_start(_origin().environment)


def _read_at_start(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if _BEFORE_START.match(name)}


class _Origin:
    """The process that has imported everything."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # LangGraph reads its variable when it is imported.
        self.environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true", "OPENBLAS_NUM_THREADS": "1"}
        self._socket, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-m", __name__, str(theirs.fileno())],
                cwd=ROOT,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
            )
        atexit.register(self.end)

    def fork(self, request: bytes, streams: list[int]) -> int:
        """The id of a new child of this process."""
        with self._lock, _adopting_orphans(), os.fdopen(os.memfd_create("request"), "w+b", 0) as file:
            file.write(request)
            file.seek(0)
            socket.send_fds(self._socket, [b"f"], [file.fileno(), *streams])
            answer = b""
            while len(answer) < 5:
                answer += (read := self._socket.recv(5 - len(answer)))
                assert read, "the process that others are forked from has ended"
        return int.from_bytes(answer[:4], "little")

    def end(self) -> None:
        self._socket.close()
        self._process.wait()


_origins: list[_Origin] = []


def _origin() -> _Origin:
    if not _origins:
        _origins.append(_Origin())
    return _origins[0]


@contextmanager
def _adopting_orphans() -> Iterator[None]:
    prctl = ctypes.CDLL(None).prctl
    prctl(_SUBREAPER, 1, 0, 0, 0)
    try:
        yield
    finally:
        prctl(_SUBREAPER, 0, 0, 0, 0)


def _wait_for_requests(control: socket.socket) -> dict[str, Any] | None:
    """Fork for each request; returns it in the new process, and None in this one when nobody asks any more."""
    while True:
        asked, fds, _, _ = socket.recv_fds(control, 1, 4)
        if not asked:
            return None
        between = os.fork()
        if not between and (child := os.fork()):
            control.sendall(child.to_bytes(4, "little"))
            os._exit(0)  # so that the child goes to the process that asked
        if not between:
            control.close()
            for stream, fd in enumerate(fds[1:]):
                os.dup2(fd, stream)
                os.close(fd)
            with os.fdopen(fds[0], "rb") as request:
                return dict(json.load(request))
        for fd in fds:
            os.close(fd)
        os.waitpid(between, 0)
        control.sendall(b".")


def _exit(code: Any) -> None:
    """End as an interpreter does, but leave the modules to the system, which would copy all memory to free it."""
    if not isinstance(code, int | None):
        sys.stderr.write(f"{code}\n")
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        if not stream.closed:
            stream.flush()
    os._exit((code or 0) & 255)


def _main(descriptor: int) -> None:
    import citeloom.commands

    own = (f"citeloom.commands.{module.name}" for module in iter_modules(citeloom.commands.__path__))
    for name in (*_IMPORTED, *own):
        with suppress(ImportError):  # then the command imports it, or says what is missing
            import_module(name)
    from tests.support.cached_models import cache_models

    cache_models(setattr)
    gc.collect()
    gc.freeze()
    if (request := _wait_for_requests(socket.socket(fileno=descriptor))) is not None:
        os.environ.clear()
        os.environ.update(request["env"])
        os.chdir(request["cwd"])
        script, *_ = sys.argv = request["argv"]
        sys.orig_argv = [sys.executable, *sys.argv]
        sys.path[0] = str(Path(script).parent)
        try:
            runpy.run_path(script, run_name="__main__")
        except SystemExit as ended:
            _exit(ended.code)
        _exit(None)


if __name__ == "__main__":
    _main(int(sys.argv[1]))
