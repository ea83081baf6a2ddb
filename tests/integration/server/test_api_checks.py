"""POST /checks and the MCP tools give what `check` gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from mcp import Client

from citeloom import Settings, open_library
from citeloom.server.mcp_server import mcp_server
from tests.support.checking_model import CheckingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.served_app import Served, served_app

TEXT = "Temperature scaling improves calibration [@varga2021calibration]. It never helps [@okafor2022ensembles].\n"


@pytest.fixture
def model() -> Iterator[FakeOpenAI]:
    with FakeOpenAI(behaviour=CheckingModel()) as running:
        yield running


@pytest.fixture
def served(home: Path, model: FakeOpenAI) -> Iterator[Served]:
    with served_app(home, {"chat_model": "fake", "chat_base_url": model.base_url}) as server:
        yield server


def test_a_posted_text_is_checked_and_paid_for_once(served: Served, model: FakeOpenAI) -> None:
    record = served.post("/checks", {"text": TEXT}).json()
    assert [item["label"] for item in record["sentences"]] == ["supported", "contradicted"]
    assert record["file"] == "text.md" and record["sentences"][1]["place"]["line"] == 1
    calls = model.calls()
    assert served.post("/checks", {"text": TEXT}).json()["counts"] == record["counts"]
    assert model.calls() == calls
    refused = served.post("/checks", {"text": TEXT, "only": ["sums"]})
    assert refused.status_code == 422 and "only" in refused.text
    empty = served.post("/checks", {"text": TEXT, "experiment": {}})
    assert empty.status_code == 200, "an experiment without fields holds no numbers"


@pytest.mark.parametrize("bib", ["@article{varga2021calibration, title={Broken, year=2022", "\x00\x01 no bibliography"])
def test_a_broken_bibliography_is_reported_without_a_path_on_the_server(served: Served, bib: str) -> None:
    answer = served.post("/checks", {"text": TEXT, "bib": bib})
    assert tempfile.gettempdir() not in answer.text and "references.bib" in answer.text, answer.text


async def test_agents_check_a_claim_and_a_text(home: Path, model: FakeOpenAI) -> None:
    settings = Settings(_env_file=None, chat_model="fake", chat_base_url=model.base_url)  # type: ignore[call-arg]
    with open_library(home, settings=settings) as library:
        async with Client(mcp_server(library, runs=None)) as client:  # type: ignore[arg-type]
            claim = {"claim": "Scaling never helps.", "papers": ["varga2021calibration"]}
            checked = (await client.call_tool("check_claim", claim)).structured_content
            text = (await client.call_tool("check_text", {"text": TEXT})).structured_content
    assert checked is not None and checked["label"] == "contradicted" and checked["sources"][0]["passages"][0]["quote"]
    assert text is not None and [item["label"] for item in text["sentences"]] == ["contradicted"]


def test_a_long_check_becomes_a_job_on_request(served: Served) -> None:
    accepted = served.post("/checks", {"text": TEXT}, prefer="respond-async")
    assert accepted.status_code == 202
    place = accepted.headers["location"].removeprefix("/api/v1")
    told = [str(event) for event in served.events(f"{place}/events")]
    assert any("2 sentences, 2 with citations to be judged" in data for data in told), told
    result = served.api.get(place).json()["result"]
    assert [item["label"] for item in result["sentences"]] == ["supported", "contradicted"]
