"""The command line starts quickly: help loads nothing that only a command needs."""

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
from citeloom.commands import runs
from citeloom.commands.shell import parser, repl, shell_state
from citeloom.api.stored_runs import new_thread_id
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
MODULES = LISTS.replace('{name.partition(".")[0] for name in sys.modules}', "sys.modules")


@pytest.mark.parametrize("command", [["papers", "list"], ["runs", "list"], ["conversations", "list"]], ids=" ".join)
def test_a_list_loads_no_graph_and_no_model(command: list[str], home: Path) -> None:
    heavy = {"langgraph", "langsmith", "openai", "onnxruntime", "tantivy", "chromadb", "rich.console"}
    heavy |= {"numpy"} if command[0] != "conversations" else set()
    assert heavy.intersection(loaded_by(home, *command)) == set()


@pytest.mark.parametrize("command", [["search", "seeds"], ["papers", "show", "obrien2019seeds"]], ids=" ".join)
def test_a_command_that_only_reads_does_not_load_chroma(command: list[str], home: Path) -> None:
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


def test_a_search_does_not_load_tool_schemas_or_the_experiment(home: Path) -> None:
    elsewhere = {"citeloom.tools.tool_schemas", "citeloom.experiment"}
    assert elsewhere.intersection(loaded_by(home, "search", "seeds")) == set()


def loaded_by(home: Path, *command: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", MODULES, json.dumps(["--home", str(home), *command])],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    code, loaded = json.loads(done.stdout.splitlines()[-1])
    assert code in (0, None), done.stderr
    return set(loaded)


def test_listing_papers_loads_no_text_parser_and_no_service(home: Path) -> None:
    assert {"yaml", "markdown_it", "citeloom.metadata.services"}.intersection(
        loaded_by(home, "papers", "list")
    ) == set()


def test_a_question_without_a_chat_model_loads_no_chat_role(home: Path) -> None:
    loaded = loaded_by(home, "research", "How many seeds does an ensemble need?")
    elsewhere = {"citeloom.roles.chat.chat_roles", "citeloom.ingestion.doctor", "jinja2"}
    assert elsewhere.intersection(loaded) == set()


@pytest.mark.parametrize("before", [[], ["--home", "papers"], ["--home=papers"]], ids=str)
def test_only_the_given_command_is_built(before: list[str]) -> None:
    script = f"""
import json
from citeloom.cli import command_line
part = command_line({[*before, "search", "papers"]!r})
print(json.dumps([[made.name for made in part.registered_commands], [made.name for made in part.registered_groups]]))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == [["search"], []]


@pytest.mark.parametrize("given", [["serch", "x"], ["--help", "search"], ["--home", "search"], []], ids=str)
def test_help_and_misspelt_commands_know_every_command(given: list[str]) -> None:
    script = f"""
from citeloom.cli import command_line
print(len(command_line({given!r}).registered_commands), len(command_line({given!r}).registered_groups))
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout == "29 9\n"
