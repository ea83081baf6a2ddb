"""Ctrl-C ends a command at once, also while it reads a text that keeps it busy for minutes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_process import environment

PATIENCE = 60.0  # seconds, too few to read either text
# The command line, which says when it begins to read a paper.
COMMAND = """\
import sys
from citeloom.ingestion import reading
parse = reading.parse_markdown
def heard(text):
    print("reading a paper", file=sys.stderr, flush=True)
    return parse(text)
reading.parse_markdown = heard
sys.argv = ["cli.py", *sys.argv[1:]]
from citeloom.cli import main
main()
"""


def interrupted_at(line: str, *arguments: str | Path, cwd: Path) -> tuple[int, str]:
    """Exit code and last line of a command that got Ctrl-C when it had said `line`."""
    process = subprocess.Popen(
        [sys.executable, "-c", COMMAND, *map(str, arguments)],
        cwd=cwd,
        env=environment({}),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        encoding="utf-8",
    )
    try:
        assert process.stderr is not None
        assert any(line in said for said in process.stderr), f"never said: {line}"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert "Traceback" not in said
    return process.returncode, said.splitlines()[-1]


def test_ctrl_c_stops_an_ingest_inside_an_eight_megabyte_paper_of_headings(tmp_path: Path) -> None:
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "a.md").write_text("# a\n" * 2_000_000, encoding="utf-8")
    code, last = interrupted_at("reading a paper", "ingest", "papers", "--home", "home", cwd=tmp_path)
    assert code == 3
    assert last.startswith("Interrupted. Completed calls are saved") and "ingest papers" in last


@pytest.mark.long
def test_ctrl_c_stops_a_section_with_two_megabytes_of_results(home: Path, tmp_path: Path) -> None:
    results = "The baseline explains 72.5% of the edges (A, [1-, <!--. " * 36_000
    concept = {"title": "Node degree", "description": "Degree explains edges."}
    (tmp_path / "exp.json").write_text(json.dumps({"paper_concept": concept, "results": results}), encoding="utf-8")
    code, last = interrupted_at("writing the results", "results", "--exp", "exp.json", "--home", home, cwd=tmp_path)
    assert code == 3
    assert last.startswith("Interrupted. Completed calls are saved") and "results --exp exp.json" in last
