"""Every table and view at 40, 80 and 140 columns: keys and ids stay whole, and prose wraps between words."""

from __future__ import annotations

import io
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pexpect
import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.cli_process import CLI, environment
from tests.support.sample_library import THREE

WIDTHS = (40, 80, 140)
QUESTION = "How does temperature scaling change the calibration for new wearers?"


@pytest.fixture(scope="session")
def used_home(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A home with a run and a conversation, which is only looked at."""
    import shutil

    home = Path(shutil.copytree(sample_home, tmp_path_factory.mktemp("used") / "home"))
    from citeloom.cli import main
    from tests.support.sample_library import EXPERIMENT

    out = str(home.parent / "out")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "stdin", io.StringIO(f"{QUESTION}\n"))
        for arguments in (["discussion", "--exp", str(EXPERIMENT), "--out", out], ["chat"]):
            patch.setattr(sys, "argv", ["cli.py", *arguments, "--home", str(home)])
            with pytest.raises(SystemExit):
                main()
    yield home


def words_of(text: str) -> list[str]:
    return re.sub(r"[│┃┏┓┗┛┡┩└┘├┤─━╇╭╮╰╯┳┻╋┼┬┴]+", " ", text).split()


VIEWS = {
    "papers": ("papers", "list"),
    "paper": ("papers", "show", "varga2021calibration"),
    "search": ("search", "temperature scaling"),
    "find": ("find", "temperature scaling"),
    "find by text": ("find", "temperature scaling", "--fulltext"),
    "runs": ("runs", "list"),
    "conversations": ("conversations", "list"),
    "usage": ("usage",),
    "journal": ("journal", "stats"),
    "doctor": ("doctor",),
}


@pytest.mark.parametrize("view", VIEWS)
def test_keys_stay_whole_and_prose_wraps_between_words(
    view: str, used_home: Path, citeloom: Citeloom, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    monkeypatch.setenv("TERM", "dumb")
    wide = citeloom(*VIEWS[view], "--home", used_home, **{}) if not monkeypatch.setenv("COLUMNS", "1000") else None
    assert wide is not None and wide.code == 0, wide
    known = set(words_of(wide.out))
    for width in WIDTHS:
        monkeypatch.setenv("COLUMNS", str(width))
        shown = citeloom(*VIEWS[view], "--home", used_home)
        assert shown.code == 0
        for line in shown.out.splitlines():
            assert len(line) <= width or len(line.split()) <= 2, (width, line)
        # No word is broken: each was there on a terminal of 1,000 columns, but for the names of stacked columns.
        broken = {
            word for word in words_of(shown.out) if word not in known and not re.fullmatch(r"[a-z]+:|\d+\.", word)
        }
        assert not broken, (width, broken)
        if view in ("papers", "search", "find"):
            assert any(key in words_of(shown.out) for key in THREE)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_terminal_of_any_width_shows_whole_keys(width: int, used_home: Path) -> None:
    run = [sys.executable, str(CLI), "papers", "list", "--home", str(used_home)]
    child = pexpect.spawn(
        run[0], run[1:], env={**environment({}), "TERM": "dumb"}, dimensions=(60, width), encoding="utf-8", timeout=120
    )
    shown = str(child.read())
    child.close()
    assert child.exitstatus == 0, shown
    assert all(key in words_of(shown) for key in THREE)
    home = next(line for line in shown.splitlines() if "Home:" in line or os.sep in line)
    assert home
    assert all(len(line) <= width or len(line.split()) == 1 for line in shown.splitlines())


def test_a_pipe_has_room_for_every_key(used_home: Path, citeloom: Citeloom) -> None:
    shown = citeloom("papers", "list", "--home", used_home)
    assert all(key in words_of(shown.out) for key in THREE)
