"""A small library of the sample papers, made once per session."""

from __future__ import annotations

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from citeloom import aingest, aopen_library

ROOT = Path(__file__).resolve().parents[2]
PAPERS = ("obrien2019seeds", "okafor2022ensembles", "tanaka2023position", "varga2021calibration")


@pytest.fixture(scope="session")
def sample_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with four of the sample papers; tests that write to it must copy it."""
    home = tmp_path_factory.mktemp("sample") / "home"
    library = ROOT / "examples" / "library"

    async def fill() -> None:
        async with aopen_library(home) as opened:
            report = await aingest(opened, [library / f"{key}.md" for key in PAPERS], bib=library / "library.bib")
            assert report["papers_added"] == len(PAPERS)

    asyncio.run(fill())
    return home


@pytest.fixture
def home(sample_home: Path, tmp_path: Path) -> Path:
    """A copy of the sample home for one test."""
    return shutil.copytree(sample_home, tmp_path / "home")


@pytest.fixture(scope="session")
def experiment() -> dict[str, Any]:
    """The sample experiment."""
    loaded: dict[str, Any] = json.loads((ROOT / "examples" / "exp.json").read_text(encoding="utf-8"))
    return loaded
