"""A small library of the sample papers, indexed quickly."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from citeloom.ingestion.ingest import ingest
from citeloom.models.embeddings.protocol import EmbeddingModel
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from tests.support.cli_process import ROOT

SAMPLES = ROOT / "examples" / "library"
EXPERIMENT = ROOT / "examples" / "exp.json"
THREE = ("obrien2019seeds", "okafor2022ensembles", "varga2021calibration")


def index_samples(root: Path, embedding: EmbeddingModel, keys: Sequence[str] = THREE) -> Home:
    """A home with the sample papers of these keys."""
    home = FolderHome(root)
    library = Library.open(home, embedding)
    try:
        report = asyncio.run(ingest(library, [SAMPLES / f"{key}.md" for key in keys], bib=SAMPLES / "library.bib"))
    finally:
        library.close()
    assert not report.refused and len(report.added) == len(keys)
    return home
