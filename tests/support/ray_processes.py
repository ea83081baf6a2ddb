"""Processes of Ray, found by their command lines, and clusters of `ray start`."""

from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
def started_cluster(folder: Path, settings: Mapping[str, str], *, cpus: int) -> Iterator[tuple[str, str]]:
    """A cluster of one node, with the addresses host:port and ray://host:port; only its own processes are ended."""
    port, client = free_ports(2)
    ray = str(Path(sys.executable).with_name("ray"))
    options = [f"--port={port}", f"--ray-client-server-port={client}", f"--num-cpus={cpus}", f"--temp-dir={folder}"]
    command = [ray, "start", "--head", "--block", "--include-dashboard=false", "--object-store-memory=100000000"]
    with subprocess.Popen(
        [*command, *options, "--disable-usage-stats"],
        env={**os.environ, **settings},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as head:
        assert head.stdout is not None
        host, lines = "", []
        for line in head.stdout:
            lines.append(line)
            if found := re.search(r"Local node IP: (\S+)", line):
                host = found[1]
            if "--block" in line or "Ray runtime started" in line:
                break
        assert host, lines
        try:
            yield f"{host}:{port}", f"ray://{host}:{client}"
        finally:
            head.terminate()
            head.stdout.read()
