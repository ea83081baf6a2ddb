"""Evidence for one query: 20 candidates, an endpoint that answers after 100 ms, 20 at a time.

Ours is all of it: embedding the query, the vector search, prompts, journal (each answer on disk before it is
used), limiter, ChatOpenAI, validation and choice. The bare client sends the same 20 requests.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.bare import BareClient, Stage
from bench.measure import Row, alternate, row_of
from bench.server import ROOT, SEARCHES, serving, stages
from citeloom.config import Settings
from citeloom.experiment import Experiment
from citeloom.graph.queries import default_queries
from citeloom.graph.workbench import Workbench, open_workbench
from citeloom.stores.home import Home
from citeloom.tools import Scope, search_evidence

TARGET = 1.35
DELAY = 0.1
AT_ONCE = 20
_number = itertools.count()


def settings_for(base_url: str, at_once: int) -> Settings:
    """Settings of a run against the fake endpoint; nothing is taken from the environment."""
    return Settings(chat_model="fake", chat_base_url=base_url, max_concurrency=at_once, top_k_initial=20)


async def search(bench: Workbench, query: str) -> float:
    """Seconds of one search; as a run of its own, so that the journal holds no answer for it."""
    run = f"bench-{os.getpid()}-{next(_number)}"
    bench.set_scope(run, fresh=True)
    started = time.perf_counter()
    roles = await bench.roles_of(run)
    await search_evidence(bench.library, roles.reader, query, Scope(), bench.limits)
    seconds = time.perf_counter() - started
    used = await bench.usage(run)
    assert used["llm_calls"] == bench.limits.top_k_initial, used
    return seconds


async def measure(home: Home, experiment: Experiment, rounds: int) -> list[Row]:
    """Rows for a default query and a short one, warm; then for the first search of a process."""
    rows: list[Row] = []
    with serving(DELAY) as url, open_workbench(settings_for(url, AT_ONCE), home) as bench:
        count = bench.library.embedding.count_tokens
        longest = default_queries("discussion", experiment, count)[-1]
        for query in (longest, SEARCHES[0]):
            bodies = await requests_of(bench.home, query)
            async with BareClient(url, AT_ONCE) as bare:
                await search(bench, query)
                await bare.walk([bodies])

                async def ours(query: str = query) -> float:
                    return await search(bench, query)

                async def theirs(bare: BareClient = bare, bodies: Stage = bodies) -> float:
                    return await bare.walk([bodies])

                pairs = await alternate(ours, theirs, rounds)
            rows.append(row_of(f"evidence, query of {count(query)} tokens, warm", pairs, target=TARGET))
        rows.append(await _cold(home, url, longest, await requests_of(home, longest), max(1, rounds // 3)))
    return rows


async def _cold(home: Home, url: str, query: str, bodies: Stage, rounds: int) -> Row:
    """The first search of a process, each in a new one; no target is set for it."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.json"
        asked.write_text(json.dumps({"query": query, "bodies": bodies}), encoding="utf-8")

        async def first(who: str) -> float:
            command = [sys.executable, "-m", "bench.first_search", who, "--url", url]
            command += ["--home", str(home.root), "--asked", str(asked)]
            done = await asyncio.to_thread(
                subprocess.run, command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
            )
            return float(done.stdout)

        pairs = await alternate(lambda: first("ours"), lambda: first("bare"), rounds)
    return row_of("evidence, the first search of a process", pairs)


async def requests_of(home: Home, query: str) -> Stage:
    """The 20 requests that a search makes."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with serving(0, log=log) as url, open_workbench(settings_for(url, AT_ONCE), home) as bench:
            await search(bench, query)
        [bodies] = stages(log)
    return bodies
