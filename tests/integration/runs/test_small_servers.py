"""Servers with a context of 4,096 tokens: each prompt fits with its answer, nothing pauses, and the result says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.experiment import parse_experiment
from citeloom.graph.session import open_session
from citeloom.models.http.client import close_connections
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import ResearchRequest, SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from tests.support.openai_server import FakeOpenAI, Json, Status
from tests.support.protocol_answers import envelope
from tests.support.run_fixtures import Opened
from tests.support.small_server import Kind, SmallServer

QUESTION = "How does temperature scaling change the calibration for new wearers, and what do seed ensembles add to it?"
HELD = 4096


@pytest.fixture
def small() -> SmallServer:
    return SmallServer(HELD)


@pytest.fixture
def server(small: SmallServer) -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=small) as running:
        yield running


STATED = [
    pytest.param({"max_model_len": HELD}, {}, id="stated"),
    pytest.param({}, {}, id="learned"),
    pytest.param({}, {"context_tokens": HELD}, id="set"),
]


@pytest.mark.parametrize(("listed", "settings"), STATED)
async def test_a_server_with_a_small_context_answers_a_question(
    session: Opened, server: FakeOpenAI, small: SmallServer, listed: Json, settings: Json
) -> None:
    server.listed = listed
    record = (await run_request(ResearchRequest(QUESTION), session(**settings, enough_findings=100))).record
    assert record["answered"] and record["citations"] and "](" not in record["text"]
    _nothing_was_lost(small, record, learned=not (listed or settings))


@pytest.mark.parametrize(("listed", "settings"), STATED)
async def test_a_server_with_a_small_context_writes_a_discussion(
    session: Opened,
    server: FakeOpenAI,
    small: SmallServer,
    experiment: Json,
    listed: Json,
    settings: Json,
) -> None:
    server.listed = listed
    request = SectionRequest("discussion", parse_experiment(experiment))
    record = (await run_request(request, session(**settings))).record
    assert record["citations"] and record["text"].strip()
    assert "planning" in small.asked
    _nothing_was_lost(small, record, learned=not (listed or settings))


def _nothing_was_lost(small: SmallServer, record: Json, *, learned: bool) -> None:
    assert bool(small.refused) is learned
    assert small.invalid == 0, "no reading was asked for twice"
    assert max(small.held) <= HELD
    assert {"PassageReading", "SupportVerdicts", "writing"} <= set(small.asked)
    (note,) = [note for note in record["warnings"] if note.startswith(f"The server holds {HELD:,} tokens: ")]
    assert "no finding was left out" in note or "left out of the writer's prompt, the weakest first: E" in note
    shown = small.markers_shown_to_the_writer
    assert shown and not shown & set(note.rpartition(": ")[2].rstrip(".").split(", "))


@pytest.mark.parametrize("size", [HELD, 3_500])
async def test_a_refusal_during_a_run_reveals_the_context_size_too(
    session: Opened, small: SmallServer, experiment: Json, size: int
) -> None:
    small.size, small.kind = size, "llama.cpp"
    opened = session(window_tokens=2_000, section_words=2_000)
    record = (await run_request(SectionRequest("discussion", parse_experiment(experiment)), opened)).record
    assert small.refused and len(small.answered) > len(small.refused)
    assert record["citations"] and small.invalid == 0 and max(small.held) <= size
    assert any(note.startswith(f"The server holds {size:,} tokens: ") for note in record["warnings"])


@pytest.mark.parametrize(("kind", "size", "answer"), [("llama.cpp", HELD, 2_500), ("ollama", 2_048, 300)])
async def test_a_server_that_silently_cuts_prompts_gets_smaller_ones(
    session: Opened, small: SmallServer, experiment: Json, kind: Kind, size: int, answer: int
) -> None:
    small.size, small.kind, small.answer_tokens = size, kind, answer
    record = (await run_request(SectionRequest("discussion", parse_experiment(experiment)), session())).record
    assert small.cut + small.unread == 1, "it is learned from at once"
    assert record["citations"] and small.invalid == 0 and not small.refused
    assert any(note.startswith(f"The server holds {size:,} tokens: ") for note in record["warnings"])


async def test_a_resumed_run_keeps_its_prompts_though_the_server_now_reports_another_size(
    session: Opened, server: FakeOpenAI, small: SmallServer
) -> None:
    small.busy_after = 6
    with pytest.raises(Exception, match="could not answer"):
        await run_request(ResearchRequest(QUESTION), session())
    small.busy_after = None
    server.listed = {"max_model_len": 3_000}
    answered = {json.dumps(body["messages"]) for body in small.answered}
    count = len(small.answered)
    record = (await run_request(ResearchRequest(QUESTION), session())).record
    again = {json.dumps(body["messages"]) for body in small.answered[count:]}
    assert record["answered"] and not answered & again, "nothing is paid for twice"
    assert any(note.startswith(f"The server holds {HELD:,} tokens") for note in record["warnings"])


async def test_prompts_are_not_shortened_for_an_unknown_or_large_context(
    home: Path, tmp_path: Path, experiment: Json
) -> None:
    asked: list[list[str]] = []
    large = SmallServer(10**9)
    for number, listed in enumerate(({}, {"max_model_len": 131_072})):
        with FakeOpenAI(behaviour=lambda body: _enough(body) if body.get("tools") else large(body)) as server:
            server.listed = listed
            given: Any = {"chat_model": "fake", "chat_base_url": server.base_url, "max_retries": 0}
            copy = shutil.copytree(home, tmp_path / f"copy{number}")
            with open_session(Settings(**given), FolderHome(copy)) as opened:
                await run_request(SectionRequest("discussion", parse_experiment(experiment)), opened)
            await close_connections()
            asked.append(sorted(json.dumps([body["messages"], body["max_tokens"]]) for body in server.requests))
    assert asked[0] == asked[1]


def _enough(body: Json) -> Json:
    return envelope(body, content="Enough.")


@pytest.mark.parametrize("answer", ["hang", "html", "not-json", "empty", "list", "drop", Status(500), Status(404)])
async def test_a_server_with_an_unusable_list_of_models_is_still_used(
    session: Opened, server: FakeOpenAI, answer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("citeloom.models.context_size._LIST_TIMEOUT", 0.3)
    server.behaviour, server.models_answer = None, answer
    opened = session()
    record = (await run_request(ResearchRequest(QUESTION, single_shot=True), opened)).record
    assert record["usage"]["llm_calls"] and server.models_asked == 1


async def test_without_a_chat_model_no_server_is_contacted(session: Opened, server: FakeOpenAI) -> None:
    await run_request(ResearchRequest(QUESTION), session(chat_model="extractive"))
    assert server.models_asked == 0
