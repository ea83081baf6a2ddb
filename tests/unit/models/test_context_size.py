"""The context size that a server states or reveals by a refusal, and the room that it leaves for a prompt."""

from __future__ import annotations

import json
from typing import Any

import pytest

from citeloom.models.context_size import (
    UNLIMITED,
    WHOLE,
    ContextSize,
    Room,
    find_refused_size,
    find_stated_size,
    infer_context_size,
)
from citeloom.models.http.failures import ServerRefusalError, classify_failure, server_message


@pytest.mark.parametrize(
    "entry",
    [
        pytest.param({"max_model_len": 4096}, id="vllm"),
        pytest.param({"context_length": 4096}, id="openrouter"),
        pytest.param({"context_window": 4096}, id="groq"),
        pytest.param({"meta": {"n_vocab": 32000, "n_ctx_train": 4096}}, id="llama.cpp"),
        pytest.param({"meta": {"n_ctx": 4096, "n_ctx_train": 131072}}, id="llama.cpp-loaded"),
        pytest.param({"loaded_context_length": 4096, "max_context_length": 131072}, id="lm-studio-loaded"),
        pytest.param({"max_context_length": 4096}, id="lm-studio"),
    ],
)
def test_the_size_is_read_from_a_servers_list_of_models(entry: dict[str, Any]) -> None:
    others = [{"id": "other", "max_model_len": 9999}]
    assert find_stated_size({"object": "list", "data": [*others, {"id": "mine", **entry}]}, "mine") == 4096


def test_the_size_of_a_single_listed_model_is_used_for_any_name() -> None:
    assert find_stated_size({"data": [{"id": "/models/some.gguf", "meta": {"n_ctx": 8192}}]}, "local") == 8192
    listed = [{"id": "a", "max_model_len": 8192}, {"id": "b", "max_model_len": 4096}]
    assert find_stated_size({"data": listed}, "local") is None


@pytest.mark.parametrize(
    "models",
    [
        None,
        [],
        {},
        {"data": None},
        {"data": [None, 3]},
        {"data": [{"id": "mine"}]},
        {"data": [{"id": "mine", "meta": None, "max_model_len": None}]},
        {"data": [{"id": "mine", "max_model_len": "4096"}]},
        {"data": [{"id": "mine", "max_model_len": True}]},
        {"data": [{"id": "mine", "max_model_len": -1}]},
        {"data": [{"id": "mine", "max_model_len": 10**30}]},
        {"data": [{"id": "mine", "max_model_len": float("inf")}]},
    ],
)
def test_an_unusable_size_counts_as_none(models: object) -> None:
    assert find_stated_size(models, "mine") is None


REFUSALS = [
    "This model's maximum context length is 4096 tokens. However, you requested 5426 tokens (1426 in the messages, "
    "4000 in the completion). Please reduce the length of the messages or completion.",
    "the request exceeds the available context size (4096 tokens), try increasing it",
    "request (5426 tokens) exceeds the available context size (4096 tokens), try increasing it",
    "Trying to keep the first 5426 tokens when context the overflows. However, the model is loaded with context length "
    "of only 4096 tokens, which is not enough.",
    "'max_tokens' is too large: 4000. This model's maximum context length is 4,096 tokens and your request has 1426 "
    "input tokens",
    "The decoder prompt (length 5426) is longer than the maximum model length of 4096.",
    "The input (5426 tokens) is longer than the model's context length (4096 tokens).",
    "prompt is too long: 5426 tokens > 4096 maximum",
    "Requested tokens (5426) exceed context window of 4096",
    "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 4096 tokens "
    "and your request has 1426 input tokens (4000 > 4096 - 1426).",
]


@pytest.mark.parametrize("said", REFUSALS)
def test_the_size_is_read_from_a_refusal(said: str) -> None:
    failure = classify_failure(ServerRefusalError(400, said))
    assert failure is not None and failure.kind == "context"
    assert find_refused_size(failure.reason) == 4096


def test_a_size_outside_the_refusals_message_is_read_too() -> None:
    body = '{"error": {"code": 400, "message": "the request exceeds the available context size.", "n_ctx": 4096}}'
    assert find_refused_size(server_message(body)) == 4096


def test_the_size_is_read_from_the_complete_refusal_of_llama_cpp() -> None:
    error = {"code": 400, "message": "the request exceeds the available context size. try increasing the context size"}
    body = {"error": {**error, "type": "exceed_context_size_error", "n_prompt_tokens": 5426, "n_ctx": 4096}}
    failure = classify_failure(ServerRefusalError(400, server_message(json.dumps(body))))
    assert failure is not None and failure.kind == "context" and find_refused_size(failure.reason) == 4096


def test_a_full_context_is_distinguished_from_other_limits() -> None:
    assert infer_context_size(3_400, 696, sent=12_000, most=4_000, cut=True) == 4_096
    assert infer_context_size(3_400, 695, sent=12_000, most=4_000, cut=True) == 4_096, "the last place stays empty"
    assert infer_context_size(3_400, 696, sent=12_000, most=4_000, cut=False) is None
    assert infer_context_size(3_400, 696, sent=12_000, most=696, cut=True) is None, "its own limit"
    assert infer_context_size(3_400, 2_000, sent=12_000, most=4_000, cut=True) is None, "a limit of the model's"
    assert infer_context_size(600, 424, sent=2_000, most=4_000, cut=True) is None, "no room for any source"


def test_a_silently_cut_prompt_reveals_the_context_size() -> None:
    assert infer_context_size(4_096, 300, sent=40_000, most=4_000, cut=False) == 4_096
    assert infer_context_size(4_096, 300, sent=17_000, most=4_000, cut=False) is None, "it may have had so many"
    assert infer_context_size(4_095, 300, sent=40_000, most=4_000, cut=False) is None, "the rest was in a cache"
    assert infer_context_size(0, 0, sent=40_000, most=4_000, cut=True) is None, "it counts nothing"


def test_refusals_without_a_size_lower_it_until_it_is_too_small() -> None:
    known = ContextSize()
    tried: list[int | None] = []
    for _ in range(20):
        tried.append(known.size)
        known.learn_refusal("the prompt exceeds the context size", 12_000, known.size)
    assert tried[:3] == [None, 9_000, 6_750]
    assert tried[-1] == tried[-2] and (tried[-1] or 0) >= 2_048, "it ends"


def test_of_several_refusals_at_once_the_first_one_counts() -> None:
    known = ContextSize()
    for _ in range(5):
        known.learn_refusal("the prompt exceeds the context size", 12_000, None)
    assert known.size == 9_000 and known.lessons == 1


def test_a_refusal_of_a_prompt_made_to_fit_lowers_the_size() -> None:
    known = ContextSize(4096)
    known.learn_refusal("the request exceeds the available context size (4096 tokens)", 4_000, 4096)
    assert known.size == 3_000


def test_prompt_and_answer_fit_with_a_margin() -> None:
    room = Room.of(4096, 4000)
    assert room.output == 1024
    assert room.left(WHOLE) + room.output <= 0.85 * 4096 + 1
    assert room.left(100) == 100 and room.left(WHOLE, "x" * 4000) == room.left(WHOLE) - 1001
    assert not room.holds("x" * 4 * 4096) and room.words(700) < 600


def test_with_a_large_or_unknown_size_nothing_is_shortened() -> None:
    assert UNLIMITED.left(13_000, "x" * 10**6) == 13_000 and UNLIMITED.holds("x" * 10**6)
    assert Room.of(None, 4000).output == Room.of(32_768, 4000).output == 4000
    assert Room.of(32_768, 4000).left(16_500, "x" * 20_000) == 16_500
