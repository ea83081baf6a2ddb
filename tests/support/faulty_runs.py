"""Section runs against a server that fails a given share of its calls, by seed; then against the recovered server.

The runs share a process, a server and a library; each has a model name of its own, from which the server knows its
failure rate. Waiting takes no time. A run that does not end is stopped by a watchdog, which counts as a failure.
"""

from __future__ import annotations

import asyncio
import json
import random
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final

from citeloom.errors import PausedError
from citeloom.experiment import SECTION_KINDS, load_experiment
from citeloom.graph.session import Session
from citeloom.models.http.client import close_connections
from citeloom.models.http.failures import EndpointRefusedError
from citeloom.models.journal.journal import Journal
from citeloom.prompts import PromptLibrary
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.home import Home
from citeloom.stores.library import Library
from citeloom.stores.run_register import RunRegister
from tests.support.home_tables import run_tables
from tests.support.openai_server import FakeOpenAI, Fault, Json, Status
from tests.support.protocol_answers import envelope, request_hash
from tests.support.sample_library import EXPERIMENT
from tests.support.word_embedding import WordEmbedding

RATES: Final = (0.1, 0.3, 0.6)
WATCHDOG: Final = 300.0  # seconds, many times the duration of all runs
AT_ONCE: Final = 8
_FAULTS: Final[tuple[Status | Fault, ...]] = (
    Status(429, "slow down", retry_after="3"),
    Status(500, "oops"),
    "hang",
    "truncated",
    "drop",
    "not-json",
    "empty",
    "huge",
)


class FaultyServer(FakeOpenAI):
    """Fails by the seed and rate in the model's name, until it recovers."""

    def __init__(self) -> None:
        super().__init__(behaviour=self._meet)
        self.healed = False
        self.met: Counter[str] = Counter()
        self.good: dict[str, Counter[str]] = {}

    def _meet(self, body: Json) -> Json | Status | Fault | None:
        model = body["model"]
        _, seed, percent = model.split("-")
        asked = request_hash(body)
        answered = self.good.setdefault(model, Counter())
        tried = self.met[f"{model} {asked}"]
        self.met[f"{model} {asked}"] += 1
        dice = random.Random(f"{seed} {asked} {tried}")
        if not self.healed and dice.random() < int(percent) / 100:
            if dice.random() < 1 / 9:
                answered[asked] += 1  # still a paid answer: JSON of another schema
                return envelope(body, content=json.dumps({"something": ["else"], "score": "high"}))
            return dice.choice(_FAULTS)
        answered[asked] += 1
        return None


@dataclass
class Run:
    """How a run ended each time, whether the server had answered it by then, and the section's record if any."""

    model: str
    ends: list[Exception | None] = field(default_factory=list)
    unanswered: bool = False
    record: dict[str, Any] | None = None


def model_of(seed: int) -> str:
    """The model name by which the server identifies the run."""
    return f"faulty-{seed}-{int(100 * RATES[seed % len(RATES)])}"


def run_all(home: Home, server: FaultyServer, seeds: Iterable[int]) -> list[Run]:
    """Run everything once against the failing server, then resume the paused runs against the recovered one."""
    runs = [Run(model_of(seed)) for seed in seeds]
    library = Library.open(home, WordEmbedding())
    try:
        with Journal(home.journal) as journal:
            for healed in (False, True):
                server.healed = healed
                asyncio.run(_each([run for run in runs if run.record is None], library, journal, server))
    finally:
        library.close()
    return runs


async def _each(runs: list[Run], library: Library, journal: Journal, server: FaultyServer) -> None:
    prompts, experiment = PromptLibrary(), load_experiment(EXPERIMENT)
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(run: Run) -> None:
        seed = int(run.model.split("-")[1])
        settings = Settings(
            chat_model=run.model,
            chat_base_url=server.base_url,
            request_timeout=3,
            max_retries=3,
            max_concurrency=6,
            max_search_iterations=1,
            top_k_initial=3,
            score_threshold=0.1,
        )
        session = Session(settings, library.home, library, journal, prompts)
        request = SectionRequest(SECTION_KINDS[seed % len(SECTION_KINDS)], experiment)
        async with turn:
            try:
                run.record = (await run_request(request, session)).record
                run.ends.append(None)
            except Exception as error:  # noqa: BLE001  # the test decides which errors are acceptable
                run.ends.append(error)
                run.unanswered = not server.good[run.model]

    try:
        async with asyncio.timeout(WATCHDOG):
            await asyncio.gather(*(one(run) for run in runs))
    finally:
        await close_connections()


def check_runs(runs: list[Run], server: FaultyServer, home: Home) -> None:
    """Each run ended with a section or paused, none is lost, and no answer that arrived was requested again."""
    for run in runs:
        for end in run.ends:
            # Without a single answer the error says that the settings may be wrong, and there is no run to resume.
            refused = run.unanswered and isinstance(end, EndpointRefusedError)
            assert end is None or refused or isinstance(end, PausedError), f"{run.model}: {end!r}"
        assert run.record is not None, f"{run.model} was not finished by a healthy server: {run.ends}"
        assert run.record["text"].strip(), run.model
        twice = {asked: count for asked, count in server.good[run.model].items() if count > 1}
        assert not twice, f"{run.model}: {len(twice)} answers were paid for twice"
        assert run.record["usage"]["llm_calls"] == sum(server.good[run.model].values()), run.model
    assert {found.status for found in RunRegister(run_tables(home.runs_file)).all()} == {"finished"}
