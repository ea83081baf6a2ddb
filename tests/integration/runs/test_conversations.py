"""Conversations on a chat model at a real socket: what each turn sees, what stays the same, and what is dropped."""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any

import pytest

from citeloom.errors import CiteloomError, PausedError
from citeloom.graph.conversation_graph import RECALLED, NothingToImproveError
from citeloom.graph.session import Session
from citeloom.roles.chat.prompt_format import estimate_tokens
from citeloom.runs.execution import TurnRequest, delete_conversation, delete_expired, paused_turn, take_turn
from citeloom.stores.run_register import ConversationRegister, UnknownConversationError
from tests.support.home_tables import run_tables
from tests.support.librarian import EARLIER, FRESH, MARKER, Librarian
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import envelope
from tests.support.run_fixtures import Opened

THREAD = "chat-of-a-test"
QUESTIONS = (
    "How does temperature scaling change the calibration for new wearers?",
    "What about its limits?",
    "How do the seeds of an ensemble matter?",
    "and for small data?",
    "Where is the sensor worn?",
    "Why does position matter?",
    "How many members has an ensemble?",
    "and how are they combined?",
    "Which scores are reported for wearers?",
    "Are those comparable?",
    "What is left open on calibration?",
    "What should one do next?",
)


@pytest.fixture
def usual() -> dict[str, Any]:
    return {"chat_api_key": "k", "max_repairs": 0}


async def ask(opened: Session, asked: str, kind: Any = "follow-up") -> dict[str, Any]:
    return (await take_turn(THREAD, TurnRequest(asked, kind), opened)).record


@pytest.mark.long
async def test_twelve_turns_keep_numbers_and_evidence_ids(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writer = Librarian()
    opened = session()
    records = [await ask(opened, question) for question in QUESTIONS]
    _numbers_never_change(records)
    _ids_keep_their_chunk(records)
    cited: list[list[str]] = []
    for number, (record, prompt) in enumerate(zip(records, writer.prompts, strict=True)):
        head, _, fresh = prompt.partition(FRESH)
        earlier = list(dict.fromkeys(MARKER.findall(head.partition(EARLIER)[2])))
        found = set(MARKER.findall(fresh))
        latest_first = list(dict.fromkeys(item for turn in reversed(cited) for item in turn))[:RECALLED]
        assert earlier == [item for item in latest_first if item not in found], f"turn {number + 1}"
        cited.append(list(dict.fromkeys(citation["evidence_id"] for citation in record["citations"])))
    assert len({item for turn in cited for item in turn}) > RECALLED // 3
    for before, after in zip(writer.prompts, writer.prompts[1:], strict=False):
        shown = before.partition(EARLIER)[0].replace("(this is the first question)", "").rstrip()
        assert after.startswith(shown)
    systems = {body["messages"][0]["content"] for body in server.requests if _is_writing(body)}
    assert len(systems) == 1


def _is_writing(body: Json) -> bool:
    return not body.get("response_format") and not body.get("tools")


def _numbers_never_change(records: list[dict[str, Any]]) -> None:
    """A paper has one number in all texts and references, given in the order of first appearance."""
    numbers: dict[str, int] = {}
    for record in records:
        labels = {entry["key"]: int(entry["label"]) for entry in record["references"]}
        assert list(labels.values()) == sorted(labels.values())
        for key, number in labels.items():
            assert numbers.setdefault(key, number) == number
        assert {
            int(number) for group in re.findall(r"\[([\d, ]+)\]", record["text"]) for number in group.split(",")
        } == set(labels.values())
    assert sorted(numbers.values()) == list(range(1, len(numbers) + 1))
    firsts = list(dict.fromkeys(citation["key"] for record in records for citation in record["citations"]))
    assert [numbers[key] for key in firsts] == sorted(numbers.values())


def _ids_keep_their_chunk(records: list[dict[str, Any]]) -> None:
    chunks: dict[str, tuple[str, int]] = {}
    for record in records:
        for item in record["evidence"]:
            place = (item["chunk_id"], item["start"])
            assert chunks.setdefault(item["id"], place) == place
    assert len(set(chunks.values())) == len(chunks)


async def test_the_prompt_stays_within_its_budget_and_drops_the_oldest_turns_first(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = writer = Librarian(filler=20)
    opened = session(conversation_tokens=900)
    for question in QUESTIONS:
        await ask(opened, question, "question")
    changed = 0
    for number, prompt in enumerate(writer.prompts):
        turns = prompt.partition(EARLIER)[0]
        assert estimate_tokens(turns) <= 900 + 20, "the lead of the prompt takes a few more"
        shown = re.findall(r"^Question: (.+)$", turns, re.MULTILINE)
        assert shown == list(QUESTIONS[number - len(shown) : number]), "the latest, in order"
        assert shown or number == 0
        changed += number > 0 and not prompt.startswith(writer.prompts[number - 1].partition(EARLIER)[0][:200])
    assert len(shown) < len(QUESTIONS) - 1
    assert changed <= len(QUESTIONS) // 2, "dropping some at once lets the next prompts begin alike"


async def test_only_possible_follow_ups_are_rewritten(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writer = Librarian()
    opened = session()
    first = await ask(opened, "How does scaling help?")
    alone = await ask(opened, "Where is the sensor worn?", "question")
    assert (first["question"], alone["question"], writer.rewriting) == (
        "How does scaling help?",
        "Where is the sensor worn?",
        [],
    )
    third = await ask(opened, "and why there?")
    assert third["question"] == "and why there (of calibration)?"
    assert third["asked"] == "and why there?"
    (asked,) = writer.rewriting
    assert "Question: How does scaling help?\nQuestion: Where is the sensor worn?" in asked
    assert "and why there (of calibration)?" in writer.prompts[-1].rpartition("The question")[2]


async def test_if_the_model_does_not_rewrite_a_question_rules_do(session: Opened, server: FakeOpenAI) -> None:
    writer = Librarian()

    def useless(body: Json) -> Any:
        form = (body.get("response_format") or {}).get("json_schema", {}).get("name", "")
        return envelope(body, content="I cannot do that.") if form == "Rewritten" else writer(body)

    server.behaviour = useless
    opened = session()
    await ask(opened, "How is an ensemble trained?")
    assert (await ask(opened, "What about its seeds?"))["question"] == "What about an ensemble's seeds?"


async def test_improving_keeps_the_question_and_its_evidence(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writer = Librarian()
    opened = session()
    with pytest.raises(NothingToImproveError):
        await ask(opened, "more on seeds", "improve")
    first = await ask(opened, QUESTIONS[0])
    better = await ask(opened, "say more about seeds of ensembles", "improve")
    assert better["question"] == first["question"]
    prompt = writer.prompts[-1]
    assert "say more about seeds of ensembles" in prompt
    assert any("seeds ensembles" in str(query) for query in _searches(opened))
    assert "Question: " + QUESTIONS[0] in prompt.partition(EARLIER)[0]
    fresh = set(MARKER.findall(prompt.partition(FRESH)[2]))
    assert {citation["evidence_id"] for citation in first["citations"]} <= fresh
    register = ConversationRegister(run_tables(opened.home.runs_file))
    assert [turn.asked for turn in register.turns(THREAD)] == [QUESTIONS[0], "say more about seeds of ensembles"]


def _searches(opened: Session) -> list[str]:
    """What the last turn searched for."""
    last = ConversationRegister(run_tables(opened.home.runs_file)).last_turn(THREAD)
    assert last is not None
    return [search["query"] for search in last.record["report"]["searches"]]


async def test_an_interrupted_question_is_resumed_or_abandoned(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = writer = Librarian()
    opened = session(max_calls=200)
    await ask(opened, QUESTIONS[0])
    spent = (await opened.usage(THREAD))["llm_calls"]
    limited = session(max_calls=spent + 3)
    with pytest.raises(PausedError):
        await take_turn(THREAD, TurnRequest("How do seeds matter?"), limited)
    stopped = await paused_turn(THREAD, opened.home)
    assert stopped is not None and stopped.asked == "How do seeds matter?"
    asked_before = server.calls()
    told: list[str] = []
    going_on = await take_turn(THREAD, TurnRequest("How do seeds matter?"), opened, on_notice=told.append)
    assert going_on.number == 2 and "Resuming this question" in told[0]
    messages = [json.dumps(body["messages"]) for body in server.requests]
    assert len(set(messages[asked_before:]) & set(messages[:asked_before])) == 0
    with pytest.raises(PausedError):
        await take_turn(THREAD, TurnRequest("How many wearers were there?"), limited)
    other = await take_turn(THREAD, TurnRequest("Where is the sensor worn?", "question"), opened)
    assert (other.number, other.record["question"]) == (3, "Where is the sensor worn?")
    assert await paused_turn(THREAD, opened.home) is None
    assert "wearers were there" not in writer.prompts[-1].partition(EARLIER)[0]


async def test_checkpoints_hold_only_the_latest_state(session: Opened, server: FakeOpenAI) -> None:
    import sqlite3

    server.behaviour = Librarian()
    opened = session()
    for question in QUESTIONS[:3]:
        await ask(opened, question)
    with sqlite3.connect(opened.home.checkpoints) as connection:
        kept = connection.execute("SELECT checkpoint_ns FROM checkpoints WHERE thread_id = ?", (THREAD,)).fetchall()
    connection.close()
    assert kept == [("",)]


async def test_conversations_expire_and_are_deleted_completely(session: Opened, server: FakeOpenAI, home: Path) -> None:
    server.behaviour = Librarian()
    opened = session()
    await ask(opened, QUESTIONS[0])
    await take_turn("chat-another", TurnRequest(QUESTIONS[2]), opened)
    register = ConversationRegister(run_tables(opened.home.runs_file))
    assert (await delete_conversation(opened.home, "chat-of")).title == QUESTIONS[0]
    with pytest.raises(UnknownConversationError):
        register.get(THREAD)
    assert [entry.thread_id for entry in register.all()] == ["chat-another"]
    assert await delete_expired(opened.home, 1) == []
    with register._tables.transaction() as connection:
        connection.execute("UPDATE conversations SET updated_at = ?", (time.time() - 3 * 86_400,))
    assert await delete_expired(opened.home, 1, but="chat-another") == []
    assert [entry.thread_id for entry in await delete_expired(opened.home, 2)] == ["chat-another"]
    assert register.all() == []
    again = await ask(opened, QUESTIONS[0])
    assert again["usage"]["llm_calls"] == 0 and again["usage"]["journal_hits"] > 0, "the journal keeps the answers"


async def test_a_conversation_that_cannot_be_asked_says_so_and_stores_nothing(session: Opened) -> None:
    opened = session()
    for asked in ("", "  ", "?!", "a\x07b", "word " * 500):
        with pytest.raises(CiteloomError):
            await ask(opened, asked)
    assert ConversationRegister(run_tables(opened.home.runs_file)).all() == []
