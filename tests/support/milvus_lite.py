"""Milvus Lite for tests: a file that this process serves, or a server of its own that several processes use."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MISSING = "Milvus Lite is not installed: make engines"
_SERVER = """
import sys
from milvus_lite.adapter.grpc.server import start_server_in_thread
server, db, port = start_server_in_thread(sys.argv[1], port=int(sys.argv[2]))
print(port, flush=True)
sys.stdin.readline()
server.stop(grace=0)
db.close()
"""


def require_milvus_lite() -> None:
    """Skip with a reason where Milvus Lite is not installed."""
    pytest.importorskip("pymilvus", reason=MISSING)
    pytest.importorskip("milvus_lite", reason=MISSING)


class MilvusServer:
    """A Milvus Lite server in a process of its own, which can be stopped, started again and set back."""

    def __init__(self, folder: Path) -> None:
        require_milvus_lite()
        self.folder = folder
        self._port = 0
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://127.0.0.1:{self._port}"

    def start(self) -> None:
        """Start it, on the same port as before."""
        self._process = subprocess.Popen(
            [sys.executable, "-c", _SERVER, str(self.folder), str(self._port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self._process.stdout is not None
        self._port = int(self._process.stdout.readline())

    def stop(self) -> None:
        """Stop it with everything written."""
        if self._process is not None:
            self._process.communicate("\n")
            self._process = None
