"""Every printed command can be typed unchanged, however Citeloom was called."""

from __future__ import annotations

import re
import sys
import tomllib

import pytest

from citeloom.errors import InputError
from citeloom.experiment import ExperimentError
from citeloom.plurals import counted
from citeloom.program import adapt_help, install_hint, program, remember_command
from tests.support.cli_process import ROOT


@pytest.mark.parametrize(
    ("called", "typed"),
    [
        ("/home/me/.local/bin/citeloom", "citeloom"),
        ("citeloom.exe", "citeloom"),
        ("cli.py", "python cli.py"),
        ("../my loom/cli.py", "python '../my loom/cli.py'"),
        ("/site-packages/citeloom/__main__.py", "python -m citeloom"),
        ("/site-packages/ipykernel_launcher.py", "citeloom"),
        ("", "citeloom"),
    ],
)
def test_a_message_names_the_program_as_it_was_called(called: str, typed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [called])
    assert program() == typed
    assert (
        str(InputError("No library.", help="Make one: {citeloom} ingest.")) == f"No library. Make one: {typed} ingest."
    )
    assert adapt_help("Search.\n\nExample: citeloom search x") == f"Search.\n\nExample: {typed} search x"
    remember_command("results")
    assert f"'{typed} results --help'" in str(ExperimentError("exp.json: bad."))
    remember_command(None)


def test_no_message_assumes_one_way_of_calling_the_program() -> None:
    folders = ("api", "citations", "commands", "documents", "graph", "models", "prompts", "stores", "tools")
    files = [*ROOT.glob("*.py"), *(path for folder in folders for path in (ROOT / folder).rglob("*.py"))]
    naming = [path.name for path in files if "python cli.py" in path.read_text(encoding="utf-8")]
    assert naming == ["program.py"]


def test_every_hint_to_install_an_extra_names_an_existing_one_in_the_same_form() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    folders = [path for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith((".", "tests", "build"))]
    files = [*ROOT.glob("*.*"), *(path for folder in folders for path in folder.rglob("*.*"))]
    suffixes = {".py", ".md", ".html"}
    texts = {path: path.read_text(encoding="utf-8") for path in files if path.suffix in suffixes and path.is_file()}
    assert [path.name for path, text in texts.items() if re.search(r"pip install \S*citeloom\[", text)] == []
    hinted = [name for text in texts.values() for name in re.findall(r"install_hint\(['\"]([\w-]+)", text)]
    assert {"ray", "server", "styles"} <= set(hinted) <= set(extras)
    assert install_hint("ray") == "Install it in Citeloom's folder: pip install -e '.[ray]'"


def test_counts_agree_with_their_nouns() -> None:
    assert [counted(number, "paper") for number in (0, 1, 2, 1000)] == [
        "0 papers",
        "1 paper",
        "2 papers",
        "1,000 papers",
    ]
    assert counted(1, "try", "tries") == "1 try" and counted(3, "try", "tries") == "3 tries"


def test_no_count_precedes_a_noun_that_is_always_plural() -> None:
    counting = re.compile(
        r"\{(?:len\([^{}]*\)|[\w.\[\]']*(?:count|total|calls|hits|papers|answers)[\w.\[\]']*)(?::,)?\} "
        r"(?:papers|passages|chunks|runs|findings|citations|answers|needs|calls|model calls|conversations)\b"
    )
    folders = ("commands", "graph", "stores", "models/chat", "tools")
    files = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    found = [hit for path in files for hit in counting.findall(path.read_text(encoding="utf-8"))]
    assert found == []
