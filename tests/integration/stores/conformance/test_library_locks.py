"""One writer, one worker per run, and no lock that outlives its process, on every backend."""

from __future__ import annotations

import os
import subprocess
import sys

from citeloom.settings.addresses import DatabaseUrl
from citeloom.stores.home import Home
from tests.support.cli_process import ROOT

HOLDER = """
import asyncio, sys
from citeloom.settings.addresses import parse_home
from citeloom.stores.folder_home import find_home

async def main():
    backend = find_home(parse_home(sys.argv[1]))
    async with backend.writer_lock().held(), backend.run_lock("run-1"):
        print("held", flush=True)
        sys.stdin.readline()

asyncio.run(main())
"""


def address(home: Home) -> str:
    return home.address.secret if isinstance(home.address, DatabaseUrl) else str(home.address)


def test_a_killed_process_leaves_no_lock(home: Home, backend: Home) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, address(home)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    assert process.stdout is not None and process.stdout.readline() == "held\n"
    assert backend.writer_lock().holder() == process.pid
    assert backend.run_under_way("run-1")
    assert not backend.run_under_way("run-2")
    with backend.writer_lock().try_held() as held:
        assert not held
    process.kill()
    process.communicate()
    for _ in range(100):  # the server notices as soon as it looks at the closed socket
        if backend.writer_lock().holder() is None and not backend.run_under_way("run-1"):
            break
    else:
        raise AssertionError("the lock of a killed process is still held")


async def test_locks_exclude_each_other_within_a_process(home: Home, backend: Home) -> None:
    waited: list[object] = []
    async with backend.writer_lock().held(), backend.run_lock("run-1"):
        assert backend.writer_lock().holder() == os.getpid()
        with home.writer_lock().try_held() as held:
            assert not held
        assert backend.run_under_way("run-1")
        async with backend.run_lock("run-2", waited.append):
            assert waited == []
    assert backend.writer_lock().holder() is None
    assert not backend.run_under_way("run-1")
    with backend.writer_lock().try_held() as held:
        assert held
