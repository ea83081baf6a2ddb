"""Our events as projections of LangGraph's v3 stream, the examples of docs/langgraph.md, and calls in a batch."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from citeloom.graph.graphs import research_graph
from tests.support.cli_process import ROOT, environment

PAGE = (ROOT / "docs" / "langgraph.md").read_text("utf-8")
PROGRAMS = [
    program
    for program in re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    if "get_client" not in program  # which needs a run on a server: test_dev_server.py
]


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_in_the_docs_runs(program: str, home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", program], env=environment({"HOME": str(home)}), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert ("rendered" in done.stdout) is ("EventProjections" in program) and done.stdout.strip()


def test_a_batch_runs_without_an_event_loop_and_events_are_typed(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_HOME", str(home))
    asked = [{"question": question} for question in ("How many seeds are needed?", "What does Okafor say?")]
    answers = research_graph().batch(asked)
    assert [answer["question"] for answer in answers] == [item["question"] for item in asked]
    with pytest.warns(match="experimental"):
        run = research_graph().stream_events(asked[0], version="v3")
    kinds = {(name, event["kind"]) for name, event in run.interleave("progress", "passages", "draft")}
    assert {("progress", "stage"), ("passages", "finding"), ("passages", "evidence")} <= kinds
