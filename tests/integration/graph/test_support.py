"""Support: judged in batches, failures told to the writer with the judge's reason, then marked or left out."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from citeloom.config import Settings
from citeloom.experiment import parse_experiment
from citeloom.graph.requests import SectionRequest
from citeloom.graph.run import SectionResult, run_section
from citeloom.graph.workbench import open_workbench
from citeloom.models.connections import close_connections
from citeloom.stores.home import Home
from tests.support.judging_model import DRAFT, FALSE, GOOD, REVERSED, WEAK, JudgingModel
from tests.support.openai_server import FakeOpenAI
from tests.support.section_checks import check_section


@pytest.fixture
def server() -> Iterator[FakeOpenAI]:
    with FakeOpenAI() as running:
        yield running


@pytest.fixture
def write(home: Path, server: FakeOpenAI, experiment: dict[str, Any]) -> Callable[..., Any]:
    """Writes the discussion with a model, checked as any section is."""

    async def run(model: JudgingModel, **settings: Any) -> SectionResult:
        server.behaviour = model
        given = Settings(
            chat_model="fake",
            chat_base_url=server.base_url,
            top_k_initial=4,
            max_retries=0,
            max_search_iterations=0,
            score_threshold=0.0,
            **settings,
        )
        with open_workbench(given, Home(home)) as bench:
            finished = await run_section(SectionRequest("discussion", parse_experiment(experiment)), bench)
            check_section({**finished.record, "files": {}}, bench.library, written_by_models=True)
        await close_connections()
        return finished

    return run


async def test_the_writer_is_told_what_the_judge_found(write: Any) -> None:
    model = JudgingModel(DRAFT, GOOD)
    record = (await write(model)).record
    (request,) = model.repairs
    problems = request.split("text problems")[1]
    assert f'"{FALSE}" is not supported by [E2]: no word on sleep;' in problems
    assert f'"{REVERSED}" is contradicted by [E3]: it says that it helps;' in problems
    assert f'"{WEAK}" is supported in part only by [E1]: for one group only.' in problems, (
        "told where it repairs anyway"
    )
    assert GOOD not in problems
    assert record["findings"] == [] and [item["verdict"] for item in record["citations"]] == ["supported"]


async def test_verdicts_already_given_are_not_asked_again(write: Any) -> None:
    model = JudgingModel(DRAFT, f"{GOOD} {WEAK} {REVERSED}", f"{GOOD} {WEAK} Calibration never hurts [E3].")
    await write(model)
    assert [len(pairs) for pairs in model.judged] == [4, 1], "four in one call, then the one that is new"
    assert model.judged[1] == ["Calibration never hurts."]


async def test_part_of_the_support_is_listed_and_asks_for_no_repair(write: Any) -> None:
    model = JudgingModel(f"{GOOD} {WEAK}")
    record = (await write(model)).record
    assert model.repairs == [] and "[not supported]" not in record["text"]
    (finding,) = record["findings"]
    assert (finding["rule"], finding["severity"]) == ("partly-supported", "note")
    assert record["text"][finding["start"] : finding["end"]].startswith("It may help others too (")


async def test_what_still_fails_is_marked_and_listed(write: Any) -> None:
    record = (await write(JudgingModel(DRAFT))).record
    first, second = record["text"].split("\n\n")
    assert re.search(r"^Ensembles .* networks \([\w]+\)\. Every wearer slept well \(\w+\) \[not supported\]\.$", first)
    assert re.search(r"^Calibration never helps \(\w+\) \[contradicted by its source\]\. It may .*\)\.$", second)
    rules = [finding["rule"] for finding in record["findings"]]
    assert rules == ["unsupported", "contradicted", "partly-supported"]
    for finding, words in zip(record["findings"], ("Every wearer", "Calibration never", "It may"), strict=True):
        shown = record["text"][finding["start"] : finding["end"]]
        assert shown.startswith(words) and shown.endswith(".")
        assert sum(finding["message"] in warning for warning in record["warnings"]) == 1
    assert record["left_out"] == []
    judged = {citation["sentence"][:5]: citation for citation in record["citations"]}
    assert judged["Every"]["verdict"] == "unsupported" and judged["Every"]["decided_by"] is None
    assert judged["Calib"]["verdict"] == "contradicted" and judged["Calib"]["reason"] == "it says that it helps"


async def test_the_words_that_decide_are_sliced_from_the_chunk(write: Any) -> None:
    record = (await write(JudgingModel(DRAFT))).record
    passages = record["report"]["passages"]
    for citation in record["citations"]:
        if citation["verdict"] == "unsupported":
            continue
        start, end = citation["decided_by"]
        words = passages[citation["evidence_id"]][start:end]
        assert len(words) > 10 and words == words.strip()


async def test_a_repair_that_is_supported_worse_is_taken_back(write: Any) -> None:
    worse = DRAFT.replace("compared", "never compared")
    record = (await write(JudgingModel(DRAFT, worse, GOOD))).record
    assert "A repair made the draft worse and was taken back." in record["warnings"]
    assert "never compared" not in record["text"] and record["text"].count("[contradicted by its source]") == 1


async def test_no_more_repairs_than_are_allowed(write: Any) -> None:
    drafts = [f"{DRAFT} Draft {word} is here." for word in ("one", "two", "three", "four", "five")]
    model = JudgingModel(*drafts)
    await write(model)
    assert len(model.repairs) == 2


async def test_strict_leaves_out_what_is_marked_and_lists_it(write: Any) -> None:
    marked = await write(JudgingModel(DRAFT))
    finished = await write(JudgingModel("Never asked."), strict=True)
    record = finished.record
    assert finished.finished_earlier and record["usage"] == marked.record["usage"], "no model was asked again"
    assert re.fullmatch(r"Ensembles .* \(\w+\)\.\n\nIt may help others too \(\w+\)\.", record["text"])
    assert [item["marks"] for item in record["left_out"]] == [["[not supported]"], ["[contradicted by its source]"]]
    assert record["left_out"][0]["sentence"].startswith("Every wearer slept well (")
    assert "no word on sleep" in record["left_out"][0]["why"][0]
    for item in record["left_out"]:
        assert any(item["why"][0] in warning for warning in record["warnings"])
    kept = {citation["key"] for citation in record["citations"]}
    assert {reference["key"] for reference in record["references"]} == kept
    assert (await write(JudgingModel("Never asked."))).record == marked.record, "and back"


async def test_strict_with_nothing_left_says_so(write: Any) -> None:
    record = (await write(JudgingModel(f"# Discussion\n\n{FALSE} {REVERSED}"), strict=True)).record
    assert record["text"] == "" and record["references"] == [] == record["citations"]
    assert len(record["left_out"]) == 2
    assert "Nothing is left of the discussion" in record["findings"][0]["message"]


async def test_any_text_is_better_than_none(write: Any) -> None:
    """The writer gives nothing, twice; its repair has faults, and is kept and marked all the same."""
    record = (await write(JudgingModel("", "", DRAFT), max_repairs=1)).record
    assert "Ensembles of seeds were compared" in record["text"]
    assert record["text"].count("[not supported]") == 1
