"""How the command line answers to being called: help, version, formats, and its own help named in errors."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path

import pytest

from tests.integration.commands.conftest import Citeloom


@pytest.mark.parametrize("group", [(), ("runs",), ("papers",), ("conversations",), ("journal",)])
def test_running_without_a_command_prints_the_help(group: tuple[str, ...], citeloom: Citeloom) -> None:
    done = citeloom(*group)
    assert done.code == 2  # as of other programs on Typer: nothing was asked for
    assert done.out.startswith("Usage: ") and "Commands:" in done.out and "\\n" not in done.out
    assert done.err == ""


def test_the_version_is_that_of_the_package(citeloom: Citeloom) -> None:
    done = citeloom("--version")
    assert (done.code, done.out) == (0, f"citeloom {importlib.metadata.version('citeloom')}\n")


def test_examples_in_help_start_with_the_program_as_it_was_called(citeloom: Citeloom) -> None:
    assert "Example: python cli.py search" in citeloom("search", "--help").out
    assert "python cli.py ingest" in citeloom("--help").out


def test_help_for_paper_has_fields_and_an_example(citeloom: Citeloom) -> None:
    shown = " ".join(citeloom("paper", "--help").out.split())
    for named in ("hypothesis{description", "metrics{}", "plots[{path, caption}]", "reasoning", "discussion: "):
        assert named in shown
    assert "Example: python cli.py paper exp.json" in shown


@pytest.mark.parametrize("command", ["paper", "discussion"])
def test_an_unknown_format_is_refused_with_the_list_of_formats(command: str, citeloom: Citeloom) -> None:
    done = citeloom(command, "--exp", "exp.json", "--format", "rtf")
    assert done.code == 2
    assert (
        "There is no format 'rtf'; there are md, tex, docx, odt, html, pdf, zip" in done.err
        and "Value error" not in done.err
    )
    assert f"'python cli.py {command} --help'" in done.err


def test_an_error_in_the_experiment_refers_to_the_help_of_the_command(
    home: Path, tmp_path: Path, citeloom: Citeloom
) -> None:
    (tmp_path / "exp.json").write_text('{"summary": "It works."}', encoding="utf-8")
    done = citeloom("methods", "--exp", tmp_path / "exp.json", "--home", home)
    assert done.code == 2
    assert "'python cli.py methods --help'" in done.err, done.err
