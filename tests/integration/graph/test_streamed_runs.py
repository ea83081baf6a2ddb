"""Runs as streams of events, over real sockets: drafts as they come, citations once, the checked text in the end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import aclosing
from typing import Any

import pytest

from citeloom import aresearch, astream_research, astream_section, awrite_section
from citeloom.errors import PausedError
from citeloom.graph.run_events import DoneEvent, Event
from tests.support.event_streams import Gate
from tests.support.judging_model import answer_fields
from tests.support.openai_server import FakeOpenAI, Fault, Json, Status
from tests.support.protocol_answers import completion, envelope, markers, readings
from tests.support.run_fixtures import Opened

QUESTION = "How do random seeds change what a benchmark reports?"
DRAFT = (
    "Seeds change the outcome of a benchmark more than many methods do{0}. The order in which examples are read matters"
    " as well, and ensembles make it matter less{1}."
)


def writes(text: str, *, repaired: str | None = None) -> Callable[[Json], Json | None]:
    """A writer that answers with `text`, `{0}` and `{1}` being the first markers that it is shown."""

    def answer(body: Json) -> Json | None:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        if "findings" in answer_fields(body):
            return envelope(body, content=json.dumps(readings("It says so.", 0.9)))
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        said = body["messages"][-1]["content"]
        wanted = repaired if repaired is not None and "text problems (data" in said else text
        cited = [f" {marker}" for marker in markers({"messages": body["messages"][-1:]})]
        return envelope(body, content=wanted.format(*cited))

    return answer


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=writes(DRAFT)) as running:
        yield running


@pytest.fixture
def usual() -> dict[str, Any]:
    return {"top_k_initial": 4, "score_threshold": 0.0, "answer_threshold": 0.0}


async def told(stream: AsyncIterator[Event]) -> list[Event]:
    return [event async for event in stream]


def tokens(events: list[Event]) -> list[str]:
    """The pieces of the draft since its last restart."""
    last = max((place for place, event in enumerate(events) if event["kind"] == "restarted"), default=-1)
    return [event["text"] for event in events[last + 1 :] if event["kind"] == "token"]


def the_end(events: list[Event]) -> DoneEvent:
    last = events[-1]
    assert last["kind"] == "done"
    assert [event["kind"] for event in events].count("done") == 1
    return last


async def test_a_section_streams_while_it_is_written(session: Opened, server: FakeOpenAI, experiment: Any) -> None:
    came = await told(astream_section(session(), "discussion", experiment))
    done = the_end(came)
    assert len(tokens(came)) > 2, "sentence by sentence"
    assert "".join(tokens(came)) == done["text"] == done["result"]["text"]
    assert not done["differs"]
    assert done["answered"]
    assert "[E" not in "".join(tokens(came))
    # A citation is of evidence found before, and is emitted once, before the text that shows it.
    cited = [event for event in came if event["kind"] == "citation"]
    found = {event["id"]: event for event in came if event["kind"] == "evidence"}
    assert [event["evidence_id"] for event in cited] == [
        citation["evidence_id"] for citation in done["result"]["citations"]
    ]
    assert all(found[event["evidence_id"]]["key"] == event["key"] for event in cited)
    papers = list(dict.fromkeys(event["key"] for event in cited))
    assert [event["number"] for event in cited] == [papers.index(event["key"]) + 1 for event in cited]
    first = next(place for place, event in enumerate(came) if event["kind"] == "citation")
    before = "".join(event["text"] for event in came[:first] if event["kind"] == "token")
    assert cited[0]["key"] not in before
    assert len(found) == len(done["result"]["evidence"])
    # Nothing of the references is streamed: they are in the end alone.
    assert done["result"]["references"][0]["text"] not in "".join(tokens(came))


async def test_an_answer_streams_while_it_is_written(session: Opened, server: FakeOpenAI) -> None:
    opened = session()
    came = await told(astream_research(opened, QUESTION))
    done = the_end(came)
    assert len(tokens(came)) > 2, "sentence by sentence"
    assert "".join(tokens(came)) == done["text"]
    assert not done["differs"]
    assert done["answered"]
    calls = server.calls()
    # A finished run emits its result at once, and costs nothing.
    again = await told(astream_research(opened, QUESTION))
    assert [event["kind"] for event in again] == ["done"]
    assert the_end(again)["differs"]
    assert the_end(again)["text"] == done["text"]
    assert server.calls() == calls


async def test_a_text_changed_by_the_checks_is_marked_as_changed(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writes(DRAFT + " Others agree (Jones et al., 2021) [E99].")
    came = await told(astream_research(session(max_repairs=0), QUESTION))
    done = the_end(came)
    draft = "".join(tokens(came))
    assert draft.endswith("Others agree (Jones et al., 2021) [citation needed].")
    assert done["differs"]
    assert "Jones" not in done["text"]
    assert done["text"].startswith(draft[:60])


async def test_a_repair_emits_no_tokens(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writes("Nobody knows [E99].", repaired=DRAFT)
    came = await told(astream_research(session(), QUESTION))
    done = the_end(came)
    assert "".join(tokens(came)) == "Nobody knows [citation needed]."
    assert done["differs"]
    assert done["text"].startswith("Seeds change the outcome")


async def test_a_declined_question_streams_nothing(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writes("NOT ANSWERED")
    came = await told(astream_research(session(), QUESTION))
    done = the_end(came)
    assert tokens(came) == []
    assert done["differs"]
    assert not done["answered"]
    assert done["result"]["citations"] == []


async def test_a_draft_whose_stream_breaks_off_restarts(session: Opened, server: FakeOpenAI) -> None:
    broken: list[Fault] = ["cut"]

    def behaviour(body: Json) -> Json | Fault | None:
        if not body.get("response_format") and not body.get("tools") and broken:
            return broken.pop()
        return writes(DRAFT)(body)

    server.behaviour = behaviour
    came = await told(astream_research(session(), QUESTION))
    kinds = [event["kind"] for event in came]
    assert kinds.count("restarted") == 1
    assert "token" in kinds[: kinds.index("restarted")]
    assert not the_end(came)["differs"]
    assert "".join(tokens(came)) == the_end(came)["text"]


async def test_without_a_chat_model_the_draft_arrives_at_once(session: Opened) -> None:
    came = await told(astream_research(session(chat_model="extractive"), QUESTION))
    assert len(tokens(came)) > 0
    assert the_end(came)["text"].startswith(tokens(came)[0][:20])


async def test_closing_a_stream_pauses_the_run_and_loses_only_the_call_in_flight(
    session: Opened, server: FakeOpenAI
) -> None:
    opened = session()
    server.behaviour = writes(f"{DRAFT} Nothing else is said of it in any of the papers that were read. This is all.")
    server.gate = Gate(after=32)
    async with aclosing(astream_research(opened, QUESTION)) as stream:
        async for event in stream:
            if event["kind"] == "token":
                break
    server.gate.open()
    calls = server.calls()
    writing = [body for body in server.requests if body.get("stream")]
    came = await told(astream_research(opened, QUESTION))
    assert the_end(came)["answered"]
    more = server.requests[calls:]
    assert more[0]["messages"] == writing[0]["messages"]  # the draft is asked for again, and nothing before it
    assert the_end(came)["result"]["usage"]["llm_calls"] == server.answered - 1


async def test_a_second_caller_waits_for_a_run_in_progress_and_gets_its_result(
    session: Opened, server: FakeOpenAI, experiment: Any
) -> None:
    opened = session()
    first, second = await asyncio.gather(
        told(astream_section(opened, "discussion", experiment)),
        told(astream_section(opened, "discussion", experiment)),
    )
    assert the_end(first)["text"] == the_end(second)["text"] == "".join([*tokens(first), *tokens(second)])
    assert len([body for body in server.requests if body.get("stream")]) == 1


async def test_reaching_a_budget_ends_the_stream_with_an_error(session: Opened, server: FakeOpenAI) -> None:
    with pytest.raises(PausedError, match="--max-calls"):
        await told(astream_research(session(max_calls=2), QUESTION))
    assert server.calls() == 2


async def test_a_stream_that_never_completes_emits_a_restart_and_an_error(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = lambda body: "cut" if body.get("stream") else writes(DRAFT)(body)
    came: list[Event] = []
    with pytest.raises(PausedError):
        async for event in astream_research(session(max_retries=0), QUESTION):
            came.append(event)
    assert came[-1]["kind"] == "restarted"


async def test_a_callback_receives_the_same_events_and_the_result(session: Opened, experiment: Any) -> None:
    came: list[Event] = []
    record = await awrite_section(session(), "discussion", experiment, on_event=came.append)
    assert "".join(tokens(came)) == record["text"]
    assert "done" not in {event["kind"] for event in came}
    answered: list[Event] = []
    answer = await aresearch(session(), QUESTION, on_event=answered.append)
    assert "".join(tokens(answered)) == answer["text"]


async def test_a_stream_waits_for_a_busy_server_before_its_first_token(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writes(DRAFT)
    server.failures = [Status(503, retry_after="0")]
    came = await told(astream_research(session(), QUESTION))
    assert "restarted" not in {event["kind"] for event in came}
    assert not the_end(came)["differs"]
