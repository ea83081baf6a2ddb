"""`ingest --ray` as a user runs it: starting Ray, joining a cluster, interrupted, killed, refused."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from citeloom.errors import CiteloomError
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.cli_process import CLI, environment, run
from tests.support.library_contents import require_equal
from tests.support.many_papers import write_papers
from tests.support.ray_processes import busy_workers, end_node, folder_of_ray, further_node, processes, started_cluster

pytest.importorskip("ray", reason="needs the extra 'ray'")
pytestmark = pytest.mark.long


@pytest.fixture(autouse=True)
def _token_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "user"))  # where Ray keeps its token
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "ab" * 32)


@pytest.fixture
def cluster_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="citeloom-test-", dir="/tmp"))  # sockets need a short path
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


def start(*arguments: str | Path, cwd: Path, **settings: str) -> subprocess.Popen[str]:
    """Start the command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(CLI), *map(str, arguments)],
        cwd=cwd,
        env=environment(settings),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


async def require_same(home: Path, other: Path) -> None:
    libraries = [Library.open(FolderHome(folder), LocalEmbedding()) for folder in (home, other)]
    await require_equal(libraries[0], libraries[1])
    for library in libraries:
        library.close()


def wait_until_busy(process: subprocess.Popen[str]) -> int:
    """A worker that runs a stage of the ingest, once there is one."""
    while not (busy := busy_workers()):
        require_running(process)
    return busy[0]


def require_running(process: subprocess.Popen[str]) -> None:
    """Fail if the process ends within a moment."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(0.1)
        raise AssertionError(process.communicate())


async def test_ray_started_for_an_ingest_leaves_nothing_behind(tmp_path: Path) -> None:
    papers = write_papers(tmp_path / "papers", 12)
    process = start("--home", tmp_path / "ray", "ingest", papers, "--json", "--ray", "--ray-workers", "1", cwd=tmp_path)
    os.kill(wait_until_busy(process), signal.SIGKILL)
    started = folder_of_ray(process.pid)
    out, err = process.communicate()
    assert process.returncode == 4, err
    assert out.startswith("{") and '"papers_added": 12' in out
    assert "raylet" not in out + err and "Traceback" not in err
    assert processes(os.fsencode(started)) == []
    assert not started.exists()
    assert run("--home", tmp_path / "here", "ingest", papers, cwd=tmp_path).code == 4
    await require_same(tmp_path / "ray", tmp_path / "here")


async def test_ctrl_c_stops_ray_and_the_next_ingest_continues(tmp_path: Path) -> None:
    papers = write_papers(tmp_path / "papers", 40)
    process = start("--home", tmp_path / "ray", "ingest", papers, "--ray", cwd=tmp_path)
    wait_until_busy(process)
    started = folder_of_ray(process.pid)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate()
    assert process.returncode == 3 and "Interrupted." in err and "Traceback" not in err
    assert processes(os.fsencode(started)) == []
    assert run("--home", tmp_path / "ray", "ingest", papers, "--ray", cwd=tmp_path).code == 4
    assert run("--home", tmp_path / "here", "ingest", papers, cwd=tmp_path).code == 4
    await require_same(tmp_path / "ray", tmp_path / "here")


async def test_a_killed_ingest_stops_ray_and_the_next_one_continues(tmp_path: Path) -> None:
    papers = write_papers(tmp_path / "papers", 60)
    process = start("--home", tmp_path / "ray", "ingest", papers, "--ray", cwd=tmp_path)
    home = FolderHome(tmp_path / "ray")
    while not stored(home):
        require_running(process)
    started = folder_of_ray(process.pid)
    process.kill()
    process.communicate()
    kept = stored(home)
    assert 0 < kept < 60
    while processes(os.fsencode(started)):  # the kernel ends them
        pass
    again = run("--home", tmp_path / "ray", "ingest", papers, "--json", cwd=tmp_path)
    assert again.json["papers_unchanged"] >= kept and again.json["papers_added"] <= 60 - kept
    assert run("--home", tmp_path / "here", "ingest", papers, cwd=tmp_path).code == 4
    await require_same(tmp_path / "ray", tmp_path / "here")
    shutil.rmtree(started, ignore_errors=True)


def stored(home: Home) -> int:
    """The number of papers that a reader sees."""
    if not home.exists():
        return 0
    try:
        library = Library.open(home, LocalEmbedding(), create=False)
    except CiteloomError:
        return 0
    try:
        return len(library.papers())
    finally:
        library.close()


@pytest.mark.parametrize("client", [False, True], ids=["host:port", "ray://"])
async def test_an_existing_cluster_is_joined_and_left_running(
    client: bool, tmp_path: Path, cluster_folder: Path
) -> None:
    papers = write_papers(tmp_path / "papers", 12)
    (papers / "onnxruntime.py").write_text("raise SystemExit('imported from the folder')\n", encoding="utf-8")
    with started_cluster(cluster_folder, cpus=2) as addresses:
        address = addresses[client]
        interrupted = start("--home", tmp_path / "ray", "ingest", papers, "--ray", address, cwd=papers)
        wait_until_busy(interrupted)
        interrupted.send_signal(signal.SIGINT)
        _, err = interrupted.communicate()
        assert interrupted.returncode == 3 and "Traceback" not in err, err
        done = run("--home", tmp_path / "ray", "ingest", papers, "--json", "--ray", address, cwd=papers)
        assert done.code == 4 and done.json["papers_added"] + done.json["papers_unchanged"] == 12, done.err
        assert "raylet" not in done.err and "Traceback" not in done.err
    assert run("--home", tmp_path / "here", "ingest", papers, cwd=tmp_path).code == 4
    await require_same(tmp_path / "ray", tmp_path / "here")


def test_a_cluster_without_cpus_is_refused(tmp_path: Path, cluster_folder: Path) -> None:
    papers = write_papers(tmp_path / "papers", 3)
    with started_cluster(cluster_folder, cpus=0) as (address, _):
        refused = run("--home", tmp_path / "home", "ingest", papers, "--ray", address, cwd=tmp_path)
        assert refused.code == 2
        assert refused.errors == [
            f"Error: The Ray cluster ({address}) has no CPUs. Add a node with CPUs, or start a Ray on this computer "
            "with --ray alone."
        ]


def test_a_cluster_that_goes_away_pauses_the_ingest(
    tmp_path: Path, cluster_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    papers = write_papers(tmp_path / "papers", 60)
    elsewhere = cluster_folder / "elsewhere"
    monkeypatch.setenv("RAY_TMPDIR", str(elsewhere))  # of a Ray that is started here in place of the lost one
    with started_cluster(cluster_folder, cpus=1) as (_, address):
        process = start("--home", tmp_path / "home", "ingest", papers, "--ray", address, cwd=tmp_path)
        wait_until_busy(process)
    _, err = process.communicate()
    assert process.returncode == 3 and "Paused: Ray stopped:" in err and "Traceback" not in err, err
    assert len([line for line in err.splitlines() if "Paused" in line]) == 1
    assert not elsewhere.exists()


async def test_losing_a_node_loses_no_paper(tmp_path: Path, cluster_folder: Path) -> None:
    papers = write_papers(tmp_path / "papers", 40)
    with started_cluster(cluster_folder, cpus=1) as (join, address), further_node(cluster_folder, join) as node:
        process = start("--home", tmp_path / "ray", "ingest", papers, "--json", "--ray", address, cwd=tmp_path)
        while len(busy_workers()) < 2:
            require_running(process)
        end_node(node)
        out, err = process.communicate()
    assert process.returncode == 4, err
    assert '"papers_added": 40' in out
    assert run("--home", tmp_path / "here", "ingest", papers, cwd=tmp_path).code == 4
    await require_same(tmp_path / "ray", tmp_path / "here")
