"""A whole run against a chat model on a real socket: budgets, tools, numbering, counting, and what is remembered."""

from __future__ import annotations

import asyncio
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, ToolMessage
from starlette.requests import Request
from starlette.responses import Response

from citeloom.experiment import SECTION_KINDS, parse_experiment
from citeloom.graph.session import Session
from citeloom.models.http.client import close_connections
from citeloom.prompts.loader import PROMPT_NAMES, load_prompt
from citeloom.runs.execution import run_request, run_state
from citeloom.runs.run_requests import SectionRequest
from citeloom.stores.local.checkpoints import open_checkpoints
from tests.support.openai_server import Answer, FakeOpenAI
from tests.support.protocol_answers import envelope
from tests.support.run_fixtures import Opened
from tests.support.scripted_agent import PLANS, ScriptedAgent
from tests.support.section_checks import check_section


@pytest.fixture
def usual() -> dict[str, Any]:
    return {"top_k_initial": 4, "max_retries": 0, "score_threshold": 0.0}


async def written(session: Session, experiment: dict[str, Any], kind: Any = "discussion") -> dict[str, Any]:
    finished = await run_request(SectionRequest(kind, parse_experiment(experiment)), session)
    check_section({**finished.record, "files": {}}, session.library, written_by_models=True)
    return finished.record


async def state_of(session: Session, record: dict[str, Any]) -> dict[str, Any]:
    return (await run_state(session.home, record["thread_id"])).values


def search(query: str, **scope: Any) -> tuple[str, dict[str, Any]]:
    return "search_evidence", {"query": query, **scope}


def every_call_is_answered(messages: list[Any]) -> bool:
    asked = [call["id"] for message in messages if isinstance(message, AIMessage) for call in message.tool_calls]
    answered = [message.tool_call_id for message in messages if isinstance(message, ToolMessage)]
    return sorted(asked) == sorted(answered)


async def test_without_a_search_budget_the_planner_is_not_called(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = ScriptedAgent([search("seed ensembles")])
    opened = session(max_search_iterations=0)
    record = await written(opened, experiment)
    state = await state_of(opened, record)
    assert agent.planning == []
    defaults = [query for query in state["queries"] if query["origin"] == "default"]
    assert [query["query"] for query in defaults[1:]] == [experiment["reasoning"], experiment["results"]]
    assert {query["origin"] for query in state["queries"]} == {"default", "need"}
    assert record["citations"]


async def test_default_queries_are_stored_but_not_listed_and_omit_the_users_numbers(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    """By rules, since the model garbles its plan: what is searched and read for has no result of the user's own."""
    own = {
        **experiment,
        "hypothesis": {**experiment["hypothesis"], "description": "Here 7 seeds beat 1 seed on wrist sensors."},
        "results": "TCGA to CCLE: best 37/71 (52.1%), ensembles of seeds 0.913 +- 0.02 against 0.871 for one network.",
        "verdict": "refuted",
        "reasoning": "We found here that ensembles of seeds were better calibrated in 9 of 10 splits.",
    }

    def garbled(body: Any) -> Any:
        form = (body.get("response_format") or {}).get("json_schema", {}).get("name")
        return envelope(body, content="no plan") if form in PLANS else agent(body)

    agent = ScriptedAgent()
    server.behaviour = garbled
    opened = session()
    record = await written(opened, own)
    state = await state_of(opened, record)
    defaults = [query["query"] for query in state["queries"] if query["origin"] == "default"]
    assert own["results"] in defaults and any("refuted" in query for query in defaults)
    listed = record["report"]["searches"]
    assert listed and not {query["query"] for query in listed} & set(defaults)
    assert {"need"} == {query["origin"] for query in listed} and all("proposed" in query for query in listed)
    searched = [query for need in state["needs"] for query in (need["text"], *need["queries"])]
    searched += [query["query"] for query in state["queries"] if query["origin"] == "need"]
    read = [body for body in agent.reading if body["response_format"]["json_schema"]["name"] == "PassageReading"]
    read_for = [str(body["messages"][-1]["content"]).partition("The passages")[0] for body in read]
    assert searched and read_for and "ensembles of seeds" in " ".join(searched)
    for text in (*searched, *(re.sub(r"\bN\d+\b", "", text) for text in read_for)):
        assert not re.search(r"\d|refuted|\bhere\b", text, re.IGNORECASE), text


async def test_calls_beyond_the_budget_are_answered_but_not_executed(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    topics = ["sensor position", "early stopping", "label noise", "wrist accelerometers", "ensembles of seeds"]
    server.behaviour = agent = ScriptedAgent([search(topic) for topic in topics])
    opened = session(max_search_iterations=2)
    state = await state_of(opened, await written(opened, experiment))
    assert state["searches_used"] == 2
    assert [query["query"] for query in state["queries"] if query["origin"] == "custom"] == topics[:2]
    assert every_call_is_answered(state["messages"])
    answers = [message.content for message in state["messages"] if isinstance(message, ToolMessage)]
    assert sum("budget" in answer for answer in answers) == 3
    assert len(agent.planning) == 1, "with the budget used up, it is not asked again"


async def test_a_planner_that_never_stops_is_stopped(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = ScriptedAgent([search("calibration")], endless=True)
    opened = session(max_search_iterations=2)
    state = await state_of(opened, await written(opened, experiment))
    assert len(agent.planning) <= 2 * 2 + 2
    assert state["searches_used"] <= 2
    assert every_call_is_answered(state["messages"])


async def test_endless_reading_is_limited_though_it_costs_no_search(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = ScriptedAgent(
        *[[("get_paper_introduction", {"key": "varga2021calibration"})] for _ in range(40)]
    )
    opened = session(max_search_iterations=3)
    state = await state_of(opened, await written(opened, experiment))
    assert len(agent.planning) == 2 * 3 + 2
    assert state["searches_used"] == 0


async def test_a_repeated_query_is_answered_from_the_earlier_one(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = ScriptedAgent(
        [search("temperature scaling for new wearers"), search("Temperature scaling of the new wearer")],
        [search("the temperature scaling for new wearers")],
        [search("temperature scaling for new wearers", papers=["varga2021calibration"])],
    )
    opened = session()
    state = await state_of(opened, await written(opened, experiment))
    assert state["searches_used"] == 2, "another scope is another search"
    assert len([query for query in state["queries"] if query["origin"] == "custom"]) == 2
    first, second, third, _ = agent.answers()
    for answer in (second, third):
        assert "repeats the query 'temperature scaling for new wearers'" in answer
        assert not any(line in answer for line in first.splitlines() if line.startswith("[E")), "it is shown once"
    assert every_call_is_answered(state["messages"])


async def test_mistakes_are_reported_to_the_model(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = ScriptedAgent(
        [("browse_web", {"url": "x"}), ("search_evidence", {"query": ""}), ("search_evidence", {"question": "why"})],
        [
            ("get_context_window", {"chunk_id": "nobody1999:00000"}),
            ("get_context_window", {"chunk_id": "../../etc/passwd"}),
            ("get_paper_introduction", {"key": "made_up"}),
            search("label noise", papers=["made_up"]),
            search("label noise", years=[1700, 1701]),
        ],
    )
    opened = session()
    state = await state_of(opened, await written(opened, experiment))
    answers = agent.answers()
    assert len(answers) == 8
    assert "browse_web" in answers[0] and "search_evidence" in answers[0]
    assert "query" in answers[1] and "question" in answers[2]
    for answer, named in zip(answers[3:6], ("nobody1999:00000", "etc/passwd", "made_up"), strict=True):
        assert named in answer and "no " in answer
    assert all(answer.startswith("Nothing new in the library bears on this query.") for answer in answers[6:])
    assert every_call_is_answered(state["messages"])


async def test_the_tools_return_what_the_library_contains(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    opened = session()
    chunk = opened.library.paper_chunks("varga2021calibration")[3]
    server.behaviour = agent = ScriptedAgent(
        [
            ("get_context_window", {"chunk_id": chunk.id, "window": 1}),
            ("get_paper_introduction", {"key": "tanaka2023position"}),
            ("search_summaries", {"query": opened.library.paper("tanaka2023position").title}),
            ("search_papers", {"query": "calibration", "min_year": 2020, "max_year": 2021}),
            ("search_papers", {"query": "calibration", "page": 9}),
        ]
    )
    state = await state_of(opened, await written(opened, experiment))
    window, introduction, summaries, papers, beyond = agent.answers()
    for near in opened.library.window(chunk.id, 1):
        assert near.text in window
    assert opened.library.introduction("tanaka2023position")[0].text in introduction
    assert summaries.index("tanaka2023position") < summaries.index("varga2021calibration")
    assert "varga2021calibration (2021)" in papers and "tanaka2023position" not in papers
    assert beyond.startswith("There is no page 9.\n\nN1 [") and beyond.endswith("Searches left: 2.")
    assert state["searches_used"] == 3, "reading around what was found is free"


async def test_no_checkpoint_contains_the_text_of_a_chunk(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    opened = session()
    chunks = [chunk for paper in opened.library.papers() for chunk in opened.library.paper_chunks(paper.key)]
    windows = [("get_context_window", {"chunk_id": chunk.id, "window": 3}) for chunk in chunks[::4]]
    server.behaviour = ScriptedAgent(windows, windows, [search("sensor position")])
    record = await written(opened, experiment)
    quotes = {item["quote"] for item in record["evidence"]}
    config: Any = {"configurable": {"thread_id": record["thread_id"]}}
    sizes: dict[str, int] = {}
    async with open_checkpoints(opened.home.checkpoints) as saver:
        async for checkpoint in saver.alist(config):
            values = checkpoint.checkpoint["channel_values"]
            text = str((values, checkpoint.pending_writes))
            assert [chunk.id for chunk in chunks if repr(chunk.text)[1:-1] in text and chunk.text not in quotes] == []
            sizes.setdefault(f"{values.get('agent_turns')} {'draft' in values}", len(str(values.get("messages"))))
    # Two turns showed the planner the library twice over, at the cost of the passages' ids.
    shown = sum(len(near.text) for chunk in chunks[::4] for near in opened.library.window(chunk.id, 3))
    assert shown > 20 * 1000
    assert sizes["3 False"] - sizes["1 False"] < shown / 3, sizes


async def test_ids_follow_the_order_of_the_calls_whatever_order_they_finish_in(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any], home: Path, tmp_path: Path
) -> None:
    calls = [search("early stopping"), search("wrist accelerometers"), search("reliability diagrams")]
    records = []
    for concurrency in (1, 20):
        server.behaviour = ScriptedAgent(calls)
        own = Path(shutil.copytree(home, tmp_path / f"home-{concurrency}"))
        opened = session(own, max_concurrency=concurrency)
        records.append(await written(opened, experiment))
        state = await state_of(opened, records[-1])
        assert [query["query"] for query in state["queries"]][-3:] == [call[1]["query"] for call in calls]
        seen: list[str] = []
        for query in state["queries"]:
            seen += [name for name in query["evidence_ids"] if name not in seen]
        assert seen == [f"E{number}" for number in range(1, len(seen) + 1)]
        first = {query["query"]: query for query in state["queries"]}
        for item in records[-1]["evidence"]:
            assert item["id"] in first[item["source_query"]]["evidence_ids"]
    assert records[0] == records[1]


class Together(FakeOpenAI):
    """Answers the first `number` readings only when they are all there."""

    def __init__(self, number: int) -> None:
        super().__init__()
        self._number = number
        self._came = 0
        self._all_there = asyncio.Event()
        self.open = self.most_open = 0

    async def _handle(self, request: Request, answer: Answer) -> Response:
        if b"PassageReading" not in await request.body():
            return await super()._handle(request, answer)
        self._came += 1
        self.open += 1
        self.most_open = max(self.most_open, self.open)
        if self._came == self._number:
            self._all_there.set()
        # The time is for a failing test only: read one after the other, they would wait for ever.
        await asyncio.wait_for(self._all_there.wait(), timeout=300)
        try:
            return await super()._handle(request, answer)
        finally:
            self.open -= 1


async def test_evidence_is_read_concurrently_up_to_the_limit(
    session: Opened, experiment: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = Session.limits.fget  # type: ignore[attr-defined]
    small = property(lambda made: replace(usual(made), call_tokens=400, waves=1, abstracts=0))
    monkeypatch.setattr(Session, "limits", small)
    with Together(2) as together:
        opened = session(chat_base_url=together.base_url, max_concurrency=2)
        await written(opened, experiment)
        await close_connections()
    assert together.most_open == 2


async def test_every_call_and_token_is_counted(session: Opened, server: FakeOpenAI, experiment: dict[str, Any]) -> None:
    needs = ("What label noise does.",)  # met at once, so that no reminder adds a turn
    server.behaviour = agent = ScriptedAgent([search("label noise")], [search("sensor position")], planned=needs)
    record = await written(session(), experiment)
    assert record["usage"]["llm_calls"] == server.calls()
    assert record["usage"]["journal_hits"] == 0
    assert record["usage"]["input_tokens"] == agent.input_tokens
    assert record["usage"]["output_tokens"] == agent.output_tokens
    assert len(agent.planning) == 3
    for body in agent.reading:
        assert body["response_format"]["type"] == "json_schema"
    prefix = agent.planning[0]["messages"]
    for later in agent.planning[1:]:
        assert later["messages"][: len(prefix)] == prefix, "a local server reuses what it has read"
        assert later["tools"] == agent.planning[0]["tools"]
        prefix = later["messages"]


@pytest.mark.parametrize("kind", SECTION_KINDS)
async def test_a_section_is_as_safe_with_every_prompt_reworded(
    kind: str, session: Opened, server: FakeOpenAI, experiment: dict[str, Any], tmp_path: Path
) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    for number, name in enumerate(PROMPT_NAMES):
        names = sorted(load_prompt(name).variables)
        body = f"Prompt {number}, otherwise.\n" + "\n".join(f"Here: {{{{{variable}}}}}" for variable in names)
        (folder / f"{name}.md").write_text(f"---\nvariables: {json.dumps(names)}\n---\n{body}\n", encoding="utf-8")
    record = await written(session(prompts_dir=folder), experiment, kind)
    assert record["citations"]
    said = [message["content"] for body in server.requests for message in body["messages"] if message["role"] != "tool"]
    shipped = [load_prompt(name).body.splitlines()[0] for name in PROMPT_NAMES]
    assert not [line for line in shipped if len(line) > 30 and any(line in str(text) for text in said)]


@pytest.mark.parametrize(
    ("kind", "field", "asked"),
    [("discussion", "summary", "summary"), ("results", "results", "results")],
)
async def test_a_section_without_its_own_fields_searches_with_substitute_fields(
    kind: str, field: str, asked: str, session: Opened, experiment: dict[str, Any]
) -> None:
    only = {"hypothesis": {}, field: experiment[field]}
    opened = session(max_search_iterations=0)
    record = await written(opened, only, kind)
    queries = (await state_of(opened, record))["queries"]
    (query,) = [query for query in queries if query["origin"] == "default"]
    assert query["query"].split()[:3] == experiment[asked].split()[:3]
    assert record["citations"]


async def test_two_equal_runs_in_one_process_are_paid_for_once(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    opened = session()
    request = SectionRequest("discussion", parse_experiment(experiment))
    one, other = await asyncio.gather(run_request(request, opened), run_request(request, opened))
    assert {one.finished_earlier, other.finished_earlier} == {False, True}
    assert one.record == other.record
    assert one.record["usage"]["llm_calls"] == server.calls()
