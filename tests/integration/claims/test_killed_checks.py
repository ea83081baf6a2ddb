"""kill -9 in the middle of a check: answered calls are not repeated, and the result is the same."""

from __future__ import annotations

import shutil
import signal
from pathlib import Path

import pytest

from citeloom.models.embeddings.bundled_models import LocalEmbedding
from tests.support.checking_model import CheckingModel
from tests.support.cli_process import Finished, finish
from tests.support.killed_runs import Write, start_interrupted
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import index_samples

KEYS = ("varga2021calibration", "okafor2022ensembles", "obrien2019seeds")
# So many claims that they are judged in more than two calls, and some sentences without a citation.
TEXT = "\n\n".join(
    f"In case {number}, networks are {'never' if number % 5 == 0 else 'well'} calibrated [@{KEYS[number % 3]}]."
    f" A third of {number} networks worldwide is overconfident."
    for number in range(45)
)


@pytest.fixture(scope="module")
def samples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return index_samples(tmp_path_factory.mktemp("killed") / "home", LocalEmbedding()).root


def check(folder: Path, server: FakeOpenAI, number: int, side: str) -> Finished:
    """The check of the text, killed at its n-th commit of answers; 0 is none."""
    given = {
        "HOME": str(folder / "home"),
        "CHAT_MODEL": "fake",
        "CHAT_BASE_URL": server.base_url,
        "MAX_CONCURRENCY": "1",
    }
    arguments = ("check", "draft.md", "--only", "claims", "--json")
    return finish(start_interrupted(folder, Write("answer", side, number), given, *arguments))


def prepared(samples: Path, folder: Path) -> Path:
    shutil.copytree(samples, folder / "home")
    (folder / "draft.md").write_text(TEXT, encoding="utf-8")
    return folder


@pytest.mark.parametrize(("number", "side"), [(1, "before"), (1, "after"), (2, "before"), (4, "after")])
def test_a_killed_check_continues_without_repeating_calls(
    samples: Path, tmp_path: Path, number: int, side: str
) -> None:
    with FakeOpenAI(behaviour=CheckingModel()) as server:
        whole = check(prepared(samples, tmp_path / "whole"), server, 0, "before")
        calls = server.calls()
        assert calls >= 3, whole.err
        folder = prepared(samples, tmp_path / "killed")
        assert check(folder, server, number, side).code == -signal.SIGKILL
        again = check(folder, server, 0, "before")
        # The answer not yet on disk and the call in flight are lost.
        assert server.calls() - calls <= calls + 2, again.err
    shown = [
        [(one["claim"], one["label"], one["reason"]) for one in ended.json["sentences"]] for ended in (whole, again)
    ]
    assert shown[0] == shown[1] and {label for _, label, _ in shown[0]} == {"supported", "contradicted", "unjudged"}
