"""Starts a program within limits and kills it when the parent process is gone.

It runs as a separate script that imports only built-in modules, since it wraps every program that reads untrusted input
and should start fast. Its standard input is a pipe whose other end only the parent process holds. However that process
ends, by Ctrl-C, SIGKILL or a crash, the system closes the pipe, and the program is killed. This works on Linux as well
as on macOS, which has no PR_SET_PDEATHSIG.

Usage: supervisor.py SECONDS OUTPUT_BYTES PROGRAM ARGUMENT...
"""

from __future__ import annotations

import _thread
import os
import sys

_FAILED_TO_START = 127
_SIGNALLED = 128


def main() -> None:
    """Run the program given by the arguments and exit with its exit code, or 128 plus its signal."""
    seconds, output, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    _limit(seconds, output)
    try:
        if hasattr(os, "posix_spawn"):
            nothing = (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0)
            pid = os.posix_spawn(command[0], command, os.environ, file_actions=[nothing])
        else:
            import subprocess

            pid = subprocess.Popen(command, stdin=subprocess.DEVNULL).pid
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="replace"))
        os._exit(_FAILED_TO_START)
    _thread.start_new_thread(_kill_when_left, (pid,))
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    os._exit(code if code >= 0 else _SIGNALLED - code)


def _limit(seconds: int, output: int) -> None:
    """Limit CPU time, in case this process is killed too, and the size of written files."""
    try:
        import resource
    except ImportError:  # Windows has no such limits
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


def _kill_when_left(pid: int) -> None:
    """Kill the program and its child processes once the pipe, which never carries data, is closed."""
    while os.read(0, 1):
        pass
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, 9)  # our session contains no other processes
    os.kill(pid, 9)


if __name__ == "__main__":
    main()
