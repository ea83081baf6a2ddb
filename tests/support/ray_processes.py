"""Processes of Ray, found by their command lines, and clusters of `ray start`."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path


def processes(wanted: bytes) -> list[int]:
    """The ids of the processes whose command line contains this."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            line = (process / "cmdline").read_bytes()
        except OSError:
            continue
        if wanted in line and int(process.name) != os.getpid():
            found.append(int(process.name))
    return sorted(found)


def busy_workers() -> list[int]:
    """The Ray workers that run a stage of an ingest."""
    return [pid for pid in processes(b"ray::citeloom ") if _title(pid).startswith(b"ray::citeloom ")]


def _title(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def free_ports(count: int) -> list[int]:
    """Ports that nothing listens on."""
    opened = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in opened]
    for each in opened:
        each.close()
    return ports


@contextmanager
def started_cluster(folder: Path, *, cpus: int) -> Iterator[tuple[str, str]]:
    """A cluster of one node, with the addresses host:port and ray://host:port; only its own processes are ended."""
    port, client = free_ports(2)
    ray = str(Path(sys.executable).with_name("ray"))
    options = [f"--port={port}", f"--ray-client-server-port={client}", f"--num-cpus={cpus}", f"--temp-dir={folder}"]
    command = [ray, "start", "--head", "--block", "--include-dashboard=false", "--object-store-memory=100000000"]
    with (
        (folder / "head.log").open("w") as log,
        subprocess.Popen([*command, *options, "--disable-usage-stats"], stdout=log, stderr=log) as head,
    ):
        try:
            while not (_answers(port) and _answers(client)):
                with suppress(subprocess.TimeoutExpired):
                    head.wait(0.2)
                    raise AssertionError((folder / "head.log").read_text())
            yield f"127.0.0.1:{port}", f"ray://127.0.0.1:{client}"
        finally:
            head.terminate()


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
