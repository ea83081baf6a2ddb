"""A whole paper on one thread: one evidence table, one list of references, nothing said twice."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from citeloom import open_library, write_paper
from citeloom.experiment import parse_experiment
from citeloom.graph.session import Session
from citeloom.runs.execution import delete_run, run_request, run_state
from citeloom.runs.output_files import save
from citeloom.runs.run_requests import SectionRequest
from citeloom.stores.folder_home import FolderHome
from tests.support.judging_model import answer_fields, failing_sentences
from tests.support.openai_server import FakeOpenAI, Json
from tests.support.protocol_answers import envelope, markers
from tests.support.run_fixtures import Opened
from tests.support.scripted_agent import Call, ScriptedAgent
from tests.support.section_checks import PAPER, check_paper

WRITTEN = ("methods", "results", "discussion", "conclusion", "introduction", "abstract")


@pytest.fixture
def usual() -> dict[str, Any]:
    return {"top_k_initial": 4, "max_retries": 0, "score_threshold": 0.0}


async def written(session: Session, experiment: dict[str, Any]) -> dict[str, Any]:
    finished = await run_request(SectionRequest("paper", parse_experiment(experiment)), session)
    record = {**finished.record, "files": {}}
    check_paper(record, session.library, written_by_models=True)
    return record


class OfSixSections(ScriptedAgent):
    """A planner that asks the same of every section, and the requests for each draft by section."""

    def __init__(self, *turns: list[Call]) -> None:
        super().__init__(*turns)
        self.drafts: dict[str, list[str]] = {}

    def __call__(self, body: Json) -> Json:
        asked = str(body["messages"][-1]["content"])
        kind = re.search(r"The section to write: (\w+)", asked)
        if kind and not body.get("tools"):
            self.drafts.setdefault(kind[1], []).append(asked)
        return super().__call__(body)


def search(query: str) -> Call:
    return "search_evidence", {"query": query}


@pytest.mark.long
def test_without_a_model_each_section_has_its_own_content(
    home: Path, experiment: dict[str, Any], tmp_path: Path
) -> None:
    with open_library(home) as library:
        record = write_paper(library, experiment, out=tmp_path / "out")
        check_paper(record, library.library)
    assert record["title"] == experiment["paper_concept"]["title"]
    assert all(len(section["text"].split()) > 20 for section in record["sections"])
    assert record["text"].index("## Abstract") < record["text"].index("## Introduction")
    quoted = re.findall(r"(?m)^- “([^”]+)”", record["text"])  # not the titles of their sections, in the same marks
    assert quoted and len(set(quoted)) == len(quoted), "the same words of a source are brought twice"
    assert not [finding for finding in record["findings"] if finding["rule"] == "repeated-sentence"]


def test_the_files_of_a_paper_and_of_its_sections_agree(home: Path, experiment: dict[str, Any], tmp_path: Path) -> None:
    with open_library(home) as library:
        record = write_paper(library, experiment, out=tmp_path, formats=("tex",))
    files = {name: Path(path).name for name, path in record["files"].items()}
    assert files == {name: f"paper.{name}" for name in ("md", "bib", "evidence.html", "json", "tex")}
    assert json.loads((tmp_path / "paper.json").read_text("utf-8")) == record
    whole = (tmp_path / "paper.md").read_text("utf-8")
    assert whole.startswith(f"# {record['title']}\n\n## Abstract\n\n")
    assert whole.count("## References") == 1
    keys = {citation["key"] for citation in record["citations"]}
    assert keys == set(re.findall(r"@\w+\{([^,]+),", (tmp_path / "paper.bib").read_text("utf-8")))
    for section in record["sections"]:
        name = section["section"]
        assert section["text"] in whole
        assert section["text"] in (tmp_path / f"{name}.md").read_text("utf-8")
        assert json.loads((tmp_path / f"{name}.json").read_text("utf-8")) == section
    tex = (tmp_path / "paper.tex").read_text("utf-8")
    groups = re.findall(r"\\cite(?!text)\w*(?:\[[^\]]*\])*\{([^}]*)\}", tex)
    assert keys == {key for group in groups for key in group.split(", ")}, "no citation lost or undefined"
    headings = [r"\begin{abstract}", *(rf"\section{{{name.capitalize()}}}" for name in PAPER if name != "abstract")]
    assert [tex.index(heading) for heading in headings] == sorted(tex.index(heading) for heading in headings)
    assert tex.count(r"\bibliography{paper}") == 1
    page = (tmp_path / "paper.evidence.html").read_text("utf-8")
    assert page.count('class="card"') == len(set(re.findall(r'id="(c\d+)"', page))) > 0
    assert all(f">{name.capitalize()}</h4>" in page for name in PAPER)


async def test_citation_numbers_follow_the_whole_paper(session: Opened, experiment: dict[str, Any]) -> None:
    request = SectionRequest("paper", parse_experiment(experiment))
    record = (await run_request(request, session(cite_style="numeric"))).record
    groups = re.findall(r"\[(\d+(?:, \d+)*)\]", record["text"])
    shown = [int(number) for group in groups for number in group.split(", ")]
    first = list(dict.fromkeys(shown))
    assert first == sorted(first) == list(range(1, len(record["references"]) + 1))
    assert [reference["label"] for reference in record["references"]] == [str(number) for number in first]
    labels = {reference["key"]: reference["label"] for reference in record["references"]}
    for section in record["sections"]:
        assert all(labels[reference["key"]] == reference["label"] for reference in section["references"])


async def test_summarising_sections_are_written_last_and_see_what_they_summarise(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = OfSixSections([search("label noise")])
    opened = session(max_repairs=0)
    record = await written(opened, experiment)
    assert tuple(agent.drafts) == WRITTEN
    state = (await run_state(opened.home, record["thread_id"])).values
    drafts = {section["section"]: section["draft"]["text"] for section in state["written"]}
    sentences = {kind: text.split(".")[0].rsplit(" [E", 1)[0] for kind, text in drafts.items()}
    shown = {
        "methods": (),
        "results": (),
        "discussion": (),
        "conclusion": ("results", "discussion"),
        "introduction": ("methods", "results", "discussion", "conclusion"),
        "abstract": ("introduction", "methods", "results", "discussion", "conclusion"),
    }
    for kind, (asked, *_) in agent.drafts.items():
        assert {other for other, words in sentences.items() if words in asked} == set(shown[kind]), kind
        for other in shown[kind]:
            assert f"text {other} (data" in asked


async def test_evidence_from_one_section_is_offered_to_the_next_under_the_same_id(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = OfSixSections()
    opened = session(top_k_final=2)
    record = await written(opened, experiment)
    state = (await run_state(opened.home, record["thread_id"])).values
    own = {
        kind: {item for query in state["queries"] if query["section"] == kind for item in query["evidence_ids"]}
        for kind in WRITTEN
    }
    lent = 0
    for section in state["written"]:
        offered = set(section["offered"])
        assert not offered & own[section["section"]], "what it found itself need not be offered"
        asked = agent.drafts[section["section"]][0]
        assert {f"[{item}]" for item in offered} <= set(markers({"messages": [{"role": "user", "content": asked}]}))
        (finished,) = [item for item in record["sections"] if item["section"] == section["section"]]
        lent += len(offered & {citation["evidence_id"] for citation in finished["citations"]})
    assert not state["written"][0]["offered"]
    assert lent > 0, "no section cites what another has found"


async def test_requests_for_one_section_are_not_paid_for_again(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = agent = OfSixSections([search("temperature scaling for new wearers")])
    opened = session()
    record = await written(opened, experiment)
    state = (await run_state(opened.home, record["thread_id"])).values
    custom = [query for query in state["queries"] if query["origin"] == "custom"]
    assert [query["section"] for query in custom] == list(WRITTEN)
    assert len({tuple(query["evidence_ids"]) for query in custom}) == 1
    read = Counter(json.dumps(body["messages"]) for body in agent.reading)
    assert set(read.values()) == {1}
    assert record["usage"]["llm_calls"] == server.calls()
    parts = [section["usage"]["llm_calls"] for section in record["sections"]]
    assert sum(parts) == server.calls() and all(parts)


async def test_a_repeated_sentence_is_repaired_once_and_then_reported(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    told: list[str] = []
    same = "Averaging the members of an ensemble makes their stated confidence more honest"

    def answer(body: Json) -> Json | None:
        if body.get("tools"):
            return envelope(body, content="Enough.")
        asked = str(body["messages"][-1]["content"])
        if "S1" in answer_fields(body):
            told.append(asked)
            return envelope(body, content=json.dumps(failing_sentences(asked)))
        if body.get("response_format"):
            return None
        kind = asked.partition("The section to write: ")[2].partition(",")[0]
        cited = re.findall(r"(?m)^\[E\d+\]", asked)[0]
        return envelope(body, content=f"{same} {cited}. Here begins what the {kind} alone has to say {cited}.")

    server.behaviour = answer
    record = await written(session(max_repairs=1), experiment)
    assert len(told) == 4 and all("is already in the" in asked for asked in told)
    assert record["text"].count(same) == 6, "no section loses it"
    repeated = [finding for finding in record["findings"] if finding["rule"] == "repeated-sentence"]
    assert {finding["section"] for finding in repeated} == {*WRITTEN} - {WRITTEN[0], "abstract"}


@pytest.mark.long
async def test_a_paper_killed_in_any_section_ends_the_same(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any], home: Path
) -> None:
    undisturbed = await written(session(), experiment)
    calls = server.calls()
    await delete_run(FolderHome(home), undisturbed["thread_id"])
    told: list[str] = []

    class Killed(BaseException):
        pass

    opened = session()
    request = SectionRequest("paper", parse_experiment(experiment), fresh=True)
    server.requests.clear()
    for section in WRITTEN:

        def until(event: Any, name: str = section) -> None:
            if event.get("stage") == "writing" and name in event["text"]:
                raise Killed

        with pytest.raises(Killed):
            await run_request(request, opened, on_event=until, on_notice=told.append)
    finished = await run_request(request, opened, on_notice=told.append)
    assert [line.split(" at the ")[1].split(",")[0] for line in told if "Resuming run" in line] == list(WRITTEN)
    assert server.calls() <= calls + len(WRITTEN), "more than the calls in flight at each kill were made again"
    mine, theirs = finished.record, undisturbed
    for name in ("text", "citations", "evidence", "references", "findings", "numbers", "warnings"):
        assert mine[name] == theirs[name], name
    assert mine["usage"]["llm_calls"] == calls


async def test_another_style_is_rendered_without_a_call(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any], tmp_path: Path
) -> None:
    await written(session(), experiment)
    calls = server.calls()
    texts = set()
    for style in ("pandoc", "numeric", "latex"):
        finished = await run_request(SectionRequest("paper", parse_experiment(experiment)), session(cite_style=style))
        assert finished.finished_earlier
        save(finished.record, tmp_path / style)
        texts.add((tmp_path / style / "paper.md").read_text("utf-8"))
    assert server.calls() == calls
    assert len(texts) == 3


async def test_checkpoints_of_a_paper_contain_each_text_once(
    session: Opened, server: FakeOpenAI, experiment: dict[str, Any]
) -> None:
    server.behaviour = OfSixSections([search("sensor position")])
    opened = session()
    record = await written(opened, experiment)
    state = (await run_state(opened.home, record["thread_id"])).values
    held = str({name: value for name, value in state.items() if name not in ("result", "text")})
    for section in state["written"][:-1]:
        assert held.count(repr(section["draft"]["text"])[1:-1]) == 1
    chunks = [chunk for paper in opened.library.papers() for chunk in opened.library.paper_chunks(paper.key)]
    quotes = {item["quote"] for item in record["evidence"]}
    assert not [chunk.id for chunk in chunks if chunk.text not in quotes and repr(chunk.text)[1:-1] in held]
