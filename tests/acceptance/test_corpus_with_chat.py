"""The 57 papers and a chat model on a real socket, which knows the protocol and nothing of our prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents import Category
from citeloom.experiment import SECTION_KINDS, load_experiment
from citeloom.graph.session import Session
from citeloom.models.concurrency import run_async
from citeloom.models.journal.journal import Journal
from citeloom.prompts import PromptLibrary
from citeloom.runs.execution import run_request, run_state
from citeloom.runs.output_files import save
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.library import Library
from tests.support.openai_server import FakeOpenAI
from tests.support.scripted_agent import ScriptedAgent
from tests.support.section_checks import check_files, check_section

EXPERIMENTS = ("edge_prior_baseline", "optimizer_choice_lasso", "word_meaning_change")
TOPICS = ("open source software", "protein structure", "survival models", "social networks", "word embeddings")
NEEDS = ("degree of a node in a network", "regularised regression", "meaning of words over time", "neural networks")


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_an_agent_that_searches_writes_all_sections(
    experiment: str, corpus_library: Library, shared_dir: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    turns = [[("search_evidence", {"query": topic})] for topic in TOPICS]
    server.behaviour = agent = ScriptedAgent(*turns, planned=NEEDS)
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, score_threshold=0.3, max_search_iterations=3)
    home = FolderHome(tmp_path / "home").prepare()
    exp = load_experiment(shared_dir / "experiments" / f"{experiment}.json")
    with Journal(home.journal) as journal:
        session = Session(settings, home, corpus_library, journal, PromptLibrary())

        async def write(kind: Any) -> tuple[dict[str, Any], dict[str, Any]]:
            finished = await run_request(SectionRequest(kind, exp), session)
            record = save(finished.record, tmp_path)
            return record, (await run_state(home, record["thread_id"])).values

        async def write_all() -> list[tuple[dict[str, Any], dict[str, Any]]]:
            return [await write(kind) for kind in SECTION_KINDS]

        written = run_async(write_all())
    for record, state in written:
        check_section(record, corpus_library, written_by_models=True)
        check_files(record, tmp_path)
        assert state["searches_used"] == 3, "it searches, and stops at its budget"
        assert len({citation["key"] for citation in record["citations"]}) >= 4
    assert len(agent.planning) == 3 * len(SECTION_KINDS)
    usage = [record["usage"] for record, _ in written]
    assert sum(use["llm_calls"] for use in usage) == server.calls()
    assert sum(use["input_tokens"] for use in usage) == agent.input_tokens
    assert sum(use["output_tokens"] for use in usage) == agent.output_tokens


def test_the_agent_may_use_every_tool(
    corpus_library: Library, shared_dir: Path, server: FakeOpenAI, tmp_path: Path
) -> None:
    chunks = (chunk for paper in corpus_library.papers() for chunk in corpus_library.paper_chunks(paper.key))
    method = next(chunk for chunk in chunks if chunk.category is Category.METHOD)
    key, chunk = method.key, method.id
    server.behaviour = agent = ScriptedAgent(
        [
            ("search_summaries", {"query": "prior probability of an edge"}),
            ("get_paper_introduction", {"key": key}),
            ("get_context_window", {"chunk_id": chunk, "window": 2}),
            ("search_evidence", {"query": "prior probability", "categories": ["method"], "papers": [key]}),
        ]
    )
    settings = Settings(chat_model="fake", chat_base_url=server.base_url, score_threshold=0.0, max_retries=0)
    home = FolderHome(tmp_path / "home").prepare()
    exp = load_experiment(shared_dir / "experiments" / "edge_prior_baseline.json")
    with Journal(home.journal) as journal:
        session = Session(settings, home, corpus_library, journal, PromptLibrary())
        request = SectionRequest("introduction", exp)
        record = run_async(run_request(request, session)).record
    check_section({**record, "files": {}}, corpus_library, written_by_models=True)
    state = asyncio.run(run_state(home, record["thread_id"])).values
    (custom,) = [query for query in state["queries"] if query["origin"] == "custom"]
    found = {item["id"]: item for item in record["evidence"]}
    assert custom["evidence_ids"]
    for name in custom["evidence_ids"]:
        assert found[name]["key"] == key
    assert len(agent.answers()) == 4
