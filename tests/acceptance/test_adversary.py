"""A model that invents sources, breaks JSON, says nothing and searches without end, in 200 seeded runs.

Whatever it does, a run ends with a section whose every source is in the library, or with an error of ours. The
runs share a process, a server and a library; each has a model name of its own, by which the server finds its
seed, and which keeps the answers of one run out of all others.
"""

from __future__ import annotations

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from citeloom.errors import CiteloomError
from citeloom.experiment import SECTION_KINDS, load_experiment
from citeloom.graph.session import Session
from citeloom.models.http.client import close_connections
from citeloom.models.journal.journal import Journal
from citeloom.prompts import PromptLibrary
from citeloom.runs.execution import run_request
from citeloom.runs.output_files import save
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.library import Library
from tests.support.adversary import FOREIGN_KEYS, Adversary, honest_verdicts
from tests.support.openai_server import FakeOpenAI, Json, Raw
from tests.support.protocol_answers import completion, request_hash
from tests.support.sample_library import EXPERIMENT, index_samples
from tests.support.section_checks import check_files, check_section
from tests.support.word_embedding import WordEmbedding

SEEDS = range(200)
HONEST = range(0, 200, 2)  # whose judge says what it sees, whatever the writer does
LABELS = ("supported", "partly", "unsupported", "contradicted", "unjudged")
REVERTED = "was reverted."
AT_ONCE = 8
SEARCHES = 3
# Turns of the planner: two for each search, two more for mistakes (graph/nodes/agent.py).
TURNS = 2 * SEARCHES + 2


def misbehave(body: Json) -> Json | Raw | None:
    """What the adversary with the seed in the model's name answers, now and then with invalid characters."""
    seed = int(body["model"].rpartition("-")[2])
    if seed in HONEST and (judged := honest_verdicts(body)):
        return judged
    answer = Adversary(seed)(body)
    dice = random.Random(f"torn {seed} {request_hash(body)}")
    if isinstance(answer, Raw) or dice.random() > 0.05:
        return answer
    torn = answer or completion(body, tool_turns=2)
    message = torn["choices"][0]["message"]
    sign = dice.choice(["\ud83d", "\x00", "\x1b[31m", "\u202e"])
    if isinstance(message.get("content"), str):
        message["content"] = message["content"].replace(" ", f" {sign} ", 5)
    for call in message.get("tool_calls") or ():
        call["function"]["arguments"] = call["function"]["arguments"].replace('": "', f'": "{json.dumps(sign)[1:-1]}')
    return Raw(json.dumps(torn))


@dataclass(frozen=True)
class Ended:
    """How a run ended; `error` is one of ours, or something that must not happen."""

    seed: int
    record: dict[str, Any] | None
    error: Exception | None


@dataclass(frozen=True)
class Runs:
    """All runs, with the requests of each."""

    ended: list[Ended]
    requests: dict[str, list[Json]]
    library: Library
    folder: Path


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    folder = tmp_path_factory.mktemp("adversary")
    home = index_samples(folder / ".citeloom", WordEmbedding())
    library = Library.open(home, WordEmbedding())
    with FakeOpenAI(behaviour=misbehave) as server, Journal(home.journal) as journal:
        ended = asyncio.run(all_runs(library, journal, server.base_url, folder))
    requests: dict[str, list[Json]] = {}
    for body in server.requests:
        requests.setdefault(body["model"], []).append(body)
    yield Runs(ended, requests, library, folder)
    library.close()


async def all_runs(library: Library, journal: Journal, base_url: str, folder: Path) -> list[Ended]:
    prompts = PromptLibrary()
    experiment = load_experiment(EXPERIMENT)
    turn = asyncio.Semaphore(AT_ONCE)

    async def one(seed: int) -> Ended:
        dice = random.Random(seed)
        settings = Settings(
            chat_model=f"adversary-{seed}",
            chat_base_url=base_url,
            max_retries=0,
            max_search_iterations=dice.choice([0, 1, SEARCHES]),
            max_repairs=dice.choice([0, 1, 2]),
            top_k_initial=4,
            score_threshold=dice.choice([0.0, 0.3]),
        )
        session = Session(settings, library.home, library, journal, prompts)
        request = SectionRequest(SECTION_KINDS[seed % len(SECTION_KINDS)], experiment)
        async with turn:
            try:
                finished = await run_request(request, session)
                return Ended(seed, save(finished.record, folder / str(seed)), None)
            except Exception as error:  # noqa: BLE001  # which error it is, is for the test to judge
                return Ended(seed, None, error)

    try:
        return await asyncio.gather(*(one(seed) for seed in SEEDS))
    finally:
        await close_connections()


def test_every_run_ends_with_a_section_or_a_citeloom_error(runs: Runs) -> None:
    wrong = {end.seed: end.error for end in runs.ended if end.error and not isinstance(end.error, CiteloomError)}
    assert not wrong, f"seeds {sorted(wrong)}: {wrong}"
    assert all("\n" not in str(end.error) for end in runs.ended if end.error)
    finished = sum(end.record is not None for end in runs.ended)
    assert finished >= len(SEEDS) // 2, "the adversary must let most runs through, or little is tested"


def test_no_invented_source_reaches_the_output(runs: Runs) -> None:
    for end in runs.ended:
        if end.record is None:
            continue
        try:
            check_section(end.record, runs.library, written_by_models=True)
            check_files(end.record, Path("/"))
        except AssertionError as found:
            raise AssertionError(f"seed {end.seed}: {found}") from found
        for foreign in (*FOREIGN_KEYS, "example.invalid"):
            assert foreign not in end.record["text"], f"seed {end.seed}: {foreign} is in the text"


def test_endless_searching_is_bounded(runs: Runs) -> None:
    turns: Counter[str] = Counter()
    for model, bodies in runs.requests.items():
        turns[model] = sum(bool(body.get("tools")) for body in bodies)
    assert max(turns.values()) <= TURNS
    assert max(turns.values()) > SEARCHES, "nobody searched on and on"


def test_the_calls_reported_do_not_exceed_the_requests_made(runs: Runs) -> None:
    for end in runs.ended:
        if end.record is None:
            continue
        # A broken answer costs a call that nobody can count by its usage; all others are counted.
        asked = len(runs.requests[f"adversary-{end.seed}"])
        assert end.record["usage"]["llm_calls"] <= asked, f"seed {end.seed}"


def passage(citation: dict[str, Any]) -> str:
    """The cited passage as messages name it to readers, who never see a marker."""
    return citation["key"] if citation["page"] is None else f"{citation['key']}, page {citation['page']}"


def test_an_honest_judge_notices_citations_of_the_wrong_evidence(runs: Runs) -> None:
    verdicts: Counter[str] = Counter()
    for end in runs.ended:
        if end.record is None or end.seed not in HONEST:
            continue
        verdicts.update(citation["verdict"] for citation in end.record["citations"])
        for citation in end.record["citations"]:
            if citation["verdict"] != "unsupported":
                continue
            assert "[not supported]" in citation["sentence"], f"seed {end.seed}: {citation['sentence']}"
            names = re.compile(rf"is not supported by (?:[^:]+ and )?{re.escape(passage(citation))}(?!\w)")
            told = [line for line in end.record["warnings"] if names.search(line)]
            assert told, f"seed {end.seed}: {citation['sentence']}"
    assert verdicts["unsupported"] > 20 and verdicts["supported"] > 20, verdicts


def test_a_lying_judge_moves_no_citation_and_garbled_verdicts_are_reported(runs: Runs) -> None:
    """Above, every record is checked for spans in the chunk and marks in the text."""
    lied = [end.record for end in runs.ended if end.record and end.seed not in HONEST]
    verdicts = Counter(citation["verdict"] for record in lied for citation in record["citations"])
    assert set(verdicts) <= {*LABELS} and len(verdicts) > 2, verdicts
    for record in lied:
        said = [item["message"].rpartition('" ')[2] for item in record["findings"] if item["rule"] == "unjudged"]
        named = [name for line in said for name in not_compared(line)]
        unjudged = [citation for citation in record["citations"] if citation["verdict"] == "unjudged"]
        assert Counter(named) == Counter(map(passage, unjudged)), record["thread_id"]


def not_compared(said: str) -> list[str]:
    """The passages that the message of a sentence without a verdict names."""
    _, _, after = said.partition("was not compared with ")
    return after.partition(": ")[0].rstrip(".").split(" and ")


def test_repairs_are_few_and_are_undone_if_they_make_a_draft_worse(runs: Runs) -> None:
    written: Counter[str] = Counter()
    for model, bodies in runs.requests.items():
        written[model] = sum(not body.get("tools") and not body.get("response_format") for body in bodies)
    assert max(written.values()) <= 2 * (1 + 2), "a draft and two repairs, each asked for twice at most"
    taken_back = [end.seed for end in runs.ended if end.record and REVERTED in " ".join(end.record["warnings"])]
    assert taken_back, "no repair made a draft worse"
