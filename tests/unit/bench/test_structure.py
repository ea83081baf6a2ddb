"""The figures that `make structure` prints and limits."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from bench.structure import (
    Module,
    files_of_a_question,
    find_cycles,
    imports_below_api,
    repeated_class_names,
    repeated_file_names,
    single_caller_helpers,
)


def module(path: str, text: str) -> Module:
    return Module(Path(path), ast.parse(text), len(text.splitlines()))


def test_import_cycles_across_modules_and_through_imports_in_functions_are_found() -> None:
    modules = [
        module("stores/library.py", "from .backends import open"),
        module("stores/backends.py", "from . import tables"),
        module("stores/tables.py", "def load():\n    from .library import Library"),
        module("stores/home.py", "from .library import Library"),
    ]

    assert find_cycles(modules) == [["stores.backends", "stores.library", "stores.tables"]]


def test_imports_of_front_ends_from_below_the_api_are_reported() -> None:
    modules = [
        module("server/routes/papers.py", "from ...stores.library import Library\nfrom ...api import papers"),
        module("commands/papers.py", "from ..errors import CiteloomError\nfrom .output import show"),
        module("commands/output.py", "import json"),
        module("stores/library.py", ""),
        module("api/papers.py", "from ..stores.library import Library"),
        module("errors.py", ""),
    ]

    assert imports_below_api(modules) == ["server.routes.papers -> stores.library"]


def test_repeated_names_and_helpers_with_one_caller_are_found() -> None:
    modules = [
        module("api/papers.py", "class Paper: ...\ndef _load(): ...\ndef papers(): return _load()"),
        module("stores/papers.py", "class Paper: ...\ndef _read(): ...\ndef a(): _read()\ndef b(): _read()"),
    ]

    assert repeated_class_names(modules) == ["Paper"]
    assert repeated_file_names(modules) == ["papers.py"]
    assert single_caller_helpers(modules) == 1


def test_the_walk_in_the_docs_counts_files_imported_by_an_earlier_one() -> None:
    modules = [
        module("commands/research.py", "from ..api import running"),
        module("api/running.py", "def run():\n    from ..runs.execution import run_request"),
        module("runs/execution.py", ""),
    ]
    page = "`other/file.py`\n<!-- walk -->\n{}\n<!-- /walk -->\n"
    listed = ["commands/research.py", "api/running.py", "runs/execution.py"]
    assert files_of_a_question(modules, page.format(" ".join(f"`{path}`" for path in listed))) == listed
    with pytest.raises(ValueError, match=r"runs/execution\.py"):
        files_of_a_question(modules, page.format("`commands/research.py` `runs/execution.py`"))
