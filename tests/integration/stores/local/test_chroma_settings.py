"""The folder that a command is run in has no say in how Chroma is set up."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import cli_process

COUNT = """
import sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from citeloom.errors import InputError
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.local.chroma import LocalStores
try:
    print(LocalStores(FolderHome(Path(sys.argv[1])).prepare()).vectors.collection("content").count())
except InputError as error:
    print("refused:", error)
"""


def count_chunks(folder: Path) -> str:
    """What a process that is run in the folder prints of an empty library elsewhere."""
    command = [sys.executable, "-c", COUNT, str(folder.parent / "home"), str(cli_process.ROOT)]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert done.stderr == ""
    return done.stdout


@pytest.mark.parametrize("line", ["chroma_product_telemetry_impl=this.Anything", "migrations=none"])
def test_an_env_file_cannot_make_chroma_import_or_run_anything(tmp_path: Path, line: str) -> None:
    """The module `this` prints the Zen of Python when it is imported."""
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / ".env").write_text(f"{line}\n", encoding="utf-8")
    assert count_chunks(folder) == "0\n"


def test_an_env_file_that_chroma_cannot_read_is_reported(tmp_path: Path) -> None:
    folder = tmp_path / "cloned"
    folder.mkdir()
    (folder / ".env").write_text("chroma_server_http_port=many\n", encoding="utf-8")
    said = count_chunks(folder)
    assert said.startswith(f"refused: {folder / '.env'}: Chroma cannot read its settings") and said.count("\n") == 1
