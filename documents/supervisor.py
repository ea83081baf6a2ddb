"""Starts a program within limits and ends it when the process that asked for it is gone.

Run as a script of its own, with nothing imported but what Python has built in: it stands between us and every program
that reads what others wrote, and should cost nothing. Its standard input is a pipe whose other end only the asking
process holds. However that process ends, by Ctrl-C, by SIGKILL or by a crash, the system closes the pipe, and the
program is killed. So it works alike on Linux and on macOS, which has no PR_SET_PDEATHSIG.

Usage: supervisor.py SECONDS OUTPUT_BYTES PROGRAM ARGUMENT...
"""

from __future__ import annotations

import _thread
import os
import sys

_FAILED_TO_START = 127
_SIGNALLED = 128


def main() -> None:
    """Run the program named by the arguments and end with its exit code, or 128 plus its signal."""
    seconds, output, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _limit(seconds, output)
    try:
        pid = _started(command)
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_FAILED_TO_START)
    _thread.start_new_thread(_kill_when_left, (pid,))
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else _SIGNALLED - code)


def _limit(seconds: int, output: int) -> None:
    """Bound the time of the processor, should this process be killed too, and every file that is written."""
    try:
        import resource
    except ImportError:  # Windows knows no such bounds
        return
    for name, soft, hard in (
        (resource.RLIMIT_CPU, seconds, seconds + 1),
        (resource.RLIMIT_FSIZE, output, output),
        (resource.RLIMIT_CORE, 0, 0),
    ):
        _, most = resource.getrlimit(name)
        if most != resource.RLIM_INFINITY:
            soft, hard = min(soft, most), min(hard, most)
        resource.setrlimit(name, (soft, hard))


def _started(command: list[str]) -> int:
    if not hasattr(os, "posix_spawn"):
        import subprocess

        return subprocess.Popen(command, stdin=subprocess.DEVNULL).pid
    nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
    return os.posix_spawn(command[0], command, os.environ, file_actions=[nothing])


def _kill_when_left(pid: int) -> None:
    """Wait for the end of the pipe, which never carries anything."""
    while os.read(0, 1):
        pass
    os.kill(pid, 9)


if __name__ == "__main__":
    main()
