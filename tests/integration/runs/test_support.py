"""Support: judged in batches, failures are sent to the writer with the judge's reason, then marked or left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import pytest

from citeloom.experiment import parse_experiment
from citeloom.graph.session import open_session
from citeloom.models.http.client import close_connections
from citeloom.runs.execution import RunResult, run_request
from citeloom.runs.run_requests import SectionRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from tests.support.judging_model import DRAFT, FALSE, GOOD, REVERSED, WEAK, JudgingModel
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.section_checks import check_section


@pytest.fixture
def write(home: Path, server: FakeOpenAI, experiment: dict[str, Any]) -> Callable[..., Any]:
    """Writes the discussion with a model, checked as any section is."""

    async def run(model: JudgingModel, **settings: Any) -> RunResult:
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
        with open_session(given, FolderHome(home)) as session:
            finished = await run_request(SectionRequest("discussion", parse_experiment(experiment)), session)
            check_section({**finished.record, "files": {}}, session.library, written_by_models=True)
        await close_connections()
        return finished

    return run


async def test_the_repair_request_contains_the_judges_findings(write: Any) -> None:
    model = JudgingModel(DRAFT, GOOD)
    record = (await write(model)).record
    (request,) = model.repairs
    problems = request.split("text sentences")[1]
    told = {FALSE: "not supported by [E2]: no word on sleep;", REVERSED: "contradicted by [E3]: it says that it helps;"}
    told[WEAK] = "only partly supported by [E1]: for one group only."  # told where it repairs anyway
    for number, (sentence, said) in enumerate(told.items(), 1):
        assert f"\nS{number}: {sentence}\n" in problems and f"\nproblem of S{number}: It is {said}" in problems
    assert f"before S1: {GOOD}" in problems and f"after S2: {WEAK}" in problems
    assert problems.count(GOOD) == 1
    assert record["findings"] == [] and [item["verdict"] for item in record["citations"]] == ["supported"]


async def test_existing_verdicts_are_not_requested_again(write: Any) -> None:
    model = JudgingModel(DRAFT, f"{GOOD} {WEAK} {REVERSED}", f"{GOOD} {WEAK} Calibration never hurts [E3].")
    await write(model)
    assert [len(pairs) for pairs in model.judged] == [4, 1], "four in one call, then the one that is new"
    assert model.judged[1] == ["Calibration never hurts."]


async def test_partial_support_is_listed_and_triggers_no_repair(write: Any) -> None:
    model = JudgingModel(f"{GOOD} {WEAK}")
    record = (await write(model)).record
    assert model.repairs == [] and "[not supported]" not in record["text"]
    (finding,) = record["findings"]
    assert (finding["rule"], finding["severity"]) == ("partly-supported", "note")
    assert record["text"][finding["start"] : finding["end"]].startswith("It may help others too (")


async def test_sentences_that_still_fail_are_marked_and_listed(write: Any) -> None:
    record = (await write(JudgingModel(DRAFT))).record
    first, second = record["text"].split("\n\n")
    # Both sentences of a paragraph rest on one paper; one with a mark has a citation of its own.
    assert re.search(r"^Ensembles .* networks \(\w+\)\. Every wearer slept well \(\w+\) \[not supported\]\.$", first)
    assert re.search(r"^Calibration never helps \(\w+\) \[contradicted by its source\]\. It may .* \(\w+\)\.$", second)
    cited = [(citation["sentence"].split()[0], citation["evidence_id"]) for citation in record["citations"]]
    assert cited == [("Ensembles", "E1"), ("Every", "E2"), ("Calibration", "E3"), ("It", "E1")]
    assert len({citation["key"] for citation in record["citations"]}) == 1
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


async def test_deciding_words_are_sliced_from_the_chunk(write: Any) -> None:
    record = (await write(JudgingModel(DRAFT))).record
    passages = record["report"]["passages"]
    for citation in record["citations"]:
        if citation["verdict"] == "unsupported":
            continue
        start, end = citation["decided_by"]
        words = passages[citation["evidence_id"]][start:end]
        assert len(words) > 10 and words == words.strip()


class EachItsOwn(JudgingModel):
    """Repairs each failing sentence with its own replacement."""

    OTHER: ClassVar = {FALSE: "Every sleeper slept well [E2].", REVERSED: "Calibration helps [E3].", WEAK: WEAK}

    def repaired(self, failing: dict[str, str]) -> dict[str, str]:
        return {name: self.OTHER[sentence] for name, sentence in failing.items()}


async def test_an_improved_sentence_stays_and_one_that_got_worse_is_undone(write: Any) -> None:
    model = EachItsOwn(DRAFT)
    record = (await write(model)).record
    assert "Calibration helps (" in record["text"] and "never" not in record["text"]
    helps = [citation for citation in record["citations"] if citation["sentence"].startswith("Calibration helps")]
    assert [(citation["evidence_id"], citation["verdict"]) for citation in helps] == [("E3", "supported")]
    assert "Every wearer slept well" in record["text"] and "Every sleeper" not in record["text"]
    assert "The repair of 1 sentence was no improvement and was reverted." in record["warnings"]
    assert [finding["rule"] for finding in record["findings"]] == ["unsupported", "partly-supported"]
    first, last = model.judged[0], model.judged[-1]
    assert len(first) == 4 and len(last) <= 2, "a sentence that did not change is judged once"


async def test_an_improvable_sentence_is_sent_for_repair_once(write: Any) -> None:
    model = JudgingModel(f"{GOOD} {FALSE} {REVERSED} {WEAK}", f"{GOOD} {REVERSED} {WEAK}", f"{GOOD} {WEAK}")
    await write(model)
    first, second = (request.split("text sentences")[1] for request in model.repairs)
    assert f": {WEAK}" in first and f"S1: {REVERSED}" in second and f"S2: {WEAK}" not in second


async def test_no_more_repairs_than_allowed_are_made(write: Any) -> None:
    third = "Rats slept too [E2]."
    model = JudgingModel(f"{DRAFT} {third}", f"{GOOD} {REVERSED} {WEAK} {third}", f"{GOOD} {WEAK} {third}", GOOD)
    record = (await write(model)).record
    assert len(model.repairs) == 2
    assert "Every wearer" not in record["text"] and "Calibration" not in record["text"]
    assert [finding["rule"] for finding in record["findings"]] == ["partly-supported", "unsupported"]


JOINT = "Ensembles of seeds were compared and calibrated [E1][E3]."


class Jointly(JudgingModel):
    """Calls the second passage of a sentence idle, or says that it contradicts."""

    def __init__(self, does: str, *drafts: str) -> None:
        super().__init__(*drafts)
        self._does = does

    def verdict(self, sentence: str, letters: list[str]) -> Json:
        said = super().verdict(sentence, letters)
        for letter in letters[1:]:
            said[letter] = {"does": self._does, "sentences": [1] if self._does == "contradicts" else []}
        return said


async def test_a_sentence_is_judged_once_against_all_its_sources(write: Any) -> None:
    model = Jointly("supports", f"{GOOD} {JOINT}")
    record = (await write(model)).record
    assert model.judged == [["Ensembles of seeds were compared with single networks.", JOINT]]
    verdicts = [item["verdict"] for item in record["citations"]]
    assert verdicts == ["supported"] * 3 and record["findings"] == []


async def test_a_marker_that_adds_nothing_is_dropped_and_its_sentence_is_kept(write: Any) -> None:
    model = Jointly("idle", f"{GOOD} {JOINT}")
    record = (await write(model)).record
    assert model.repairs == [] and len(model.judged) == 1, "that takes no call"
    assert "Ensembles of seeds were compared and calibrated (" in record["text"]
    assert [item["evidence_id"] for item in record["citations"]] == ["E1", "E1"]
    assert [item["verdict"] for item in record["citations"]] == ["supported"] * 2 and record["findings"] == []


async def test_a_marker_that_adds_nothing_is_listed_if_repairs_are_off(write: Any) -> None:
    record = (await write(Jointly("idle", f"{GOOD} {JOINT}"), max_repairs=0)).record
    (finding,) = record["findings"]
    assert (finding["rule"], finding["severity"], finding["ids"]) == ("idle-marker", "note", ["E3"])
    assert f"gains nothing from {record['citations'][2]['key']}" in finding["message"], finding["message"]
    assert "[E" not in finding["message"], "a reader knows papers, not markers"
    assert [item["evidence_id"] for item in record["citations"]] == ["E1", "E1", "E3"]


async def test_a_contradicting_source_gets_a_warning_that_names_its_marker(write: Any) -> None:
    record = (await write(Jointly("contradicts", f"{GOOD} {JOINT}"), max_repairs=0)).record
    (finding,) = record["findings"]
    assert finding["rule"] == "contradicted" and finding["ids"] == ["E3"]
    assert f"is contradicted by {record['citations'][1]['key']}" in finding["message"], finding["message"]
    assert "[E" not in " ".join([finding["message"], *record["warnings"]])
    verdicts = {item["evidence_id"]: item["verdict"] for item in record["citations"]}
    assert verdicts == {"E1": "supported", "E3": "contradicted"}
    assert record["text"].count("[contradicted by its source]") == 1


async def test_strict_leaves_out_marked_sentences_and_lists_them(write: Any) -> None:
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


async def test_an_empty_text_after_strict_says_so(write: Any) -> None:
    record = (await write(JudgingModel(f"# Discussion\n\n{FALSE} {REVERSED}"), strict=True)).record
    assert record["text"] == "" and record["references"] == [] == record["citations"]
    assert len(record["left_out"]) == 2
    assert "Nothing is left of the discussion" in record["findings"][0]["message"]


async def test_a_faulty_repair_is_kept_if_the_draft_was_empty(write: Any) -> None:
    """The writer gives nothing, twice; its repair has faults, and is kept and marked all the same."""
    record = (await write(JudgingModel("", "", DRAFT), max_repairs=1)).record
    assert "Ensembles of seeds were compared" in record["text"]
    assert record["text"].count("[not supported]") == 1
