"""The fake server and the adversary behave as promised, or the tests that rely on them mean nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import jsonschema
import pytest

from tests.support.adversary import Adversary
from tests.support.openai_server import FakeOpenAI, Raw
from tests.support.protocol_answers import completion, request_hash

SERVER = Path(__file__).resolve().parents[2] / "support" / "openai_server.py"
SCHEMA: dict[str, Any] = {
    "title": "Thing",
    "type": "object",
    "$defs": {
        "Part": {
            "type": "object",
            "properties": {"n": {"type": "integer", "minimum": 3, "maximum": 4}},
            "required": ["n"],
        }
    },
    "properties": {
        "kind": {"enum": ["a", "b"]},
        "score": {"type": "number", "exclusiveMinimum": 0, "maximum": 0.5},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/Part"}, "minItems": 2, "maxItems": 3},
        "note": {"anyOf": [{"type": "string", "maxLength": 9}, {"type": "null"}]},
        "long": {"type": "string", "minLength": 80},
        "sure": {"type": "boolean"},
        "count": {"type": ["integer", "null"], "minimum": 1},
    },
    "required": ["kind", "score", "parts", "note", "long", "sure", "count"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "look", "parameters": SCHEMA}}]


def request(text: str, **rest: Any) -> dict[str, Any]:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **rest}


def structured(text: str) -> dict[str, Any]:
    return request(text, response_format={"type": "json_schema", "json_schema": {"name": "T", "schema": SCHEMA}})


@pytest.mark.parametrize("number", range(20))
def test_structured_answers_and_arguments_are_valid(number: int) -> None:
    answer = completion(structured(f"question {number}"), 0)["choices"][0]["message"]
    jsonschema.validate(json.loads(answer["content"]), SCHEMA)
    call = completion(request(f"question {number}", tools=TOOLS), 1)["choices"][0]["message"]["tool_calls"][0]
    jsonschema.validate(json.loads(call["function"]["arguments"]), SCHEMA)


def test_equal_requests_get_equal_answers_and_markers_are_cited() -> None:
    asked = request("Write about quiet ponds. [E2] ducks [E1] geese")
    text = completion(asked, 0)["choices"][0]["message"]["content"]
    assert completion(asked, 0)["choices"][0]["message"]["content"] == text
    assert completion(request("Write about loud ponds."), 0)["choices"][0]["message"]["content"] != text
    assert text.index("[E2]") < text.index("[E1]")


def test_ids_of_calls_do_not_change_an_answer() -> None:
    def asked(identifier: str) -> dict[str, Any]:
        call = {"id": identifier, "type": "function", "function": {"name": "look", "arguments": "{}"}}
        turns = [
            {"role": "user", "content": "look"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": identifier, "content": "seen"},
        ]
        return {"model": "m", "messages": turns, "tools": TOOLS}

    assert request_hash(asked("a")) == request_hash(asked("b"))
    assert not completion(asked("a"), 1)["choices"][0]["message"].get("tool_calls")


def test_a_separate_fake_server_logs_its_requests(tmp_path: Path) -> None:
    log = tmp_path / "requests.jsonl"
    command = [sys.executable, str(SERVER), "--log", str(log), "--api-key", "k", "--model", "m"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    try:
        url = process.stdout.readline().strip()
        with httpx.Client(headers={"Authorization": "Bearer k"}) as client:
            good = client.post(f"{url}/chat/completions", json=request("hello"))
            unknown = client.post(f"{url}/chat/completions", json={**request("hello"), "model": "n"})
            embedded = client.post(f"{url}/embeddings", json={"model": "m", "input": ["a", "b"]})
            models = client.get(f"{url}/models")
        refused = httpx.post(f"{url}/chat/completions", json=request("hello"))
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
    assert [good.status_code, unknown.status_code, embedded.status_code, refused.status_code] == [200, 404, 200, 401]
    assert len(embedded.json()["data"]) == 2
    assert models.json()["data"][0]["id"] == "m"
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert [(event["event"], event["number"]) for event in events] == [
        ("asked", 0),
        ("answered", 0),
        ("asked", 1),
        ("asked", 2),
        ("answered", 2),
        ("asked", 3),
    ]


def test_the_adversary_acts_the_same_for_the_same_seed() -> None:
    asked = [request(f"Write {n} [E1]") for n in range(40)]
    asked += [structured(f"Read {n}") for n in range(40)]
    asked += [request(f"Search {n}", tools=TOOLS) for n in range(40)]

    def answers(seed: int) -> list[Any]:
        return [Adversary(seed, how_often=1)(body) for body in asked]

    assert answers(1) == answers(1) != answers(2)
    assert Adversary(3, how_often=0)(asked[0]) is None
    shown = json.dumps([answer.body if isinstance(answer, Raw) else answer for answer in answers(1)])
    for word in ("made_up", "[E999]", "Smith et al., 2021", "cite{made2024up}", "length", "null"):
        assert word in shown


def test_a_given_behaviour_overrides_the_protocol() -> None:
    with FakeOpenAI(behaviour=lambda body: {"mine": body["model"]}) as server:
        assert httpx.post(f"{server.base_url}/chat/completions", json=request("x")).json() == {"mine": "m"}
    assert server.calls() == 1
