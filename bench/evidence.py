"""Evidence for all needs of a section, and for one query of the agent; the endpoint answers after 100 ms.

Our side does everything: embeds the queries, searches, builds windows and prompts, commits each answer to the journal
before it is used, limits the rate, validates and selects. The bare client sends the same requests in the
same waves.
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
from collections.abc import Sequence
from pathlib import Path

from bench.bare import BareClient, Stage
from bench.measure import Row, alternate, row_of
from bench.server import ROOT, SEARCHES, serving, stages
from citeloom.experiment import Experiment
from citeloom.graph.section_queries import default_queries
from citeloom.graph.session import Session, open_session
from citeloom.roles.extractive.statement_needs import section_needs
from citeloom.roles.protocols import Purpose
from citeloom.settings.config import Settings
from citeloom.stores.home import Home
from citeloom.tools.evidence_search import read_in_waves, search_each
from citeloom.tools.scope import Scope
from citeloom.tools.window_search import propose_windows

TARGET = 1.35
DELAY = 0.1
AT_ONCE = 20
_number = itertools.count()


def settings_for(base_url: str, at_once: int) -> Settings:
    """Settings of a run against the fake endpoint; the environment is ignored."""
    return Settings(chat_model="fake", chat_base_url=base_url, max_concurrency=at_once)


async def search(bench: Session, queries: Sequence[str]) -> float:
    """Seconds for the first search for several needs, or for an agent's search for one query.

    Each search is a separate run, so that the journal holds no answer for it.
    """
    needs = section_needs(queries)
    purpose = Purpose("The discussion of a paper.", needs)
    limits = bench.limits
    run = f"bench-{os.getpid()}-{next(_number)}"
    with bench.run(run, fresh=True):
        started = time.perf_counter()
        roles = await bench.roles_of(run)
        if len(needs) == 1:
            (searched,) = await search_each(bench.library, roles.reader, purpose, [(needs[0], Scope())], limits)
        else:
            proposed = limits.windows(limits.read_tokens, len(needs))
            windows = await propose_windows(bench.library, needs, Scope(), proposed, limits.retrieval)
            searched = await read_in_waves(roles.reader, purpose, windows, limits, bench.library)
        seconds = time.perf_counter() - started
    used = await bench.usage(run)
    assert used["llm_calls"] and searched.read, used
    return seconds


async def measure(home: Home, experiment: Experiment, rounds: int) -> list[Row]:
    """Rows for the needs of a discussion and for one query, warm; then for the first search of a process."""
    rows: list[Row] = []
    with serving(DELAY) as url, open_session(settings_for(url, AT_ONCE), home) as bench:
        count = bench.library.embedding.count_tokens
        first = default_queries("discussion", experiment, count)
        for queries in (first, SEARCHES[:1]):
            walk = await requests_of(bench.home, queries)
            async with BareClient(url, AT_ONCE) as bare:
                await search(bench, queries)
                await bare.walk(walk)

                async def ours(queries: Sequence[str] = queries) -> float:
                    return await search(bench, queries)

                async def theirs(bare: BareClient = bare, walk: Sequence[Stage] = walk) -> float:
                    return await bare.walk(walk)

                pairs = await alternate(ours, theirs, rounds)
            calls = " + ".join(str(len(stage)) for stage in walk)
            rows.append(row_of(f"evidence, {len(queries)} queries, {calls} calls, warm", pairs, target=TARGET))
        rows.append(await _cold(home, url, first, await requests_of(home, first), max(1, rounds // 3)))
    return rows


async def _cold(home: Home, url: str, queries: Sequence[str], walk: Sequence[Stage], rounds: int) -> Row:
    """The first search of a process, each in a new process; it has no target."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder) / "asked.json"
        asked.write_text(json.dumps({"queries": queries, "stages": walk}), encoding="utf-8")

        async def first(who: str) -> float:
            command = [sys.executable, "-m", "bench.first_search", who, "--url", url]
            command += ["--home", str(home.root), "--asked", str(asked)]
            done = await asyncio.to_thread(
                subprocess.run, command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
            )
            return float(done.stdout)

        pairs = await alternate(lambda: first("ours"), lambda: first("bare"), rounds)
    return row_of("evidence, the first search of a process", pairs)


async def requests_of(home: Home, queries: Sequence[str]) -> list[Stage]:
    """The requests of a search, in stages."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with serving(DELAY, log=log) as url, open_session(settings_for(url, AT_ONCE), home) as bench:
            await search(bench, queries)
        return list(stages(log))
