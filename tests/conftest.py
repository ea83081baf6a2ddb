"""Locates the real papers, and hides a developer's own settings."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

# The time of an example depends on what else runs, and no run fails by an example that the run before did not try.
hypothesis.settings.register_profile("any machine", deadline=None, derandomize=True)
hypothesis.settings.load_profile("any machine")
ROOT = Path(__file__).resolve().parent.parent


def pytest_sessionstart() -> None:
    """Let Ctrl-C reach the commands that tests start, also where a script runs the tests in the background."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # which every process that is started would inherit
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection while tests are collected, which took a quarter of the time, and exempt them later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Print the table of attacks, a row for each test with its cases, where attacks were asked for."""
    if "attack" not in str(config.option.markexpr):
        return
    rows: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for outcome, word in (("passed", "held"), ("failed", "FAILED"), ("error", "FAILED"), ("skipped", "not run here")):
        for report in terminalreporter.stats.get(outcome, ()):
            if "attack" in report.keywords:
                rows[report.nodeid.partition("[")[0]][word] += 1
    terminalreporter.section(f"{len(rows)} attacks, {sum(map(Counter.total, rows.values()))} cases")
    for row, words in sorted(rows.items()):
        path, _, name = row.partition("::")
        held = ", ".join(f"{count} {word}" for word, count in words.items())
        terminalreporter.line(f"{name.removeprefix('test_').replace('_', ' ')} ({Path(path).stem}): {held}")


@pytest.fixture(scope="session", autouse=True)
def _no_settings_of_this_machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Costly fixtures, made once a session or module, see no settings of the machine and no `.env` either."""
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if (name.startswith("CITELOOM_") and name != "CITELOOM_SHARED") or name.startswith("OPENAI_"):
                patch.delenv(name)
        patch.delenv("COLUMNS", raising=False)  # which a parallel run sets for its workers
        folder = tmp_path_factory.mktemp("session")
        patch.setenv("XDG_CONFIG_HOME", str(folder / "configuration of the user"))
        patch.chdir(folder)
        yield


@pytest.fixture(scope="session")
def shared_dir() -> Path:
    """The folder with corpus/, experiments/ and retrieval/; skips with a reason where it is missing."""
    folder = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
    if not (folder / "corpus" / "papers").is_dir():
        if os.environ.get("CI"):
            pytest.fail(f"CI must have the real papers, but {folder} holds none (set CITELOOM_SHARED).")
        pytest.skip(f"no real papers at {folder} (set CITELOOM_SHARED to the folder that holds corpus/)")
    return folder


@pytest.fixture(autouse=True)
def _folder_of_its_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """Each test works in its own folder, with its own user configuration."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration of the user"))
    monkeypatch.chdir(tmp_path)
    yield
