"""The time to the first token of an answer: from a new question until the first word of the draft can be shown.

The reference is the critical path: the same requests, sent by the bare client in the same stages, the last one streamed
and stopped at its first word. The model answers after 100 ms. The time includes routing, shortlisting, searching,
reading, the journal and a checkpoint after every step, but not the rest of the run.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

from bench.bare import BareClient, Stage
from bench.evidence import DELAY, settings_for
from bench.measure import Row, alternate, row_of
from bench.server import serving, stages
from citeloom.graph.run_events import Event
from citeloom.graph.session import Session, open_session
from citeloom.models.embeddings.bundled_models import LocalEmbedding
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import ResearchRequest
from citeloom.stores.home import Home

TARGET = 1.3
AT_ONCE = 20
QUESTION = "Which methods have been compared on the same kind of task, and on how much data?"


async def measure(home: Home, rounds: int) -> list[Row]:
    """The row for a question whose evidence is sufficient at once."""
    walk = await requests_of(home)
    with serving(DELAY) as url, open_session(settings_for(url, AT_ONCE), home) as bench:
        async with BareClient(url, AT_ONCE) as bare:
            await first_token(bench)
            await bare.until_first_word(walk)
            pairs = await alternate(lambda: first_token(bench), lambda: bare.until_first_word(walk), rounds)
    calls = ", then ".join(str(len(stage)) for stage in walk)
    name = f"first token of an answer, {len(walk)} calls in a row ({calls} at once)"
    return [row_of(name, pairs, target=TARGET)]


async def first_token(bench: Session) -> float:
    """Seconds until the first token of a new run."""
    came: list[float] = []

    def note(event: Event) -> None:
        if event["kind"] == "token" and not came:
            came.append(time.perf_counter())

    embedding = bench.library.embedding
    if isinstance(embedding, LocalEmbedding):
        embedding.query_vector.cache_clear()  # a user asks a different question each time
    started = time.perf_counter()
    result = await run_request(ResearchRequest(QUESTION, fresh=True), bench, on_event=note)
    assert not result.finished_earlier
    assert result.record["answered"], "the answer cites nothing"
    return came[0] - started


async def requests_of(home: Home) -> list[Stage]:
    """The requests of a run up to the draft, in stages."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with serving(DELAY, log=log) as url, open_session(settings_for(url, AT_ONCE), home) as bench:
            await first_token(bench)
        found = stages(log)
    draft = next(place for place, stage in enumerate(found) if stage[0].get("stream"))
    assert len(found[draft]) == 1
    return list(found[: draft + 1])
