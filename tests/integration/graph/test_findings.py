"""What the checks find is told to the writer word for word, and what it leaves is listed with its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from citeloom.config import Settings
from citeloom.experiment import parse_experiment
from citeloom.graph.requests import SectionRequest
from citeloom.graph.run import run_section
from citeloom.graph.workbench import Workbench, open_workbench
from citeloom.models.connections import close_connections
from citeloom.stores.home import Home
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import completion, envelope
from tests.support.section_checks import check_section

INVENTED = "The ensemble reached an accuracy of 0.4242 in our hands"
UNCITED = "Previous studies have shown that ensembles of this kind help."


class Writer:
    """Copies from the first source, invents a number and leaves a report uncited; mends it when `mends`."""

    def __init__(self, *, mends: bool) -> None:
        self._mends = mends
        self.copied = ""
        self.repairs: list[str] = []

    def __call__(self, body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        request = body["messages"][-1]["content"]
        if "A first draft of this section" in request:
            self.repairs.append(request)
            if self._mends:
                return envelope(body, content="A source bears on the question [E1].")
        passage = re.search(r"Marker: \[E1\].*?Passage:\n(.+?)\n", request, re.DOTALL)
        assert passage is not None
        self.copied = " ".join(re.findall(r"[\w'-]+", passage[1])[:18])
        return envelope(body, content=f"{INVENTED}. It is so that {self.copied} [E1]. {UNCITED}")


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


def opened(stack: ExitStack, home: Path, server: FakeOpenAI) -> Workbench:
    settings = Settings(
        chat_model="fake", chat_base_url=server.base_url, top_k_initial=4, max_retries=0, score_threshold=0.0
    )
    return stack.enter_context(open_workbench(settings, Home(home)))


async def record_of(home: Path, server: FakeOpenAI, experiment: dict[str, Any]) -> dict[str, Any]:
    with ExitStack() as stack:
        bench = opened(stack, home, server)
        finished = await run_section(SectionRequest("discussion", parse_experiment(experiment)), bench)
        check_section({**finished.record, "files": {}}, bench.library, written_by_models=True)
    await close_connections()
    return finished.record


async def test_the_writer_is_told_what_failed(home: Path, server: FakeOpenAI, experiment: dict[str, Any]) -> None:
    server.behaviour = writer = Writer(mends=True)
    record = await record_of(home, server, experiment)
    (request,) = writer.repairs
    assert "The number 0.4242" in request and "neither in the experiment nor" in request
    assert "words of E1 without quotation marks" in request and writer.copied[:40] in request
    assert f'"{UNCITED}" speaks of others\' work' in request
    assert record["findings"] == [] and "0.4242" not in record["text"]


async def test_what_is_not_mended_is_listed_with_its_place(
    home: Path, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = writer = Writer(mends=False)
    record = await record_of(home, server, experiment)
    assert len(writer.repairs) == 1, "the same draft again is asked for once, and answered from the journal after that"
    found = {item["rule"]: record["text"][item["start"] : item["end"]] for item in record["findings"]}
    assert found["number-not-found"] == "0.4242"
    assert writer.copied.endswith(found["copied-run"][-30:])
    assert found["citation-missing"] == UNCITED.replace(".", " [citation needed].")
    assert f"{INVENTED} [number not found]." in record["text"]
    assert record["text"].count("[copied words]") == 1
    assert [item["found"] for item in record["numbers"] if item["text"] == "0.4242"] == [None]
    assert any(warning.startswith("Marked in the text: The number 0.4242") for warning in record["warnings"])


async def test_a_repair_that_makes_it_worse_is_taken_back(
    home: Path, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    def behave(body: Json) -> Json:
        if body.get("tools") or body.get("response_format"):
            return writer(body)
        worse = "It was 0.4343, then 0.4444, then 0.4545 (Smith et al., 2021)."
        if "A first draft of this section" in body["messages"][-1]["content"]:
            return envelope(body, content=worse)
        return envelope(body, content="A source bears on it [E1]. It was 0.4242.")

    writer = Writer(mends=False)
    server.behaviour = behave
    record = await record_of(home, server, experiment)
    assert record["text"].startswith("A source bears on it (") and record["text"].endswith(
        "It was 0.4242 [number not found]."
    )
    assert [item["rule"] for item in record["findings"]] == ["number-not-found"]
    assert "A repair made the draft worse and was taken back." in record["warnings"]
