"""The library as LangChain tools: alone, in another graph, and in the examples."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode

from citeloom import CiteloomError, langchain_tools, open_library
from citeloom.graph.session import Session
from examples.supervisor import by_plan, supervisor
from tests.support.cli_process import ROOT, environment


@pytest.fixture
def library(home: Path) -> Iterator[Session]:
    with open_library(home) as opened:
        yield opened


def test_each_tool_has_a_schema_and_works_without_an_event_loop(library: Session) -> None:
    tools = {tool.name: tool for tool in langchain_tools(library)}
    assert {"search_evidence", "research", "check_claim", "make_table", "get_context_window"} <= tools.keys()
    for tool in tools.values():
        schema = tool.get_input_schema().model_json_schema()
        assert tool.description and "session" not in schema.get("properties", {})
    fields = tools["research"].get_input_schema().model_json_schema()["properties"]
    assert fields["max_calls"]["description"].startswith("Limit on model requests")
    call: Any = {"name": "search_evidence", "args": {"query": "seeds", "limit": 2}, "id": "1", "type": "tool_call"}
    message = tools["search_evidence"].invoke(call)
    assert len(message.artifact["passages"]) == 2 and message.artifact["passages"][0]["key"] in message.content


async def test_mistakes_are_reported_in_one_line(library: Session) -> None:
    calls = [
        ("search_evidence", {"query": "seeds", "papers": ["varga"]}, "Did you mean varga2021calibration?"),
        ("search_evidence", {"query": "seeds", "paper": "x"}, "paper: is unknown. It takes query, limit"),
        ("research", {"question": "?!"}, "Give it some words."),
    ]
    asked = AIMessage("", tool_calls=[{"name": name, "args": args, "id": name} for name, args, _ in calls])
    graph = StateGraph(MessagesState)
    graph.add_node("tools", ToolNode(langchain_tools(library)))
    graph.add_edge(START, "tools")
    graph.add_edge("tools", END)
    messages = (await graph.compile().ainvoke({"messages": [asked]}))["messages"][1:]
    for message, (_, _, said) in zip(messages, calls, strict=True):
        assert said in message.text and "\n" not in message.text and message.status == "error"


async def test_a_supervisor_agent_searches_and_asks(library: Session) -> None:
    graph = supervisor(langchain_tools(library), RunnableLambda(by_plan))
    state = await graph.ainvoke({"messages": [HumanMessage("Do ensembles of small networks calibrate better?")]})
    first, last = state["messages"][2], state["messages"][-1]
    assert "okafor2022ensembles" in first.text and "Sources" in last.text


def test_a_closed_library_is_reported(home: Path) -> None:
    with open_library(home) as opened:
        tools = langchain_tools(opened)
    assert "is closed" in tools[0].invoke({"query": "seeds"})
    with pytest.raises(CiteloomError, match="expected an open library"):
        langchain_tools(home)  # type: ignore[arg-type]


def test_the_mcp_example_runs(home: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "examples" / "over_mcp.py")],
        env={**os.environ, **environment({"HOME": str(home)})},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert "citeloom://papers/" in done.stdout and "emperature" in done.stdout.partition("\n\n")[2]
