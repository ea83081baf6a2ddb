"""A question put to a chat model on a real socket: what it is shown, when it is asked for more, what is remembered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver

import citeloom
from bench.server import stages as calls_in_a_row
from citeloom.errors import CiteloomError, InputError, PausedError
from citeloom.graph.graphs import build_research_graph, research_graph
from citeloom.graph.session import Session, open_session
from citeloom.models.http.client import close_connections
from citeloom.runs.execution import run_request, run_state
from citeloom.runs.run_requests import ResearchRequest
from citeloom.settings.config import Settings
from citeloom.stores.folder_home import FolderHome
from citeloom.stores.run_register import RunRegister
from tests.support.home_tables import run_tables
from tests.support.judging_model import failing_sentences
from tests.support.openai_server import FakeOpenAI, Json, Raw
from tests.support.protocol_answers import completion, envelope, markers, readings
from tests.support.run_fixtures import Opened
from tests.support.scripted_agent import PLANS, ScriptedAgent

FOCUSED = "Does temperature scaling change the calibration for new wearers?"
QUESTION = "How does temperature scaling change the calibration for new wearers?"


class Librarian:
    """Reads every passage with one score, all for the first need, and answers in these words.

    Plans `needs` where there are any, garbles its plan where there are none; everything else is by the protocol.
    """

    def __init__(
        self,
        *answers: str,
        score: float = 0.9,
        needs: Sequence[str] | None = None,
        agent: ScriptedAgent | None = None,
        kind: str = "",
    ) -> None:
        self.kind = kind
        self.answers = list(answers)
        self.score = score
        self.scores: list[float] = []  # of the first readings
        self.needs = needs
        self.agent = agent
        self.planned: list[Json] = []
        self.reading: list[Json] = []
        self.writing: list[Json] = []
        self.planning: list[Json] = []

    def __call__(self, body: Json) -> Json:
        form = form_of(body)
        if body.get("tools"):
            self.planning.append(body)
            return self.agent(body) if self.agent else envelope(body, content="Enough.")
        if form in PLANS and self.needs is not None:
            self.planned.append(body)
            planned = [{"need": need, "asks": "finding", "queries": [f"{need} in practice"]} for need in self.needs]
            return envelope(
                body, content=json.dumps({"needs": planned, "kind": self.kind}) if planned else "It needs a lot."
            )
        if form == "PassageReading":
            self.reading.append(body)
            score = self.scores.pop(0) if self.scores else self.score
            return envelope(body, content=json.dumps(readings("It says so.", score) if score else {"findings": []}))
        if form == "RepairedSentences":
            self.writing.append(body)
            following = self.answers.pop(0)
            failing = failing_sentences(str(body["messages"][-1]["content"]))
            repaired = {name: sentence if sentence in following else "" for name, sentence in failing.items()}
            return envelope(body, content=json.dumps(repaired))
        if form:
            return completion(body, tool_turns=0)
        self.writing.append(body)
        return envelope(body, content=self.answers.pop(0) if self.answers else "It is known [E1].")


async def answered(session: Session, question: str = QUESTION, **limits: Any) -> dict[str, Any]:
    return (await run_request(ResearchRequest(question, **limits), session)).record


def shown(body: Json) -> str:
    return "\n".join(str(message["content"]) for message in body["messages"])


def form_of(body: Json) -> str:
    return str((body.get("response_format") or {}).get("json_schema", {}).get("name", ""))


def passages_in(body: Json) -> str:
    """The block of passages that a reader is shown, which comes last."""
    return str(body["messages"][-1]["content"]).rpartition("(data, holds no instructions)")[2]


async def test_the_answer_rests_on_passages_in_context_and_cites_pages_or_sections(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = model = Librarian("Scaling helps new wearers [E1]. So does a second model [E2].")
    opened = session()
    record = await answered(opened)
    assert record["answered"] and record["route"]["track"] == "survey"
    assert [citation["evidence_id"] for citation in record["citations"]] == ["E1", "E2"]
    for citation in record["citations"]:
        (chunk,) = opened.library.chunks([citation["chunk_id"]])
        assert chunk.text[citation["start"] : citation["end"]] == citation["quote"]
        (reference,) = [entry for entry in record["references"] if entry["key"] == citation["key"]]
        assert reference["label"] == str(citation["number"]) and f"[{citation['number']}" in record["text"]
        assert {"page": citation["page"], "section": citation["section"]} in reference["places"]
    assert [reference["label"] for reference in record["references"]] in (["1"], ["1", "2"])
    (written,) = model.writing
    offered = set(markers({"messages": written["messages"][1:]}))  # the system prompt has examples
    assert offered <= {f"[{item['id']}]" for item in record["evidence"]}, "the writer is shown what cannot be cited"
    assert all(item["key"] not in shown(written) for item in record["evidence"])
    for item in record["evidence"]:
        assert f"[{item['id']}]" not in offered or f"[{item['id']}] {item['summary']}" in shown(written)
    assert all(QUESTION in shown(body) for body in model.reading), "passages are read for the question"


@pytest.mark.parametrize("score", [0.0, 0.2])
async def test_the_nearest_passages_are_reported_if_nothing_helps(
    session: Opened, server: FakeOpenAI, score: float
) -> None:
    """With no findings at all the nearest papers speak for themselves, else those that the reader calls near."""
    server.behaviour = model = Librarian("NOT ANSWERED\n\nIt is of knees [E1]. A trial would answer this.", score=score)
    opened = session()
    record = await answered(opened, "Does scaling help with calibration of perovskite cells?")
    assert record["answered"] is False and record["outcome"] == "nothing"
    assert record["text"].startswith("The library does not answer this question.\n\nIt is of knees [")
    assert record["text"].endswith("A trial would answer this.") and len(record["references"]) == 1
    (written,) = model.writing
    assert 1 <= len(record["evidence"]) <= 3
    for item in record["evidence"]:
        (chunk,) = opened.library.chunks([item["chunk_id"]])
        assert item["quote"] in chunk.text and f"[{item['id']}]" in shown(written)
        assert item["llm_score"] == score


async def test_near_misses_are_dropped_once_a_passage_helps(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Librarian()
    server.behaviour.scores = [0.2, 0.9]
    record = await answered(session(read_tokens=900, window_tokens=300))
    assert record["answered"] and {item["llm_score"] for item in record["evidence"]} == {0.9}


async def test_an_answer_says_that_the_library_has_nothing(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Librarian("NOT ANSWERED", score=0.0)
    record = await answered(session(), "How do perovskite cells degrade?")
    assert record["answered"] is False and record["citations"] == record["references"] == []
    assert "does not answer" in record["text"]
    assert "perovskite" not in record["text"], "a query reads like a claim"


async def test_passages_that_share_only_the_field_are_not_an_answer(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = model = Librarian(score=0.4)
    record = await answered(session(), "How is the weather on Mars?")
    assert record["answered"] is False and record["outcome"] == "nothing" and len(model.writing) == 1


async def test_a_writer_that_declines_names_the_nearest_passages(session: Opened, server: FakeOpenAI) -> None:
    wanted = "A trial in other looms would answer this."
    server.behaviour = Librarian(f"NOT ANSWERED\n\nIt is known [E1]. {wanted}")
    record = await answered(session())
    assert record["answered"] is False and record["outcome"] == "nothing" and record["citations"]
    assert record["text"].startswith("The library does not answer this question.\n\n")
    assert "NOT ANSWERED" not in record["text"] and "would answer this." in record["text"]
    assert not [item for item in record["findings"] if item["rule"] in ("citation-missing", "absence-unsearched")]


async def test_a_writer_that_declines_is_believed(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = model = Librarian("NOT ANSWERED.")
    record = await answered(session())
    assert record["answered"] is False and record["citations"] == [] and len(model.writing) == 1
    assert "does not answer" in record["text"]


async def test_an_answer_from_the_models_own_knowledge_does_not_reach_the_reader(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = Librarian(*["Paris is the capital of France, as everyone knows."] * 3)
    record = await answered(session())
    assert record["answered"] is False and "Paris" not in record["text"]


async def test_a_statement_without_a_source_is_repaired_or_marked(session: Opened, server: FakeOpenAI) -> None:
    bare = "Scaling helps new wearers [E1]. Paris is the capital of France."
    server.behaviour = model = Librarian(bare, "Scaling helps new wearers [E1].")
    assert "Paris" not in (await answered(session()))["text"] and len(model.writing) == 2
    server.behaviour = Librarian(bare, bare)
    record = await answered(session(), fresh=True)
    assert "Paris is the capital of France [citation needed]." in record["text"]
    assert any("Paris" in warning for warning in record["warnings"])
    strict = await answered(session(strict=True))
    assert strict["thread_id"] == record["thread_id"] and "Paris" not in strict["text"]
    assert "Scaling helps new wearers" in strict["text"]


async def test_numbers_come_from_the_question_or_the_source(session: Opened, server: FakeOpenAI) -> None:
    text = "Of 7 wearers 123.4 were better [E1]."
    server.behaviour = Librarian(text, text, text)
    record = await answered(session(), "What does calibration do for 7 wearers?")
    (finding,) = [item for item in record["findings"] if item["rule"] == "number-not-found"]
    assert "123.4" in finding["message"] and "question" in finding["message"]


async def test_the_agent_continues_searching_for_a_survey_unless_switched_off(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = enough = Librarian(needs=("whether scaling helps",))
    assert (await answered(session(), fresh=True))["answered"] and enough.planning == [], "nothing is thin"
    server.behaviour = model = Librarian(needs=("whether scaling helps",))
    assert (await answered(session(enough_findings=100)))["route"]["track"] == "survey"
    assert len(model.planning) == 1 and "[met" in shown(model.planning[0]), "it sees what is covered"
    for settings, limits in (({}, {"single_shot": True}), ({"max_search_iterations": 0}, {})):
        server.behaviour = left_out = Librarian(needs=("whether scaling helps",))
        assert (await answered(session(**settings), fresh=True, **limits))["answered"]
        assert left_out.planning == []


@pytest.mark.parametrize(
    ("question", "papers"),
    [(FOCUSED, ()), ("What of seeds?", ("okafor2022ensembles",))],
)
async def test_a_focused_question_needs_four_sequential_calls_before_its_answer_starts(
    home: Path, tmp_path: Path, question: str, papers: tuple[str, ...]
) -> None:
    needs = ("whether scaling helps", "what it costs to calibrate", "which wearers were asked")
    model, log = Librarian(needs=needs, score=0.7), tmp_path / "log.jsonl"
    with FakeOpenAI(behaviour=model, delay=0.2, log=log) as server:
        given = Settings(chat_model="fake", chat_base_url=server.base_url, read_tokens=900, window_tokens=300)
        with open_session(given, FolderHome(home)) as opened:
            record = await answered(opened, question, papers=papers)
        await close_connections()
    rows = calls_in_a_row(log)
    assert record["answered"] and model.planning == []
    assert next(place for place, row in enumerate(rows, 1) if row[0].get("stream")) <= 4


async def test_open_needs_of_a_focused_question_are_searched_in_other_words(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = model = Librarian(needs=("whether scaling helps", "what it costs to calibrate"), score=0.7)
    opened = session(read_tokens=600, window_tokens=300)
    record = await answered(opened, FOCUSED)
    state = (await run_state(opened.home, record["thread_id"])).values
    searches = {query["query"]: set(query["evidence_ids"]) for query in state["queries"]}
    assert {"what it costs to calibrate", "what it costs to calibrate in practice"} <= searches.keys()
    for item in record["evidence"]:
        assert item["id"] in searches[item["source_query"]]
    assert any(" in practice" not in item["source_query"] for item in record["evidence"])
    assert len(state["read_chunks"]) == len(set(state["read_chunks"]))
    (written,) = model.writing
    vain = shown(written).partition("searched for in the library in vain")[2]
    assert "what it costs to calibrate" in vain, "two searches found nothing for it"
    server.behaviour = Librarian(needs=("whether scaling helps", "what it costs to calibrate"), score=0.7)
    single = await answered(opened, FOCUSED, single_shot=True, fresh=True)
    assert all(" in practice" in item["source_query"] for item in single["evidence"])


async def test_findings_are_reported_as_soon_as_they_are_read(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Librarian(needs=("whether scaling helps",))
    kinds: list[str] = []
    await run_request(ResearchRequest(FOCUSED), session(), on_event=lambda event: kinds.append(event["kind"]))
    assert kinds.index("finding") < kinds.index("evidence") < kinds.index("token")


async def test_an_agent_that_stops_early_is_reminded_once_of_the_open_needs(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = model = Librarian(needs=("whether scaling helps", "what it costs to calibrate"))
    assert (await answered(session()))["answered"]
    first, second = model.planning
    assert len(second["messages"]) == len(first["messages"]) + 2
    reminder = str(second["messages"][-1]["content"])
    assert "N2: what it costs to calibrate" in reminder and "whether scaling helps" not in reminder


async def test_tool_answers_end_with_the_needs_that_are_met_and_open(session: Opened, server: FakeOpenAI) -> None:
    tried = ("minutes of labelled data", "effort of a new wearer", "price of a calibration")
    agent = ScriptedAgent(*[[("search_evidence", {"query": query, "need": "N2"})] for query in tried])
    server.behaviour = model = Librarian(needs=("whether scaling helps", "what it costs"), agent=agent)
    record = await answered(session(max_search_iterations=4))
    said = [answer.rpartition("\n\n")[2].splitlines() for answer in agent.answers()]
    assert [lines[-1] for lines in said] == [f"Searches left: {left}." for left in (3, 2, 1)]
    for place, lines in enumerate(said):
        met, unmet = lines[:2]
        assert met.startswith("N1 [met;") and met.endswith("]: whether scaling helps")
        assert unmet.startswith("N2 [in vain; nothing found; tried: "), unmet
        assert all(query in unmet for query in tried[: place + 1])
    (written,) = model.writing
    vain = shown(written).partition("searched for in the library in vain")[2]
    assert "what it costs (searched: " in vain and "whether scaling helps" not in vain.partition("```")[0]
    assert record["answered"]


async def test_no_chunk_is_read_twice_however_often_the_agent_asks(session: Opened, server: FakeOpenAI) -> None:
    near = ["temperature scaling of new wearers", "calibration of wearers by scaling", "scaling of temperatures"]
    turn = [("search_evidence", {"query": query}) for query in near]
    again = [("search_evidence", {"query": f"{query} on held out people"}) for query in near]
    agent = ScriptedAgent(turn, again)
    server.behaviour = model = Librarian(needs=("whether scaling helps",), agent=agent)
    opened = session(read_tokens=800, window_tokens=300, max_search_iterations=6, enough_findings=100)
    record = await answered(opened)
    state = (await run_state(opened.home, record["thread_id"])).values
    assert state["searches_used"] == 6
    assert len(state["read_chunks"]) == len(set(state["read_chunks"]))
    shown_first = [passages_in(body) for body in model.reading]
    assert len(shown_first) == len(set(shown_first)) > 2


async def test_evidence_found_by_the_agent_is_traced_to_its_search(session: Opened, server: FakeOpenAI) -> None:
    query = "wrist accelerometers placed by tape"
    agent = ScriptedAgent([("search_evidence", {"query": query, "need": "N1"})])
    server.behaviour = Librarian(needs=("whether scaling helps",), agent=agent)
    opened = session(read_tokens=500, window_tokens=300, enough_findings=100)
    record = await answered(opened)
    state = (await run_state(opened.home, record["thread_id"])).values
    searches = {query["query"]: set(query["evidence_ids"]) for query in state["queries"]}
    assert searches[query], "nothing was found, so nothing is tested"
    for item in record["evidence"]:
        assert item["id"] in searches[item["source_query"]]


async def test_needs_garbled_twice_are_made_by_rules(
    session: Opened, server: FakeOpenAI, caplog: pytest.LogCaptureFixture
) -> None:
    server.behaviour = model = Librarian(needs=())
    opened = session()
    with caplog.at_level("WARNING"):
        record = await answered(opened)
    state = (await run_state(opened.home, record["thread_id"])).values
    assert len(model.planned) == 2 and record["answered"]
    (need,) = state["needs"]
    assert need["text"] == need["queries"][0] == QUESTION
    assert "rules were used instead" in caplog.text


async def test_the_agents_searches_respect_the_limits_and_are_read_for_the_question(
    session: Opened, server: FakeOpenAI
) -> None:
    asked = ("search_evidence", {"query": "label noise in sensors", "papers": ["obrien2019seeds"]})
    server.behaviour = agent = ScriptedAgent([asked, ("search_papers", {"query": "seeds"})])
    opened, within = session(score_threshold=1.0), ("okafor2022ensembles", "tanaka2023position")
    record = await answered(opened, papers=within)
    state = (await run_state(opened.home, record["thread_id"])).values
    assert agent.planning, "nothing was found, so the planner is asked"
    custom = [query for query in state["queries"] if query["origin"] == "custom"]
    assert [query["scope"] for query in custom] == [{"papers": list(within)}]
    assert all(QUESTION in shown(body) for body in agent.reading if form_of(body) == "PassageReading")


async def test_repeating_a_question_costs_nothing_and_another_limit_starts_another_run(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = Librarian()
    opened = session()
    first = await run_request(ResearchRequest(QUESTION), opened)
    calls = server.calls()
    again = await run_request(ResearchRequest(f"  {QUESTION}\n"), opened)
    assert again.finished_earlier and not first.finished_earlier
    assert again.record == first.record and server.calls() == calls
    other = await run_request(ResearchRequest(QUESTION, words=80), opened)
    assert other.record["thread_id"] != first.record["thread_id"]


async def test_a_finished_answer_is_shown_in_another_style_without_a_call(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Librarian()
    record = await answered(session())
    calls = server.calls()
    by_key = await answered(session(cite_style="key-page"))
    assert by_key["thread_id"] == record["thread_id"] and server.calls() == calls
    assert "[1]" in record["text"] and ", section" in by_key["text"]


async def test_a_paused_question_resumes_without_repeating_calls(session: Opened, server: FakeOpenAI) -> None:
    model = Librarian()

    def failing(body: Json) -> Any:
        return model(body) if body.get("response_format") else Raw(status=500, body="{}")

    server.behaviour = failing
    with pytest.raises(PausedError):
        await answered(session())
    (run,) = RunRegister(run_tables(session().home.runs_file)).all()
    assert (run.section, run.status) == ("research", "paused")
    read = len(model.reading)
    server.behaviour = model
    record = await answered(session())
    assert record["thread_id"] == run.thread_id and record["answered"]
    assert len(model.reading) == read, "no passage was read twice"


async def test_a_question_killed_while_being_answered_resumes(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = model = Librarian()
    reached = asyncio.Event()

    def show(event: Any) -> None:
        if event.get("stage") == "writing":
            reached.set()

    running = asyncio.create_task(run_request(ResearchRequest(QUESTION), session(), on_event=show))
    await reached.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    read = len(model.reading)
    told: list[str] = []
    again = await run_request(ResearchRequest(QUESTION), session(), on_notice=told.append)
    assert again.record["answered"] and not again.finished_earlier
    assert len(model.reading) == read and any("Resuming run" in line for line in told)


async def test_a_failing_listener_leaves_a_run_that_can_be_resumed(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Librarian()

    def fail(event: Any) -> None:
        if event["kind"] == "evidence":
            raise RuntimeError("nobody listens")

    with pytest.raises(RuntimeError):
        await run_request(ResearchRequest(QUESTION), session(), on_event=fail)
    again = await run_request(ResearchRequest(QUESTION), session())
    assert again.record["answered"] and again.record["citations"]


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ({"papers": ("nobody2020",)}, "nobody2020"),
        ({"venue": "Journal of Nothing"}, "Journal of Nothing"),
        ({"min_year": 2020, "max_year": 2010}, "2020"),
    ],
)
async def test_limits_that_match_nothing_create_no_run(
    session: Opened, server: FakeOpenAI, limits: dict[str, Any], said: str
) -> None:
    opened = session()
    with pytest.raises(InputError, match=said):
        await answered(opened, **limits)
    assert RunRegister(run_tables(opened.home.runs_file)).all() == [] and server.calls() == 0


async def test_limits_on_years_keep_papers_out_of_the_answer(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = model = Librarian()
    opened = session()
    record = await answered(opened, min_year=2021)
    years = {opened.library.paper(item["key"]).year for item in record["evidence"]}
    assert years and min(year or 0 for year in years) >= 2021
    assert model.reading


async def test_as_a_subgraph_only_the_question_is_required(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_HOME", str(home))
    given = await research_graph().ainvoke({"question": "How do seeds move the score of an ensemble?"})
    assert given["result"]["outcome"] != "nothing" and given["result"]["citations"]
    assert given["route"]["track"] in ("one_paper", "survey") and given["text"]
    assert build_research_graph().nodes.keys() >= {"route", "plan_needs", "read", "agent", "guard", "tools"}


async def test_recalled_evidence_keeps_its_id_and_is_shown_separately(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Librarian("Scaling helps [E1].")
    opened = session()
    first = await answered(opened)
    recalled = [item for item in first["evidence"] if item["id"] in {c["evidence_id"] for c in first["citations"]}]
    turn = {"question": QUESTION, "answer": "Scaling helps [E1]."}
    server.behaviour = model = Librarian("As said before, scaling helps [E1].")
    second = await answered(
        opened,
        "What of the seeds of an ensemble?",
        turns=(turn,),
        recalled=tuple(recalled),
        papers=("okafor2022ensembles",),
    )
    (body,) = model.writing
    text = shown(body)
    assert (
        text.index("Answer:\nScaling helps")
        < text.index("Sources that earlier answers cited")
        < text.index("Sources of this question:")
    )
    assert [citation["evidence_id"] for citation in second["citations"]] == ["E1"]
    ids = [item["id"] for item in second["evidence"]]
    assert len(ids) == len(set(ids)) and len(ids) > 1


def test_python_can_ask_with_and_without_an_event_loop(home: Path, tmp_path: Path) -> None:
    with citeloom.open_library(home, settings=Settings()) as library:
        record = citeloom.research(library, "How do seeds move the score?", length=60, sources=2, out=tmp_path / "out")
        assert (
            record["outcome"] != "nothing" and len(record["references"]) <= 2 and Path(record["files"]["md"]).is_file()
        )

        async def inside() -> dict[str, Any]:
            with pytest.raises(CiteloomError, match="aresearch"):
                citeloom.research(library, "How do seeds move the score?")
            return await citeloom.aresearch(library, "How do seeds move the score?", length=60, sources=2)

        assert asyncio.run(inside())["text"] == record["text"]


def test_a_research_run_is_registered_with_its_question_as_title(home: Path) -> None:
    async def ask() -> str:
        with open_session(Settings(), FolderHome(home)) as opened:
            return str((await answered(opened, "How do seeds move the score?"))["thread_id"])

    thread = asyncio.run(ask())
    assert thread.startswith("research-")
    assert RunRegister(run_tables(FolderHome(home).runs_file)).get(thread).title == "How do seeds move the score?"


async def test_asking_again_in_a_thread_judges_again(session: Opened, server: FakeOpenAI) -> None:
    """What was judged of one answer is no verdict on the next, though sentence and id may be alike."""
    server.behaviour = Librarian()
    opened = session()
    graph = build_research_graph().compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "one"}}
    for question in (QUESTION, f"{QUESTION[:-1]}, and why?"):
        await graph.ainvoke({"question": question}, config, context=opened)
        values = (await graph.aget_state(config)).values
        said = [(record["sentence"], record["evidence_id"]) for record in values["verdicts"]]
        assert said and len(said) == len(set(said)) == len(values["result"]["citations"])
        judged = [body for body in server.requests if form_of(body) == "SupportVerdicts"]
        assert len(judged) == 1 or question != QUESTION, "an equal request is answered by the journal"
        server.requests.clear()


class Screener(Librarian):
    """Names the first card for each need, and leaves out the second."""

    def __call__(self, body: Json) -> Json:
        if form_of(body) != "Screening":
            return super().__call__(body)
        named = [{"need": "N1", "papers": [1]}]
        return envelope(body, content=json.dumps({"screened": named, "near": [{"paper": 2, "why": "a review"}]}))


async def test_an_inventory_ends_with_the_papers_screened_and_left_out(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Screener(needs=["calibration of wearers"])
    record = await answered(session(), "Which studies changed the calibration for wearers, and how in each?")
    screened = record["route"]["screened"]
    assert record["route"]["kind"] == "inventory" and len(screened["opened"]) == 1 and len(screened["near"]) == 1
    assert f"Screened by their cards: {screened['cards']} papers; 2 opened, 1 of them cited" in record["text"]
    assert record["text"].rstrip().count(": a review.") == 1 and "References" not in record["text"]


async def test_a_question_that_its_planner_calls_focused_pays_for_no_cards(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = model = Screener(needs=["whether scaling helps"], kind="focused")
    record = await answered(session())  # a survey by the rules
    assert record["route"]["kind"] == "focused" and "screened" not in record["route"] and not model.planning
    assert "Screening" not in map(form_of, server.requests)


async def test_a_focused_question_is_screened_if_no_read_passage_meets_a_need(
    session: Opened, server: FakeOpenAI
) -> None:
    server.behaviour = Screener(needs=["whether scaling helps"], score=0.4)
    await answered(session(read_tokens=500, window_tokens=200, search_tokens=200), FOCUSED)
    forms = [form_of(body) for body in server.requests]
    assert forms.count("Screening") == 1 and "PassageReading" in forms[forms.index("Screening") :]


async def test_a_planner_can_classify_a_question_as_an_inventory(session: Opened, server: FakeOpenAI) -> None:
    server.behaviour = Screener(needs=["whether scaling helps"], kind="inventory")
    assert (await answered(session(), FOCUSED))["route"]["kind"] == "inventory"
