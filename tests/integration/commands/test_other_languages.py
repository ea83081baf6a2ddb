"""Questions in Chinese over English papers, with a multilingual embedding model at an endpoint."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.integration.commands.conftest import Citeloom
from tests.support.openai_server import FakeOpenAI
from tests.support.protocol_answers import embedding
from tests.support.sample_library import SAMPLES, THREE

QUESTION = "用一个温度校准之后,网络的置信度可靠吗?"
IN_ENGLISH = "temperature scaling divides the logits by one scalar calibration fitted on held-out data"
LONG = QUESTION * 30  # longer than any word that the index keeps


def multilingual(body: dict[str, Any]) -> dict[str, Any] | None:
    """A model to which a question means the same in both languages."""
    if "input" not in body:
        return None
    texts = [IN_ENGLISH if "校准" in text else text for text in body["input"]]
    data = [{"object": "embedding", "index": place, "embedding": embedding(text)} for place, text in enumerate(texts)]
    return {"object": "list", "data": data, "model": body["model"], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


@pytest.fixture
def settings() -> Iterator[dict[str, str]]:
    with FakeOpenAI(behaviour=multilingual) as server:
        yield {"EMBEDDING_MODEL": "multilingual", "EMBEDDING_BASE_URL": server.base_url, "EMBEDDING_API_KEY": "k"}


@pytest.fixture
def english(citeloom: Citeloom, tmp_path: Path, settings: dict[str, str]) -> Path:
    """A home with three English papers, their vectors from the endpoint."""
    papers = tmp_path / "papers"
    papers.mkdir()
    for name in (*(f"{key}.md" for key in THREE), "library.bib"):
        shutil.copy(SAMPLES / name, papers / name)
    done = citeloom("ingest", papers, "--home", tmp_path / "english", "--json", **settings)
    assert done.json["papers_added"] == 3, done.err
    return tmp_path / "english"


@pytest.mark.parametrize("question", [QUESTION, LONG], ids=["short", "long"])
@pytest.mark.parametrize("mode", ["dense", "hybrid"])
def test_a_chinese_question_finds_the_english_passage(
    citeloom: Citeloom, english: Path, settings: dict[str, str], mode: str, question: str
) -> None:
    def found(query: str, mode: str) -> list[dict[str, Any]]:
        done = citeloom("search", query, "--mode", mode, "--home", english, "--json", **settings)
        assert done.code == 0, done.err
        return list(done.json)

    wanted = found(IN_ENGLISH, "dense")
    records = found(question, mode)
    assert [record["chunk_id"] for record in records] == [record["chunk_id"] for record in wanted]
    assert [record["vector_score"] for record in records] == [record["vector_score"] for record in wanted]
    assert "varga2021calibration" in {record["key"] for record in records[:2]}
    assert all(record["sentence"] in " ".join(record["text"].split()) for record in records)


def test_chinese_words_in_no_paper_match_nothing(citeloom: Citeloom, english: Path, settings: dict[str, str]) -> None:
    for question in (QUESTION, LONG):
        done = citeloom("search", question, "--mode", "bm25", "--home", english, "--json", **settings)
        assert (done.code, done.json) == (0, [])
        done = citeloom("find", question, "--fulltext", "--home", english, "--json", **settings)
        assert (done.code, done.json["papers"]) == (0, [])


def test_a_question_may_mix_chinese_and_english(citeloom: Citeloom, english: Path, settings: dict[str, str]) -> None:
    done = citeloom("search", "什么是 temperature scaling?", "--mode", "bm25", "--home", english, "--json", **settings)
    assert done.code == 0 and "scaling" in done.json[0]["text"]


def test_a_chinese_question_finds_papers_by_their_summary(
    citeloom: Citeloom, english: Path, settings: dict[str, str]
) -> None:
    asked, wanted = (
        citeloom("find", query, "--home", english, "--json", **settings).json["papers"]
        for query in (QUESTION, IN_ENGLISH)
    )
    assert [paper["key"] for paper in asked] == [paper["key"] for paper in wanted]
