"""The JSON of commands keeps its keys."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.contracts import key_paths, require_contract
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.sample_library import SAMPLES

QUESTION = "Do ensembles of seeds give better calibrated confidence?"


@pytest.fixture
def with_model() -> Any:
    with FakeOpenAI(behaviour=Librarian()) as model:
        yield {"CHAT_MODEL": "fake", "CHAT_BASE_URL": model.base_url, "CHAT_API_KEY": "k"}


def test_results_keep_their_keys(
    citeloom: Citeloom, home: Path, exp: Path, tmp_path: Path, with_model: dict[str, str]
) -> None:
    def given(*arguments: str | Path, **settings: str) -> Any:
        done = citeloom(*arguments, "--json", "--home", home, **settings)
        assert done.code in (0, 4), done.err
        return done.json

    section = given("results", exp, "--out", tmp_path / "section")
    answer = given("research", QUESTION, **with_model)
    found = {
        "section": section,
        "paper": given("paper", exp, "--out", tmp_path / "paper"),
        "research": given("research", QUESTION),
        "research with a model": answer,
        "search": given("search", "calibration"),
        "find": given("find", "calibration"),
        "papers list": given("papers", "list"),
        "papers show": given("papers", "show", "varga2021calibration"),
        "runs list": given("runs", "list"),
        "runs show": given("runs", "show", section["thread_id"]),
        "memory list": given("memory", "list"),
        "memory proposals": given("memory", "proposals"),
        "usage": given("usage"),
        "journal stats": given("journal", "stats"),
        "update": given("update"),
        "verify": given("verify", tmp_path / "section" / "results.json"),
        "export": given("export", tmp_path / "section" / "results.md", "--format", "html"),
        "agree": given("agree", "Ensembles are calibrated", "--papers", "varga2021calibration"),
        "contradictions": given("contradictions", "--claims", "2", **with_model),
        "conversations list": given("conversations", "list"),
        "doctor": given("doctor"),
        "ingest": given("ingest", shutil.copy(next(SAMPLES.glob("*.md")), tmp_path / "again.md")),
    }
    require_contract("commands", {name: key_paths(record) for name, record in found.items()})
