"""Where the real papers are, and nothing of a developer's own settings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


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
def _only_declared_settings(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    """A test sees no setting of the machine it runs on and no `.env` of the folder it was started in."""
    for name in list(os.environ):
        if (name.startswith("CITELOOM_") and name != "CITELOOM_SHARED") or name.startswith("OPENAI_"):
            monkeypatch.delenv(name)
    monkeypatch.delenv("COLUMNS", raising=False)  # which a parallel run sets for its workers
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "configuration of the user"))
    monkeypatch.chdir(tmp_path)
    yield
