"""Models are loaded beside the imports: only those that a command will use, and never with an error."""

from __future__ import annotations

import threading

import pytest

from citeloom.api.early_loading import load_early
from citeloom.citations import references
from citeloom.models.embeddings import bundled_models
from citeloom.models.embeddings.bundled_models import EMBEDDER, RERANKER, BundledModel, WeightsError
from citeloom.settings.config import Settings


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    names: list[str] = []

    def load(model: BundledModel) -> None:
        names.append(model.name)

    monkeypatch.setattr(bundled_models, "load_session", load)
    monkeypatch.setattr(bundled_models, "load_tokenizer", lambda model: None)
    monkeypatch.setattr(references, "read_style", lambda path: names.append("style"))
    return names


def wait() -> None:
    for thread in threading.enumerate():
        if thread.name == "citeloom-early":
            thread.join()


def test_a_search_preloads_the_embedder_and_a_question_the_cross_encoder_too(loaded: list[str]) -> None:
    load_early(Settings(), "search")
    wait()
    assert loaded == [EMBEDDER.name]
    load_early(Settings(), "answer")
    wait()
    assert loaded[1:] == [EMBEDDER.name, RERANKER.name, "style"]


def test_models_that_are_not_used_are_not_preloaded(loaded: list[str]) -> None:
    load_early(Settings(embedding_model="text-embedding-3-small"), "search")
    load_early(Settings(retrieval_mode="bm25"), "search")
    load_early(Settings(embedding_model="text-embedding-3-small", chat_model="gpt-4o"), "answer")
    wait()
    assert loaded == []


def test_weights_that_fail_to_load_are_reported_only_when_used(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(model: BundledModel) -> None:
        raise WeightsError("missing")

    monkeypatch.setattr(bundled_models, "load_session", refuse)
    failed: list[object] = []
    monkeypatch.setattr(threading, "excepthook", failed.append)
    load_early(Settings(), "search")
    wait()
    assert not failed
