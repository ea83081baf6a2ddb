"""Conversations over HTTP: asked, left, rejoined, stopped, exported and deleted."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from citeloom.stores.server_jobs import JobOrder
from tests.support.event_streams import Gate
from tests.support.left_jobs import leave_job
from tests.support.librarian import Librarian
from tests.support.openai_server import FakeOpenAI
from tests.support.served_app import IN_BACKGROUND, SSE, Served, events_of, served_app

QUESTION = "How does temperature scaling change the calibration for new wearers?"


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=Librarian()) as running:
        yield running


@pytest.fixture
def settings(model: FakeOpenAI) -> dict[str, Any]:
    return {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k", "max_repairs": 0}


@pytest.fixture
def served(home: Path, settings: dict[str, Any]) -> Iterator[Served]:
    with served_app(home, settings) as server:
        yield server


def held(model: FakeOpenAI) -> Gate:
    """Hold the model's streams after its first sentence."""
    model.gate = Gate(after=30)
    return model.gate


def test_a_turn_is_answered_completely_and_stored(served: Served) -> None:
    thread_id = served.conversation()
    answer = served.post(f"/conversations/{thread_id}/turns", {"question": QUESTION})
    assert answer.status_code == 200 and answer.headers["content-location"] == f"/api/v1/conversations/{thread_id}"
    assert answer.json()["number"] == 1 and answer.json()["citations"]
    shown = served.api.get(f"/conversations/{thread_id}").json()
    assert [turn["asked"] for turn in shown["turns"]] == [QUESTION]
    assert (shown["title"], shown["active"], shown["paused"]) == (QUESTION, None, None)
    (listed,) = served.api.get("/conversations").json()["conversations"]
    assert (listed["thread_id"], listed["turns"]) == (thread_id, 1)


def test_a_conversation_is_exported_and_deleted(served: Served) -> None:
    thread_id = served.conversation()
    path = f"/conversations/{thread_id}"
    assert served.api.get(f"{path}/export").status_code == 422, "nothing was answered yet"
    served.post(f"{path}/turns", {"question": QUESTION})
    markdown = served.api.get(f"{path}/export")
    assert markdown.text.startswith(f"# {QUESTION}") and markdown.headers["content-type"].startswith("text/markdown")
    assert markdown.headers["content-disposition"] == f"attachment; filename*=UTF-8''{thread_id}.md"
    assert served.api.get(f"{path}/export", params={"format": "json"}).json()["turns"][0]["asked"] == QUESTION
    assert served.api.delete(f"/conversations/{thread_id[:8]}").status_code == 404, "only its whole id deletes it"
    assert served.api.delete(path).status_code == 204
    assert served.api.get(path).status_code == 404
    assert served.api.get(f"{path}/events").status_code == 404


def test_a_conversation_is_renamed_searched_archived_and_restored_by_its_next_question(served: Served) -> None:
    path, other = f"/conversations/{served.conversation()}", f"/conversations/{served.conversation()}"
    served.post(f"{path}/turns", {"question": QUESTION})
    served.post(f"{other}/turns", {"question": "How many seeds were used?"})

    def titles(**asked: Any) -> list[str]:
        listed = served.api.get("/conversations", params=asked).json()
        assert listed["total"] == len(listed["conversations"])
        return [entry["title"] for entry in listed["conversations"]]

    named = served.api.patch(path, json={"name": "  Wärme   and\twearers "})
    assert (named.status_code, named.json()["title"]) == (200, "Wärme and wearers")
    assert titles(q="WÄRME calibration") == titles(q="temperature scaling") == ["Wärme and wearers"], "name, question"
    assert titles(q="authors see it") == titles(), "words of both answers"
    assert titles(q="evidence_id") == [], "not those of how it is stored"
    assert served.api.patch(path, json={"archived": True}).json()["archived"]
    assert titles() == ["How many seeds were used?"] and titles(archived=True) == ["Wärme and wearers"]
    served.post(f"{path}/turns", {"question": "And for children?"})
    assert titles() == ["Wärme and wearers", "How many seeds were used?"]
    assert served.api.patch(path, json={"name": ""}).json()["title"] == QUESTION
    assert served.api.patch(path, json={"name": "x" * 201}).status_code == 422
    assert served.api.patch("/conversations/chat-nobody", json={"name": "x"}).status_code == 404


def test_a_question_selects_a_model_of_its_endpoint_and_a_citation_style(served: Served, model: FakeOpenAI) -> None:
    model.model, model.others = "fake", ["larger", "text-embedding-3"]
    path = f"/conversations/{served.conversation()}/turns"
    assert served.api.get("/models").json() == {"models": ["fake", "larger", "extractive"]}
    chosen = {"chat_model": "larger", "cite_style": "pandoc", "depth": "brief"}
    answer = served.post(path, {"question": QUESTION, **chosen})
    assert answer.json()["cite_style"] == "pandoc" and "[@" in answer.json()["text"]
    assert {body["model"] for body in model.requests} == {"larger"}
    served.post(path, {"question": "And for children?"})
    assert model.requests[-1]["model"] == "fake", "for one question alone"
    asked = len(model.requests)
    without = served.post(path, {"question": "How many seeds were used?", "chat_model": "extractive"}).json()
    assert without["outcome"] == "passages" and len(model.requests) == asked
    refused = served.post(path, {"question": QUESTION, "chat_model": "gpt-elsewhere"})
    assert refused.status_code == 422 and "larger" in refused.json()["help"]
    assert served.post(path, {"question": QUESTION, "cite_style": "footnotes"}).status_code == 422
    assert served.post(path, {"question": QUESTION, "chat_base_url": "http://elsewhere"}).status_code == 422


def test_feedback_improves_the_last_answer_and_requires_one(served: Served) -> None:
    path = f"/conversations/{served.conversation()}"
    refused = served.post(f"{path}/improve", {"feedback": "shorter"})
    assert (refused.status_code, refused.json()["type"]) == (422, "urn:citeloom:NothingToImproveError")
    served.post(f"{path}/turns", {"question": QUESTION})
    improved = served.post(f"{path}/improve", {"feedback": "name the wearers"})
    assert improved.status_code == 200 and improved.json()["number"] == 2


def test_a_client_that_reconnects_misses_and_pays_nothing(served: Served, model: FakeOpenAI) -> None:
    gate = held(model)
    path = f"/conversations/{served.conversation()}"
    with served.api.stream("POST", f"{path}/turns", json={"question": QUESTION}, headers=SSE) as answer:
        seen = []
        for event in events_of(answer.iter_lines()):
            seen.append(event)
            if event.name == "token":
                break
    gate.open()
    rest = served.events(f"{path}/events", seen[-1].id)
    ids = [event.id for event in [*seen, *rest]]
    assert ids == [f"{ids[0].split('.')[0]}.{place}" for place in range(len(ids))]
    assert rest[-1].name == "done" and rest[-1].data["result"]["citations"]
    calls = model.calls()
    assert served.events(f"{path}/events") == [*seen, *rest]
    caught_up = served.api.get(f"{path}/events", headers={"Last-Event-ID": rest[-1].id})
    assert caught_up.status_code == 204, "an EventSource stops reconnecting"
    assert [event.name for event in served.events(f"{path}/events", "other.3")][:1] == ["reset"]
    assert model.calls() == calls


def test_the_streamed_text_stops_before_its_references(served: Served) -> None:
    path = f"/conversations/{served.conversation()}"
    with served.api.stream("POST", f"{path}/turns", json={"question": QUESTION}, headers=SSE) as answer:
        events = list(events_of(answer.iter_lines()))
    names = [event.name for event in events]
    assert names[-1] == "done" and "token" in names
    assert "References" not in events[-1].data["text"] and events[-1].data["result"]["references"]


def test_a_dropped_request_does_not_end_the_turn(served: Served, model: FakeOpenAI) -> None:
    gate = held(model)
    thread_id = served.conversation()
    body = json.dumps({"question": QUESTION})
    with socket.create_connection(("127.0.0.1", served.port)) as impatient:
        head = f"POST /api/v1/conversations/{thread_id}/turns HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\n"
        head += f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        impatient.sendall((head + body).encode())
        assert gate.reached.wait(300)
    assert served.api.get(f"/conversations/{thread_id}").json()["active"]["state"] == "working"
    gate.open()
    assert served.events(f"/conversations/{thread_id}/events")[-1].name == "done"
    assert len(served.api.get(f"/conversations/{thread_id}").json()["turns"]) == 1


def test_one_conversation_answers_one_question_at_a_time(served: Served, model: FakeOpenAI) -> None:
    gate = held(model)
    path = f"/conversations/{served.conversation()}"
    first = served.post(f"{path}/turns", {"question": QUESTION}, **IN_BACKGROUND)
    assert first.status_code == 202 and gate.reached.wait(300)
    other = served.post(f"{path}/turns", {"question": "Where is the sensor worn?"}, **IN_BACKGROUND)
    assert other.status_code == 409 and "still answering" in other.json()["detail"]
    same = served.post(f"{path}/turns", {"question": QUESTION}, **IN_BACKGROUND)
    assert same.status_code == 202
    assert served.api.delete(path).status_code == 409
    gate.open()
    assert served.events(f"{path}/events")[-1].name == "done"
    assert len(served.api.get(path).json()["turns"]) == 1


def test_of_two_simultaneous_questions_one_is_refused(served: Served) -> None:
    path = f"/conversations/{served.conversation()}/turns"
    questions = [QUESTION, "Where is the sensor worn?"]
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda asked: served.post(path, {"question": asked}), questions))
    answered = [(asked, answer.json()) for asked, answer in zip(questions, answers, strict=True) if answer.is_success]
    assert sorted({answer.status_code for answer in answers} - {200}) in ([], [409])
    assert answered and all(record["asked"] == asked for asked, record in answered)


def test_a_turn_is_stopped_and_resumed(served: Served, model: FakeOpenAI) -> None:
    gate = held(model)
    path = f"/conversations/{served.conversation()}"
    served.post(f"{path}/turns", {"question": QUESTION}, **IN_BACKGROUND)
    assert gate.reached.wait(300)
    assert served.api.post(f"{path}/cancel").json()["stopped"] is True
    assert served.api.post(f"{path}/cancel").json()["stopped"] is False
    assert served.events(f"{path}/events")[-1].name == "stopped"
    assert served.api.get(path).json()["paused"] == {"asked": QUESTION, "kind": "follow-up"}
    gate.open()
    assert served.post(f"{path}/turns", {"question": QUESTION}).status_code == 200
    requests = [json.dumps(body, sort_keys=True) for body in model.requests]
    assert len(requests) - len(set(requests)) == 1, "only the interrupted call is paid again"


def test_a_turn_waiting_in_the_queue_can_be_stopped(home: Path, model: FakeOpenAI) -> None:
    gate = held(model)
    settings: dict[str, Any] = {"chat_model": "fake", "chat_base_url": model.base_url, "chat_api_key": "k"}
    with served_app(home, settings, max_active=1, max_waiting=1) as served:
        first, second, third = (f"/conversations/{served.conversation()}" for _ in range(3))
        served.post(f"{first}/turns", {"question": QUESTION}, **IN_BACKGROUND)
        assert gate.reached.wait(300)
        waiting = served.post(f"{second}/turns", {"question": QUESTION}, **IN_BACKGROUND)
        assert waiting.json()["state"] == "waiting"
        busy = served.post(f"{third}/turns", {"question": QUESTION}, **IN_BACKGROUND)
        assert busy.status_code == 429 and busy.headers["retry-after"]
        assert served.api.post(f"{second}/cancel").json()["stopped"] is True
        assert [event.name for event in served.events(f"{second}/events")] == ["stage", "stopped"]
        gate.open()
        assert served.events(f"{first}/events")[-1].name == "done"


def test_an_idempotency_key_joins_the_turn_of_the_first_request(served: Served, model: FakeOpenAI) -> None:
    path = f"/conversations/{served.conversation()}/turns"
    first = served.post(path, {"question": QUESTION}, Idempotency_Key="k-1")
    calls = model.calls()
    again = served.post(path, {"question": QUESTION}, Idempotency_Key="k-1")
    assert again.json() == first.json() and model.calls() == calls
    other = served.post(path, {"question": "Where is the sensor worn?"}, Idempotency_Key="k-1")
    assert other.status_code == 422 and "another request" in other.json()["detail"]
    second = served.post(path, {"question": QUESTION}, Idempotency_Key="k-2")
    assert second.json()["number"] == 2
    assert served.post(path, {"question": QUESTION}, Idempotency_Key="k-1").json()["number"] == 1


def test_the_key_of_a_refused_request_can_be_used_again(served: Served) -> None:
    path = f"/conversations/{served.conversation()}/turns"
    assert served.post(path, {"question": "   "}, Idempotency_Key="k").status_code == 422
    assert served.post(path, {"question": QUESTION}, Idempotency_Key="k").status_code == 200


def test_a_turn_answered_before_its_server_was_killed_is_not_asked_again(
    home: Path, settings: dict[str, Any], model: FakeOpenAI
) -> None:
    with served_app(home, settings) as earlier:
        thread_id = earlier.conversation()
        assert earlier.post(f"/conversations/{thread_id}/turns", {"question": QUESTION}).json()["number"] == 1
    request = {"asked": QUESTION, "kind": "follow-up", "limits": {}, "number": 1}
    leave_job(home, JobOrder(thread_id, "turn", request))
    calls = model.calls()
    with served_app(home, settings) as later:
        assert later.events(f"/conversations/{thread_id}/events")[-1].data["result"]["number"] == 1
        assert len(later.api.get(f"/conversations/{thread_id}").json()["turns"]) == 1
    assert model.calls() == calls
