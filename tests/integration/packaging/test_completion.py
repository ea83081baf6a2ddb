"""Shell completion as a user gets it: the script from the program itself, in a real bash."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CITELOOM = Path(sys.executable).with_name("citeloom")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["citeloom", "con"], {"contradictions", "conclusion", "conversations"}),
        (["citeloom", "search", "--mo"], {"--mode"}),
        (["citeloom", "ingest", "papers", "--ra"], {"--ray", "--ray-workers"}),
        (["citeloom", "discussion", "--format", ""], {"md", "tex", "docx", "html", "pdf", "zip"}),
    ],
)
def test_bash_completes_commands_options_and_values(typed: list[str], offered: set[str]) -> None:
    words = " ".join(f"'{word}'" for word in typed)
    script = (
        f'eval "$({CITELOOM} --show-completion bash)"\n'
        f"COMP_WORDS=({words}) COMP_CWORD={len(typed) - 1}\n"
        f"_citeloom_completion {CITELOOM}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert set(done.stdout.split()) == offered and not done.stderr
