"""Ingest of 200 papers here, and on a Ray cluster with two workers on the same machine: `python -m bench.ray_ingest`.

On the same number of cores Ray can only cost time; the table shows how much, and how much of that is its start-up.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
import time
from pathlib import Path

from bench.endpoint_ingest import PAPERS, write_papers
from bench.measure import row_of, table
from bench.papers import material
from citeloom.ingestion.ingest import ingest
from citeloom.ingestion.ingest_events import Planned
from citeloom.ingestion.ray_executor import RayRequest
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library

WORDS = 700
WORKERS = 2


async def time_ingest(home: Path, papers: Path, ray: RayRequest | None) -> tuple[float, float, str]:
    """Seconds until the work is planned, seconds in all, and the library's version."""
    library = Library.open(FolderHome(home), LocalEmbedding())
    began = time.perf_counter()
    planned = 0.0

    def show(event: object) -> None:
        nonlocal planned
        if isinstance(event, Planned):
            planned = time.perf_counter() - began

    report = await ingest(library, [papers], ray=ray, on_event=show)
    assert len(report.added) == PAPERS, report
    version = library.version()
    library.close()
    return planned, time.perf_counter() - began, version


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="citeloom-bench-") as folder:
        papers = Path(folder, "papers")
        papers.mkdir()
        write_papers(papers, material(), WORDS)
        on_ray = asyncio.run(time_ingest(Path(folder, "ray"), papers, RayRequest(workers=WORKERS)))
        here = asyncio.run(time_ingest(Path(folder, "here"), papers, None))
    assert on_ray[2] == here[2]
    rows = [
        row_of(f"ingest of {PAPERS} papers, Ray with {WORKERS} workers : here", [(on_ray[1], here[1])]),
        row_of("until embedding begins, with the start of Ray : here", [(on_ray[0], here[0])]),
        row_of("from then on : here", [(on_ray[1] - on_ray[0], here[1] - here[0])]),
    ]
    print(f"{table(rows)}\nload at the end: {os.getloadavg()[0]:.1f}", file=sys.stdout)


if __name__ == "__main__":
    main()
