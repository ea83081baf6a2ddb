"""Shell completion as a user gets it: the script from the program itself, in a real bash."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.sample_library import index_samples
from tests.support.word_embedding import WordEmbedding

CITELOOM = Path(sys.executable).with_name("citeloom")

pytestmark = pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        (["citeloom", "con"], {"contradictions", "conclusion", "conversations"}),
        (["citeloom", "search", "--mo"], {"--mode"}),
        (["citeloom", "ingest", "papers", "--ra"], {"--ray", "--ray-workers"}),
        (["citeloom", "discussion", "--format", ""], {"md", "tex", "docx", "odt", "html", "pdf", "zip"}),
    ],
)
def test_bash_completes_commands_options_and_values(typed: list[str], offered: set[str]) -> None:
    assert completed(typed) == offered


def completed(typed: list[str]) -> set[str]:
    """What bash offers after these words."""
    words = " ".join(f"'{word}'" for word in typed)
    script = (
        f'eval "$({CITELOOM} --show-completion bash)"\n'
        f"COMP_WORDS=({words}) COMP_CWORD={len(typed) - 1}\n"
        f"_citeloom_completion {CITELOOM}\n"
        'printf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True)
    assert not done.stderr
    return set(done.stdout.split())


def test_bash_completes_keys_and_runs_of_the_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = index_samples(tmp_path / "home", WordEmbedding())
    home.runs().begin("section-results-abc", "f", "results", "Looms", {}, "v")
    monkeypatch.setenv("CITELOOM_HOME", str(home.root))
    assert completed(["citeloom", "papers", "show", "v"]) == {"varga2021calibration"}
    assert completed(["citeloom", "search", "x", "--papers", "o"]) == {"obrien2019seeds", "okafor2022ensembles"}
    assert completed(["citeloom", "runs", "show", "s"]) == {"section-results-abc"}
    monkeypatch.setenv("CITELOOM_HOME", str(tmp_path / "none"))
    assert completed(["citeloom", "papers", "show", ""]) == set()
