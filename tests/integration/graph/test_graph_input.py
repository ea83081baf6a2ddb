"""A graph given an unknown field, or lacking a required one, says which, before anything is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from citeloom import CiteloomError, build_paper_graph, build_research_graph, build_section_graph
from citeloom.graph.conversation_graph import build_conversation_graph
from citeloom.graph.studio import paper, research, section

EXPERIMENT = {"results": "The median was 3.", "reasoning": "It was small."}


@pytest.fixture(autouse=True)
def _environment(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CITELOOM_HOME", str(home))
    monkeypatch.setenv("CITELOOM_MAX_SEARCH_ITERATIONS", "0")


@pytest.mark.parametrize(
    ("build", "given", "said"),
    [
        (build_section_graph, {"sektion": "results", "experiment": {}}, "'sektion' (did you mean 'section'?)"),
        (build_section_graph, {"section": "results", "exp": EXPERIMENT}, "'exp'"),
        (build_section_graph, {"section": "results"}, "field experiment is missing"),
        (build_section_graph, {"experiment": EXPERIMENT}, "field section"),
        (build_section_graph, {}, "is empty"),
        (build_section_graph, {"section": "results", "experiment": EXPERIMENT, "words": 3}, "'words'"),
        (build_paper_graph, {"experiments": EXPERIMENT}, "'experiments' (did you mean 'experiment'?)"),
        (build_paper_graph, {"section": "results", "experiment": EXPERIMENT}, "'section'"),
        (build_research_graph, {"questoin": "Are scores calibrated?"}, "'questoin' (did you mean 'question'?)"),
        (build_research_graph, {"papers": []}, "field question is missing"),
        (build_research_graph, {"question": "Are scores calibrated?", "min_yaer": 2000}, "(did you mean 'min_year'?)"),
        (build_research_graph, {"question": "Are scores calibrated?", "papers": "varga"}, "field papers"),
        (build_research_graph, {"question": "Are scores calibrated?", "min_year": "soon"}, "field min_year"),
        (build_research_graph, {"messages": [("user", "What?")]}, "takes no messages"),
        (build_conversation_graph, {"question": "Are scores calibrated?"}, "'question'"),
        (build_conversation_graph, {"turn_kind": "question"}, "field asked is missing"),
    ],
)
async def test_a_wrong_input_field_gets_one_error_that_names_the_valid_ones(build: Any, given: Any, said: str) -> None:
    with pytest.raises(CiteloomError) as raised:
        await build().compile().ainvoke(given)
    message = str(raised.value)
    assert said in message and "\n" not in message and raised.value.exit_code == 2
    if "unknown" in message or "missing" in message:
        named = message.rpartition("known fields: ")[2]
        assert {"section", "experiment", "question", "asked"} & set(named.rstrip(".").split(", "))


@pytest.mark.parametrize("graph", [section, paper, research], ids=["section", "paper", "research"])
@pytest.mark.parametrize(
    ("context", "said"),
    [
        ({"section_wrods": 100}, "context: unknown field 'section_wrods' (did you mean 'section_words'?)"),
        ({"section_words": "many"}, "context: field section_words"),
        ({"chat_api_key": "sk-secret"}, "chat_api_key is an API key"),
    ],
)
async def test_a_wrong_context_field_is_reported(graph: Any, context: Any, said: str) -> None:
    given = {"question": "Are scores calibrated?"} if graph is research else {"experiment": EXPERIMENT}
    with pytest.raises(CiteloomError) as raised:
        await graph.ainvoke({"section": "results", **given} if graph is section else given, context=context)
    assert said in str(raised.value) and "sk-secret" not in str(raised.value)


async def test_inside_another_graph_a_missing_field_is_reported() -> None:
    from langgraph.graph import END, START, StateGraph
    from typing_extensions import TypedDict

    class Mine(TypedDict, total=False):
        section: str
        notes: str

    parent = StateGraph(Mine)
    parent.add_node("section", build_section_graph().compile())
    parent.add_edge(START, "section")
    parent.add_edge("section", END)
    with pytest.raises(CiteloomError, match="field experiment is missing; known fields: section, experiment"):
        await parent.compile().ainvoke({"section": "results", "notes": "my own"})
