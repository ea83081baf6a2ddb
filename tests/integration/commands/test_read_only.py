"""A read-only library: it is searched, listed and diagnosed; commands that must write say so in one line."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import citeloom
from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import CLI, environment

_MOUNTED = 'mount --bind "$0" "$0" && mount -o remount,ro,bind "$0" && exec "$@"'


def files_of(home: Path) -> dict[str, int]:
    return {str(path.relative_to(home)): path.stat().st_mtime_ns for path in home.rglob("*") if path.is_file()}


@pytest.fixture
def read_only(home: Path) -> Iterator[Path]:
    """A home without write permission."""
    places = [home, *home.rglob("*")]
    for path in places:
        path.chmod(0o555 if path.is_dir() else 0o444)
    yield home
    for path in places:
        path.chmod(0o755 if path.is_dir() else 0o644)


@pytest.fixture
def denied(read_only: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same for root, whom file modes do not stop: checks for write access are made to fail."""
    allowed = os.access

    def access(path: os.PathLike[str], mode: int) -> bool:
        return not (mode == os.W_OK and Path(path).is_relative_to(read_only)) and allowed(path, mode)

    monkeypatch.setattr("os.access", access)
    return read_only


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (("search", "temperature scaling"), "varga2021calibration"),
        (("find", "temperature scaling"), "varga2021calibration"),
        (("find", "temperature scaling", "--fulltext"), "varga2021calibration"),
        (("papers", "list"), "3 papers"),
        (("papers", "show", "varga2021calibration", "--text"), "## "),
        (("doctor",), "Library: 3 papers"),
        (("runs", "list"), "0 runs"),
        (("conversations", "list"), "0 conversations"),
        (("usage",), "Usage"),
        (("journal", "stats"), "empty"),
    ],
)
def test_a_command_that_only_reads_works_and_says_that_the_home_is_read_only(
    command: tuple[str, ...], said: str, denied: Path, citeloom: Citeloom
) -> None:
    before = files_of(denied)
    done = citeloom(*command, "--home", denied)
    assert done.code == 0, done.err
    assert said in done.out
    assert done.err.count(f"{denied} is read-only") == 1
    assert "citeloom-read-only" not in done.out
    assert files_of(denied) == before


def test_python_can_search_and_list_read_only_and_a_write_is_one_error(denied: Path, exp: Path) -> None:
    before = files_of(denied)
    with citeloom.open_library(denied) as library:
        copy = library.home.root
        assert citeloom.search(library, "temperature scaling")[0]["key"] == "varga2021calibration"
        assert len(library.library.papers()) == 3
        talk = citeloom.Conversation(library)
        writes: list[Callable[[], Any]] = [
            lambda: citeloom.ingest(library, exp),
            lambda: citeloom.research(library, "How are scores calibrated?"),
            lambda: citeloom.write_section(library, "results", exp),
            lambda: citeloom.write_paper(library, exp),
            lambda: citeloom.contradictions(library),
            lambda: talk.ask("How are scores calibrated?"),
        ]
        for write in writes:
            with pytest.raises(citeloom.CiteloomError, match="the library cannot be written") as raised:
                write()
            assert str(denied) in str(raised.value) and "\n" not in str(raised.value)
    assert files_of(denied) == before and copy != denied and not copy.exists()


@pytest.mark.long
@pytest.mark.skipif(os.name != "posix", reason="mounts and modes are those of POSIX")
def test_on_a_read_only_mount_papers_are_found_and_an_ingest_is_refused(home: Path, exp: Path, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        if shutil.which("unshare") is None:
            pytest.skip("no mount can be made here")
        wrapper = ["unshare", "-m", "sh", "-c", _MOUNTED, str(home)]
        if subprocess.run([*wrapper, "true"], capture_output=True).returncode:
            pytest.skip("no mount can be made here")
    else:
        wrapper = []
        for path in [home, *home.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)

    def give(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [*wrapper, sys.executable, str(CLI), *arguments, "--home", str(home)]
        return subprocess.run(
            command, cwd=tmp_path, env=environment({}), input="list\n", capture_output=True, text=True
        )

    found = give("search", "temperature scaling")
    assert found.returncode == 0 and "varga2021calibration" in found.stdout, found.stderr
    for refused in (
        ("ingest", str(tmp_path)),
        ("discussion", "--exp", str(exp), "--out", str(tmp_path / "out")),
        ("chat",),
    ):
        done = give(*refused)
        errors = [line for line in done.stderr.splitlines() if "cannot be written" in line]
        assert done.returncode == 2 and len(errors) == 1, done.stderr
        assert str(home) in errors[0] and "Traceback" not in done.stderr
    if not wrapper:
        for path in [home, *home.rglob("*")]:
            path.chmod(0o755 if path.is_dir() else 0o644)
