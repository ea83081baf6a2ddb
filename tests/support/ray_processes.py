"""Processes of Ray, found by their command lines, and clusters of `ray start`."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_WORKER = re.compile(rb"ray::(IDLE|citeloom )")
_STARTS = 3  # of a cluster
_RAY_FOLDER = re.compile(rb"/tmp/citeloom-ray-\w+")


def processes(wanted: bytes) -> list[int]:
    """The ids of the processes whose command line contains this."""
    found = [int(process.name) for process in Path("/proc").glob("[0-9]*")]
    return sorted(pid for pid in found if wanted in _read(pid, "cmdline") and pid != os.getpid())


def workers() -> list[int]:
    """The workers of the Rays that this process or its children started."""
    return [
        pid for pid in processes(b"ray::") if _WORKER.match(_read(pid, "cmdline")) and os.getpid() in _ancestors(pid)
    ]


def busy_workers() -> list[int]:
    """Those that run a stage of an ingest."""
    return [pid for pid in workers() if _read(pid, "cmdline").startswith(b"ray::citeloom ")]


def _ancestors(pid: int) -> Iterator[int]:
    while pid > 1:
        fields = _read(pid, "stat").rpartition(b")")[2].split()
        pid = int(fields[1]) if fields else 0
        yield pid


def _read(pid: int, name: str) -> bytes:
    """A file about a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def folder_of_ray(pid: int) -> Path:
    """The temporary folder of the Ray that a process started, which is named in the command lines of its workers."""
    found = (_RAY_FOLDER.search(_read(child, "cmdline")) for child in processes(b"raylet") if pid in _ancestors(child))
    return next(Path(os.fsdecode(match[0])) for match in found if match)


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return ports


@contextmanager
def started_cluster(folder: Path, *, cpus: int) -> Iterator[tuple[str, str]]:
    """A cluster of one node, with the addresses host:port and ray://host:port; only its own processes are ended.

    Beside other work `ray start` may fail: it waits thirty seconds for its node, which no option changes, and somebody
    else may take one of the free ports before Ray does. It is then started again.
    """
    ray = str(Path(sys.executable).with_name("ray"))
    command = [ray, "start", "--head", "--block", "--include-dashboard=false", "--object-store-memory=100000000"]
    with ExitStack() as stack:
        for _ in range(_STARTS):
            port, client = free_ports(2)
            options = [f"--port={port}", f"--ray-client-server-port={client}", f"--num-cpus={cpus}"]
            options += [f"--temp-dir={folder}", "--disable-usage-stats"]
            log = stack.enter_context((folder / "head.log").open("w"))
            head = stack.enter_context(subprocess.Popen([*command, *options], stdout=log, stderr=log))
            stack.callback(head.terminate)
            while head.poll() is None and not (_answers(port) and _answers(client)):
                with suppress(subprocess.TimeoutExpired):
                    head.wait(0.2)
            if head.poll() is None:
                break
        else:
            raise AssertionError((folder / "head.log").read_text())
        yield f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}"


@contextmanager
def further_node(folder: Path, address: str) -> Iterator[subprocess.Popen[bytes]]:
    """Another node of a cluster, with one CPU."""
    ray = str(Path(sys.executable).with_name("ray"))
    command = [ray, "start", "--block", f"--address={address}", "--num-cpus=1", "--object-store-memory=100000000"]
    unbuffered = {**os.environ, "PYTHONUNBUFFERED": "1"}
    with (
        (folder / "node.log").open("w") as log,
        subprocess.Popen(command, stdout=log, stderr=log, env=unbuffered) as node,
    ):
        try:
            while "Ray runtime started" not in (folder / "node.log").read_text():
                with suppress(subprocess.TimeoutExpired):
                    node.wait(0.2)
                    raise AssertionError((folder / "node.log").read_text())
            yield node
        finally:
            node.terminate()


def end_node(node: subprocess.Popen[bytes]) -> None:
    """End the processes of a node at once, as if its machine were gone; its workers end with them."""
    for child in Path(f"/proc/{node.pid}/task/{node.pid}/children").read_text().split():
        os.kill(int(child), signal.SIGKILL)
    node.kill()


def _answers(port: int) -> bool:
    with suppress(OSError):
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
        return True
    return False
