"""A folder has one server: a second one says so and ends, and the first is not disturbed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.cli_process import run_here
from tests.support.served_app import served_app


def test_a_second_server_on_a_folder_says_so_and_the_command_line_still_works(
    home: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served_app(home) as served:
        refused = run_here(monkeypatch, capsys, "--home", home, "serve", "--port", "0")
        assert refused.code == 2 and "Traceback" not in refused.err
        (line,) = refused.errors
        assert str(home) in line and f"another server already uses this folder, at {served.url}." in line
        assert run_here(monkeypatch, capsys, "--home", home, "papers", "list").code == 0
        assert served.api.get("/ready").json()["papers"] == 4


def test_a_port_in_use_is_reported_with_the_likely_program(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with served_app(home) as served:
        port = served.url.rpartition(":")[2]
        same = run_here(monkeypatch, capsys, "--home", home, "serve", "--port", port)
        other = run_here(monkeypatch, capsys, "--home", tmp_path / "other", "serve", "--port", port)
    assert same.code == other.code == 2
    assert f"this folder, at {served.url}." in same.err
    assert f"--port {port}" in other.err and served.url in other.err and not (tmp_path / "other").exists()
