"""Prompts are counted by a tokenizer only if its data is on the machine; nothing is downloaded."""

from __future__ import annotations

import hashlib
import inspect
import os
import socket
from pathlib import Path

import pytest
import tiktoken
import tiktoken_ext.openai_public

from citeloom.models import paid_call as prompt_tokens
from citeloom.models.journal.records import CallRecord, Reservation
from citeloom.models.paid_call import DATA, count_tokens, counts_as_openai, size_reservation


def words_encoding() -> tiktoken.Encoding:
    """A tokenizer with a token for each byte and one for " word"."""
    ranks = {bytes([value]): value for value in range(256)}
    for length in range(2, 6):
        ranks[b" word"[:length]] = 254 + length
    return tiktoken.Encoding("words", pat_str=r" ?\w+|\s+|[^\s\w]+", mergeable_ranks=ranks, special_tokens={})


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of tiktoken, on a machine that must not ask the network."""

    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(tiktoken.registry, "ENCODINGS", {})
    prompt_tokens._encoding_of.cache_clear()
    return tmp_path


@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "gpt-4", "text-embedding-3-small", "llama3.1:8b", ""])
def test_without_tokenizer_data_nothing_is_counted_or_downloaded(model: str, cache: Path) -> None:
    assert count_tokens(model, "some words") is None
    assert list(cache.iterdir()) == []


@pytest.mark.parametrize("kind", ["damaged", "folder", "pipe"])
def test_unexpected_tokenizer_data_are_ignored(kind: str, cache: Path) -> None:
    path = cache / hashlib.sha1(DATA["o200k_base"][0].encode()).hexdigest()
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"IQ== 0\n")
    assert count_tokens("gpt-4o", "some words") is None
    assert path.exists()


def test_the_data_are_those_that_tiktoken_asks_for() -> None:
    source = inspect.getsource(tiktoken_ext.openai_public)
    assert all(address in source and sha256 in source for address, sha256 in DATA.values())


def test_long_runs_are_counted_in_pieces_and_special_tokens_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prompt_tokens, "_encoding_of", lambda _: words_encoding())
    assert 100 <= (count_tokens("any", " word" * 100) or 0) <= 105
    assert (count_tokens("any", "x" * 50_000) or 0) >= 50_000
    assert count_tokens("any", "<|endoftext|> \ud800")


@pytest.mark.parametrize(
    ("endpoint", "trusted"),
    [("https://api.openai.com/v1", True), ("https://me.openai.azure.com", True), ("http://127.0.0.1/v1", False)],
)
def test_a_server_with_another_tokenizer_is_trusted_less(
    endpoint: str, trusted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_tokens, "_encoding_of", lambda _: words_encoding())
    hold = size_reservation(
        Reservation("run", CallRecord("key", "chat", endpoint, "gpt-4o"), 1, 0, 50), " word" * 100, 200
    )
    assert (hold.input_tokens, hold.trusted) == (700, trusted)
    assert hold.counted is not None and (310 if trusted else 350) <= hold.counted <= (315 if trusted else 360)
    assert not counts_as_openai("https://api.openai.com.evil.example/v1")
