"""The package exports exactly its public API."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import citeloom.api

ROOT = Path(citeloom.__file__).parent


def test_dir_lists_exactly_the_public_api() -> None:
    assert dir(citeloom) == sorted(citeloom.__all__)


def test_a_submodule_is_loaded_on_first_use() -> None:
    assert citeloom.api.messages.NAME == "citeloom"
    assert not hasattr(citeloom.api, "nothing")


def test_a_streaming_call_takes_the_same_arguments_without_a_listener() -> None:
    call, stream = (inspect.signature(item) for item in (citeloom.aresearch, citeloom.astream_research))
    assert [name for name in call.parameters if name != "on_event"] == [*stream.parameters]
    assert "AsyncGenerator" in str(stream.return_annotation)


def test_every_import_of_the_service_layer_is_used() -> None:
    files = [
        *ROOT.glob("*.py"),
        *(file for room in ("api", "commands", "server", "language_server") for file in (ROOT / room).rglob("*.py")),
    ]
    words = {file: set(re.findall(r"\w+", file.read_text("utf-8"))) for file in files}
    for file in (ROOT / "api").glob("*.py"):
        text = file.read_text("utf-8")
        for node in ast.walk(ast.parse(text)):
            for name in node.names if isinstance(node, ast.ImportFrom) and node.level else ():
                used = len(re.findall(rf"\b{name.asname or name.name}\b", text)) > 1
                assert used or any(name.name in words[other] for other in files if other != file), (
                    file.name,
                    name.name,
                )
