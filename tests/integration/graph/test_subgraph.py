"""The section graph inside another graph: its checkpointer, its events, its kills."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from citeloom import build_research_graph, build_section_graph
from citeloom.graph.state import ResearchInput, ResearchOutput, SectionInput, SectionOutput
from tests.support.openai_server import FakeOpenAI

ROOT = Path(__file__).resolve().parents[3]
STEPS_OF_A_SECTION = {"default_queries", "gather", "agent", "guard", "generate", "check", "render"}


@dataclass(frozen=True)
class Told:
    """The events of a run of the example, and how it ended."""

    events: list[tuple[str, str]]
    returncode: int
    stderr: str

    @property
    def steps(self) -> Counter[str]:
        return Counter(text for kind, text in self.events if kind == "step")

    @property
    def paper(self) -> str:
        return next(text for kind, text in self.events if kind == "paper")


def run_example(home: Path, base_url: str, *, kill_at: str = "", interrupts: str = "[]") -> Told:
    """The example in a process of its own, with warnings as errors and strict checkpoints.

    A process that ends lets its library and its connections go without closing them, hence no resource warnings.
    """
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LANG")} | {
        "CITELOOM_HOME": str(home),
        "CITELOOM_CHAT_MODEL": "any",
        "CITELOOM_CHAT_BASE_URL": base_url,
        "CITELOOM_INTERRUPTS": interrupts,
        "LANGGRAPH_STRICT_MSGPACK": "true",
    }
    script = ROOT / "tests" / "support" / "killed_parent.py"
    arguments = [str(ROOT / "examples" / "exp.json"), str(home / "parent.sqlite"), "paper"]
    done = subprocess.run(
        [
            sys.executable,
            "-W",
            "error",
            "-W",
            "ignore::ResourceWarning",
            str(script),
            *arguments,
            *([kill_at] if kill_at else []),
        ],
        env=environment,
        cwd=home,
        capture_output=True,
        text=True,
        timeout=300,
    )
    events = [tuple(json.loads(line)) for line in done.stdout.splitlines()]
    return Told(events, done.returncode, done.stderr)


@dataclass(frozen=True)
class Whole:
    """An undisturbed run: its events, its model calls, and its home."""

    told: Told
    calls: int
    home: Path


@pytest.fixture(scope="module")
def whole(sample_home: Path, tmp_path_factory: pytest.TempPathFactory) -> Whole:
    """The example from beginning to end."""
    home = shutil.copytree(sample_home, tmp_path_factory.mktemp("undisturbed") / "home")
    with FakeOpenAI() as server:
        told = run_example(home, server.base_url)
        assert (told.returncode, told.stderr) == (0, "")
        return Whole(told, server.calls(), home)


def test_a_parent_graph_streams_the_steps_and_progress_of_each_section(whole: Whole) -> None:
    told = whole.told
    assert set(told.steps) >= STEPS_OF_A_SECTION | {"plan", "write", "assemble"}
    assert told.steps["render"] == told.steps["write"] == 2
    stages = [kind for kind, _ in told.events if kind not in ("step", "paper")]
    assert stages[0] == "queries"
    assert stages.count("rendered") == 2
    assert "## Introduction" in told.paper and "## Discussion" in told.paper
    assert whole.calls >= 2 * 5, "each section plans, searches, reads, is written and judged"


def test_a_finished_paper_is_shown_again_without_a_call(whole: Whole) -> None:
    again = run_example(whole.home, "http://127.0.0.1:9/v1")  # where nobody listens
    assert (again.returncode, again.stderr) == (0, "")
    assert again.paper == whole.told.paper
    assert not again.steps


@pytest.mark.parametrize(
    "kill_at",
    [
        pytest.param("planning", id="in-the-first-section-while-it-searches", marks=pytest.mark.long),
        pytest.param("writing: writing the discussion", id="in-the-second-section-while-it-is-written"),
    ],
)
def test_a_killed_parent_graph_resumes_inside_the_section(home: Path, whole: Whole, kill_at: str) -> None:
    with FakeOpenAI() as server:
        killed = run_example(home, server.base_url, kill_at=kill_at)
        assert killed.returncode == -signal.SIGKILL, killed.stderr
        assert not any(kind == "paper" for kind, _ in killed.events)
        resumed = run_example(home, server.base_url)
        assert (resumed.returncode, resumed.stderr) == (0, "")
        assert resumed.paper == whole.told.paper
        # Each step was finished in one of the two runs, never in both.
        assert killed.steps + resumed.steps == whole.told.steps
        # Only the one call that was in flight may be made twice.
        assert whole.calls <= server.calls() <= whole.calls + 1


@pytest.mark.long
def test_questions_of_sections_reach_the_parent_graph(home: Path, whole: Whole) -> None:
    with FakeOpenAI() as server:
        told = run_example(home, server.base_url, interrupts='["needs", "evidence"]')
        assert (told.returncode, told.stderr) == (0, "")
        assert told.paper == whole.told.paper and server.calls() == whole.calls
        assert told.steps["ask_needs"] == told.steps["ask_evidence"] == 2


async def test_a_parent_graph_with_the_same_field_names_uses_the_graph_as_a_node(
    home: Path, experiment: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Settings(TypedDict):
        section_words: int  # the parent's own, though we have one of this name

    class Mine(SectionInput, SectionOutput):
        reviewed: bool

    def review(state: Mine) -> dict[str, Any]:
        return {"reviewed": bool(state["result"]["citations"])}

    monkeypatch.setenv("CITELOOM_HOME", str(home))
    monkeypatch.setenv("CITELOOM_MAX_SEARCH_ITERATIONS", "0")
    monkeypatch.setenv("CITELOOM_TOP_K_INITIAL", "4")
    parent = StateGraph(Mine, context_schema=Settings)
    parent.add_node("section", build_section_graph().compile(name="section"))
    parent.add_node("review", review)
    parent.add_edge(START, "section")
    parent.add_edge("section", "review")
    parent.add_edge("review", END)
    agent = parent.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    given: Any = {"section": "discussion", "experiment": experiment}
    # 2 is out of the bounds of our setting: were it taken for ours, the run would be refused.
    context = Settings(section_words=2)

    await agent.ainvoke(given, config, context=context, interrupt_before=["review"])

    assert (await agent.aget_state(config)).next == ("review",)
    values = await agent.ainvoke(None, config, context=context)
    assert values is not None
    assert values["reviewed"] is True
    assert set(values) == {"section", "experiment", "text", "result", "reviewed"}


def test_a_graph_runs_with_and_without_an_event_loop(
    home: Path, experiment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CITELOOM_HOME", str(home))
    given = {"section": "results", "experiment": experiment}
    graph = build_section_graph().compile()
    text = graph.invoke(given)["text"]
    assert text and any("render" in step for step in graph.stream(given))
    parent = StateGraph(SectionInput, output_schema=SectionOutput)
    parent.add_node("write", graph)
    parent.add_edge(START, "write")
    parent.add_edge("write", END)
    assert parent.compile(checkpointer=InMemorySaver()).invoke(given, {"configurable": {"thread_id": "1"}})


def test_a_parent_graph_gets_the_questions_and_resumes_with_any_clients_answers(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mine(ResearchInput, ResearchOutput):
        pass

    monkeypatch.setenv("CITELOOM_HOME", str(home))
    parent = StateGraph(Mine)
    parent.add_node("ask", build_research_graph().compile(name="research"))
    parent.add_edge(START, "ask")
    parent.add_edge("ask", END)
    agent = parent.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": "t"}}
    given: Any = {"question": "How are ensembles of seeds calibrated?", "interrupts": ["needs", "evidence"]}
    wrong = {"decisions": [{"type": "edit", "edited_action": {"name": "needs", "args": {"nope": "x"}}}]}
    seen = []
    for step in (given, Command(resume=wrong), Command(resume={"decisions": [{"type": "approve"}]})):
        (asked,) = agent.invoke(step, config)["__interrupt__"]
        seen.append((asked.value["citeloom"]["ask"], "no field 'nope'" in asked.value["description"]))
    assert seen == [("needs", False), ("needs", True), ("evidence", False)]
    values = agent.invoke(Command(resume=[{"type": "accept", "args": None}]), config)
    assert [said["ask"] for said in values["result"]["steering"]] == ["needs", "evidence"] and values["text"]
