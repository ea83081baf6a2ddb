"""The command line is there at once: help loads nothing that only a command needs."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.cli_process import ROOT

HEAVY = {"chromadb", "langgraph", "langchain_core", "langchain_openai", "openai", "onnxruntime", "numpy", "pydantic"}
SCRIPT = """
import json, sys
from pathlib import Path
sys.argv = ["cli.py", "--help"]
code = None
try:
    exec(compile(Path("cli.py").read_text(encoding="utf-8"), "cli.py", "exec"), {"__name__": "__main__"})
except SystemExit as ended:
    code = ended.code
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


def test_help_loads_no_heavy_package() -> None:
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code in (0, None)
    assert "typer" in loaded
    assert HEAVY.intersection(loaded) == set()


BEFORE_THE_PROMPT = """
import json, sys
from citeloom.commands import chat
from citeloom.commands.shell import input as lines, repl, shell
from citeloom.api.stored_conversations import new_thread_id
print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def test_the_shell_loads_no_model_and_no_database_before_its_prompt() -> None:
    command = [sys.executable, "-c", BEFORE_THE_PROMPT]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    behind = {"chromadb", "langgraph", "langchain_core", "langchain_openai", "openai", "onnxruntime", "tantivy"}
    assert behind.intersection(json.loads(done.stdout)) == set()


LISTS = """
import json, sys
from pathlib import Path
sys.argv = ["cli.py", *json.loads(sys.argv[1])]
try:
    exec(compile(Path("cli.py").read_text(encoding="utf-8"), "cli.py", "exec"), {"__name__": "__main__"})
except SystemExit as ended:
    code = ended.code
print(json.dumps([code, sorted({name.partition(".")[0] for name in sys.modules})]))
"""


@pytest.mark.parametrize("command", [["papers", "list"], ["runs", "list"], ["conversations", "list"]], ids=" ".join)
def test_a_list_loads_no_graph_and_no_model(command: list[str], home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, json.dumps(["--home", str(home), *command])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code in (0, None), done.stderr
    heavy = {"langgraph", "langsmith", "openai", "onnxruntime", "tantivy", "chromadb"}
    heavy |= {"numpy"} if command[0] != "conversations" else set()
    assert heavy.intersection(loaded) == set()


@pytest.mark.parametrize("command", [["search", "seeds"], ["papers", "show", "obrien2019seeds"]], ids=" ".join)
def test_what_only_reads_does_not_load_chroma(command: list[str], home: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LISTS, json.dumps(["--home", str(home), *command])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code in (0, None), done.stderr
    assert {"langgraph", "openai", "chromadb"}.intersection(loaded) == set()
