"""Findings of the checks reach the writer word for word; unrepaired findings are listed with their spans."""

from __future__ import annotations

import json
import re
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from citeloom.experiment import parse_experiment
from citeloom.graph.session import Session, open_session
from citeloom.models.http.client import close_connections
from citeloom.runs.execution import run_request
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from tests.support.judging_model import answer_fields, failing_sentences
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import completion, envelope, readings
from tests.support.section_checks import check_section

INVENTED = "The ensemble reached an accuracy of 0.4242 in our hands"
UNCITED = "Previous studies have shown that ensembles of this kind help."


class Writer:
    """Copies from the first source, invents a number and leaves a report uncited; mends it when `mends`."""

    def __init__(self, *, mends: bool) -> None:
        self._mends = mends
        self.copied = self.marker = ""
        self.repairs: list[str] = []

    def __call__(self, body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        request = body["messages"][-1]["content"]
        if "S1" in answer_fields(body):
            self.repairs.append(request)
            failing = failing_sentences(request)
            mended = dict.fromkeys(failing, "") | {"S1": f"A source bears on the question [{self.marker}]."}
            return envelope(body, content=json.dumps(mended if self._mends else failing))
        if "findings" in answer_fields(body):
            return envelope(body, content=json.dumps(readings("It says so.", 0.9)))
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        shown = re.findall(r"^\[(E\d+)\] [^\[]*?words: (.+?)$", request, re.DOTALL | re.MULTILINE)
        self.marker, longest = max(shown, key=lambda item: (not re.search(r"\d", item[1]), len(item[1])))
        self.copied = " ".join(re.findall(r"[\w'-]+", longest)[:18])
        return envelope(body, content=f"{INVENTED}. It is so that {self.copied} [{self.marker}]. {UNCITED}")


def opened(stack: ExitStack, home: Path, server: FakeOpenAI) -> Session:
    settings = Settings(
        chat_model="fake", chat_base_url=server.base_url, top_k_initial=4, max_retries=0, score_threshold=0.0
    )
    return stack.enter_context(open_session(settings, FolderHome(home)))


async def record_of(home: Path, server: FakeOpenAI, experiment: dict[str, Any]) -> dict[str, Any]:
    with ExitStack() as stack:
        session = opened(stack, home, server)
        finished = await run_request(SectionRequest("discussion", parse_experiment(experiment)), session)
        check_section({**finished.record, "files": {}}, session.library, written_by_models=True)
    await close_connections()
    return finished.record


async def test_the_repair_request_names_the_faults(home: Path, server: FakeOpenAI, experiment: dict[str, Any]) -> None:
    server.behaviour = writer = Writer(mends=True)
    record = await record_of(home, server, experiment)
    (request,) = writer.repairs
    assert "The number 0.4242" in request and "neither in the experiment nor" in request
    assert re.search(r"words of E\d+ without quotation marks", request) and writer.copied[:40] in request
    assert f"S3: {UNCITED}" in request and "problem of S3: It reports others' work" in request
    assert f"source [{writer.marker}]" in request and "source [E9]" not in request
    assert record["findings"] == [] and "0.4242" not in record["text"]


async def test_unrepaired_faults_are_listed_with_their_spans(
    home: Path, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = writer = Writer(mends=False)
    record = await record_of(home, server, experiment)
    assert len(writer.repairs) == 1, "a repair that changed nothing is not asked for again"
    # The first of each kind: the copied words may hold numbers that lost their points.
    found = {item["rule"]: record["text"][item["start"] : item["end"]] for item in reversed(record["findings"])}
    assert found["number-not-found"] == "0.4242"
    assert writer.copied.endswith(found["copied-run"][-30:])
    assert found["citation-missing"] == UNCITED.replace(".", " [citation needed].")
    assert f"{INVENTED} [number not found]." in record["text"]
    assert record["text"].count("[copied words]") == 1
    assert [item["found"] for item in record["numbers"] if item["text"] == "0.4242"] == [None]
    assert any(warning.startswith("Marked in the text: The number 0.4242") for warning in record["warnings"])


async def test_a_repair_that_makes_the_draft_worse_is_undone(
    home: Path, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    def behave(body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        worse = "It was 0.4343, then 0.4444, then 0.4545 (Smith et al., 2021)."
        if "S1" in answer_fields(body):
            return envelope(body, content=json.dumps({"S1": worse}))
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        return envelope(body, content="A source bears on it [E1]. It was 0.4242.")

    server.behaviour = behave
    record = await record_of(home, server, experiment)
    assert record["text"].startswith("A source bears on it (") and record["text"].endswith(
        "It was 0.4242 [number not found]."
    )
    assert [item["rule"] for item in record["findings"]] == ["number-not-found"]
    assert "The repair of 1 sentence was no improvement and was reverted." in record["warnings"]


async def test_a_draft_without_citations_is_rewritten_as_a_whole(
    home: Path, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    wholes: list[str] = []

    def behave(body: Json) -> Json:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        assert "S1" not in answer_fields(body), "no sentence alone can mend that"
        if body.get("response_format"):
            return completion(body, tool_turns=0)
        request = body["messages"][-1]["content"]
        if "text problems" in request:
            wholes.append(request)
            return envelope(body, content="A source bears on the question [E1].")
        return envelope(body, content="We compared wearers. It helped.")

    server.behaviour = behave
    record = await record_of(home, server, experiment)
    assert len(wholes) == 1 and "We compared wearers. It helped." in wholes[0]
    assert record["text"].startswith("A source bears on the question (")
