"""A whole section through the graph: needs, their first search, two custom searches, writing, judging, rendering.

The reference is the critical path: the same requests, sent by the bare client in the same stages, each stage
concurrently, with the run's limit on concurrent calls (20 is the default of CITELOOM_MAX_CONCURRENCY). Each run is
new, with its journal, a checkpoint on disk after every step, its register entry and its references by pandoc.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from bench.bare import BareClient, Stage
from bench.evidence import DELAY, settings_for
from bench.measure import Row, alternate, row_of
from bench.server import serving, stages
from citeloom.citations import references
from citeloom.experiment import Experiment
from citeloom.graph.session import Session, open_session
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import SectionRequest
from citeloom.stores.home import Home

TARGET = 1.4
KIND = "discussion"


async def measure(home: Home, experiment: Experiment, rounds: int) -> list[Row]:
    """Rows for the two searches requested in one turn and in two, with 20 concurrent calls and with 60."""
    rows: list[Row] = []
    for together, at_once in ((True, 20), (False, 20)):
        walk = await requests_of(home, experiment, together, at_once)
        with serving(DELAY, together=together) as url, open_session(settings_for(url, at_once), home) as bench:
            async with BareClient(url, at_once) as bare:
                await run(bench, experiment)
                await bare.walk(walk)

                async def ours(bench: Session = bench) -> float:
                    return await run(bench, experiment)

                async def theirs(bare: BareClient = bare, walk: Sequence[Stage] = walk) -> float:
                    return await bare.walk(walk)

                pairs = await alternate(ours, theirs, rounds)
        turns = "one turn" if together else "two turns"
        calls = sum(map(len, walk))
        rows.append(
            row_of(f"section, two searches in {turns}, {calls} calls, {at_once} at a time", pairs, target=TARGET)
        )
    return rows


async def run(bench: Session, experiment: Experiment) -> float:
    """Seconds of a fresh run; raises if its requests are not those of the reference."""
    references._format_in_default_style.cache_clear()  # a user's run has other sources than the one before
    started = time.perf_counter()
    result = await run_request(SectionRequest(KIND, experiment, fresh=True), bench)
    seconds = time.perf_counter() - started
    assert not result.finished_earlier
    assert result.record["citations"], "the section cites nothing"
    return seconds


async def requests_of(home: Home, experiment: Experiment, together: bool, at_once: int) -> list[Stage]:
    """The requests of a run, in stages."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with (
            serving(DELAY, together=together, log=log) as url,
            open_session(settings_for(url, at_once), home) as bench,
        ):
            await run(bench, experiment)
        found = stages(log)
    return list(found)
