"""The journal key depends only on the question; an answer is restored unchanged."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from pydantic import SecretStr

from citeloom.models.http.endpoints import ModelIdentity, canonical_json
from citeloom.models.journal.serialization import from_payload, request_key, to_payload
from citeloom.settings.key_trust import endpoint_name

IDENTITY = ModelIdentity("http://host/v1", "m", {"temperature": 0.2})
TOOL = {"type": "function", "function": {"name": "search", "parameters": {"type": "object"}}}
SCHEMA = {"title": "A", "type": "object", "properties": {"x": {"type": "string"}}}


def conversation(
    ids: tuple[str, str] = ("a", "b"),
    *,
    query: str = "ducks",
    swapped: bool = False,
    metadata: dict[str, Any] | None = None,
    usage: int = 1,
) -> list[BaseMessage]:
    calls = [
        {"name": "search", "args": {"query": query, "years": [1, 2]}, "id": ids[0]},
        {"name": "search", "args": {"query": "geese"}, "id": ids[1]},
    ]
    answers = [ToolMessage("one", tool_call_id=ids[0]), ToolMessage("two", tool_call_id=ids[1])]
    if swapped:
        answers = [ToolMessage("one", tool_call_id=ids[1]), ToolMessage("two", tool_call_id=ids[0])]
    said = AIMessage(
        "",
        tool_calls=calls,
        id=f"run-{ids[0]}",
        response_metadata=metadata or {},
        usage_metadata={"input_tokens": usage, "output_tokens": 1, "total_tokens": usage + 1},
    )
    return [SystemMessage("be brief"), HumanMessage("find ducks"), said, *answers]


def key(messages: list[BaseMessage], identity: ModelIdentity = IDENTITY, **rest: Any) -> str:
    return request_key(identity, messages, **rest)


@pytest.mark.parametrize(
    "same",
    [
        pytest.param(conversation(("x9", "y7")), id="other tool call ids"),
        pytest.param(conversation(metadata={"system_fingerprint": "fp"}), id="other response metadata"),
        pytest.param(conversation(usage=99), id="other usage"),
    ],
)
def test_settings_that_keep_the_question_keep_the_key(same: list[BaseMessage]) -> None:
    assert key(same) == key(conversation())


def test_the_order_of_arguments_does_not_change_the_key() -> None:
    one = AIMessage("", tool_calls=[{"name": "s", "args": {"a": 1, "b": 2}, "id": "1"}])
    two = AIMessage("", tool_calls=[{"name": "s", "args": {"b": 2, "a": 1}, "id": "1"}])
    assert key([one]) == key([two])


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(key(conversation(query="swans")), id="arguments of a call"),
        pytest.param(key(conversation(swapped=True)), id="which call an answer belongs to"),
        pytest.param(key(conversation()[:-1]), id="one message less"),
        pytest.param(key([HumanMessage("be brief"), *conversation()[1:]]), id="role"),
        pytest.param(key(conversation(), replace(IDENTITY, model="n")), id="model"),
        pytest.param(key(conversation(), replace(IDENTITY, endpoint="http://other/v1")), id="endpoint"),
        pytest.param(key(conversation(), replace(IDENTITY, parameters={"temperature": 0})), id="parameter"),
        pytest.param(key(conversation(), tools=[TOOL]), id="tools"),
        pytest.param(key(conversation(), schema=SCHEMA), id="schema"),
        pytest.param(key(conversation(), max_tokens=7), id="output limit"),
    ],
)
def test_a_change_of_the_question_changes_the_key(other: str) -> None:
    assert other != key(conversation())


def test_content_blocks_count_without_their_ids() -> None:
    def blocks(identifier: str, text: str) -> str:
        return key([AIMessage([{"type": "text", "text": text, "id": identifier}])])

    assert blocks("1", "a") == blocks("2", "a") != blocks("1", "b")


def test_the_api_key_of_an_endpoint_is_not_part_of_the_journal_key() -> None:
    assert key(conversation(), replace(IDENTITY, secret=SecretStr("sk-1"))) == key(conversation())


ANSWERS = [
    AIMessage("plain text"),
    AIMessage([{"type": "text", "text": "in a block"}]),
    AIMessage("cut", response_metadata={"finish_reason": "length"}),
    AIMessage("", additional_kwargs={"refusal": "I will not."}),
    AIMessage(
        "both",
        tool_calls=[{"name": "s", "args": {"q": "é\u2028"}, "id": None}],
        invalid_tool_calls=[{"name": "s", "args": '{"q":', "id": "", "error": "no JSON"}],
        usage_metadata={"input_tokens": 3, "output_tokens": 2, "total_tokens": 5},
    ),
]


@pytest.mark.parametrize("answer", ANSWERS, ids=lambda answer: str(answer.content)[:12])
def test_an_answer_is_restored_from_its_payload(answer: AIMessage) -> None:
    back = from_payload(to_payload(answer, "f" * 64))
    assert back.content == answer.content
    assert back.usage_metadata == answer.usage_metadata
    assert back.response_metadata == answer.response_metadata
    assert back.additional_kwargs == answer.additional_kwargs
    assert [(call["name"], call["args"]) for call in back.tool_calls] == [
        (call["name"], call["args"]) for call in answer.tool_calls
    ]
    assert [call["args"] for call in back.invalid_tool_calls] == [call["args"] for call in answer.invalid_tool_calls]
    assert from_payload(to_payload(back, "f" * 64)) == back


def test_every_tool_call_in_an_answer_gets_its_own_id() -> None:
    calls = [{"name": "s", "args": {}, "id": "call_0"} for _ in range(3)]
    back = from_payload(to_payload(AIMessage("", tool_calls=calls), "0123456789"))
    assert [call["id"] for call in back.tool_calls] == ["012345600", "012345601", "012345602"]


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("http://user:password@Host:8080/v1/?key=secret", "http://host:8080/v1"),
        ("https://api.openai.com/v1", "https://api.openai.com/v1"),
        ("http://localhost:11434/v1/", "http://localhost:11434/v1"),
    ],
)
def test_the_name_of_an_endpoint_contains_no_secret(url: str, name: str) -> None:
    assert endpoint_name(url) == name


def test_a_value_without_a_json_form_is_named_by_its_type() -> None:
    assert canonical_json({"b": SecretStr("hidden"), "a": object()}) == '{"a":"<object>","b":"<SecretStr>"}'
