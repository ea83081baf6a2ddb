"""A whole section through the graph: three default queries, two custom searches, writing, judging, rendering.

The reference is the critical path: the same requests, sent by the bare client in the same stages, each stage at
once (60 at a time, as the run may). The run itself is a fresh one each time, with its journal, its checkpoints
on disk after every step, its register entry and its references by pandoc.
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
from citeloom.experiment import Experiment
from citeloom.graph.run import SectionRequest, run_section
from citeloom.graph.workbench import Workbench, open_workbench
from citeloom.stores.home import Home

TARGET = 1.4
KIND = "discussion"
READS = (60, 40)  # candidates of the three default queries, and of the two searches that the agent asks for


async def measure(home: Home, experiment: Experiment, rounds: int) -> list[Row]:
    """Rows for the two searches asked for in one turn and in two, 60 calls at a time, and for 20 at a time."""
    rows: list[Row] = []
    for together, at_once in ((True, 60), (False, 60), (True, 20)):
        walk = await requests_of(home, experiment, together, at_once)
        with serving(DELAY, together=together) as url, open_workbench(settings_for(url, at_once), home) as bench:
            async with BareClient(url, at_once) as bare:
                await run(bench, experiment)
                await bare.walk(walk)

                async def ours(bench: Workbench = bench) -> float:
                    return await run(bench, experiment)

                async def theirs(bare: BareClient = bare, walk: Sequence[Stage] = walk) -> float:
                    return await bare.walk(walk)

                pairs = await alternate(ours, theirs, rounds)
        turns = "one turn" if together else "two turns"
        target = TARGET if at_once == 60 else None
        what = f"section, searches in {turns}, {at_once} calls at a time ({len(walk)} stages)"
        rows.append(row_of(what, pairs, target=target))
    return rows


async def run(bench: Workbench, experiment: Experiment) -> float:
    """Seconds of a fresh run; raises when it was not the section that the reference walks."""
    started = time.perf_counter()
    result = await run_section(SectionRequest(KIND, experiment, fresh=True), bench)
    seconds = time.perf_counter() - started
    assert not result.finished_earlier
    assert result.record["citations"], "the section cites nothing"
    return seconds


async def requests_of(home: Home, experiment: Experiment, together: bool, at_once: int) -> list[Stage]:
    """The requests of a run, in stages."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with (
            serving(0, together=together, log=log) as url,
            open_workbench(settings_for(url, at_once), home) as bench,
        ):
            await run(bench, experiment)
        found = stages(log)
    reads = [len(stage) for stage in found if len(stage) >= 20]
    assert reads == (list(READS) if together else [READS[0], READS[1] // 2, READS[1] // 2]), reads
    return list(found)
