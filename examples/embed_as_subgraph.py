"""A custom writing agent that uses Citeloom to write its sections.

    python cli.py ingest examples/library --bib examples/library/library.bib
    python examples/embed_as_subgraph.py

Kill it at any moment and start it again: it resumes inside the section that it was writing. When it has finished, it
prints what it wrote; `--thread another-name` starts a new paper. With CITELOOM_INTERRUPTS='["needs", "evidence"]' the
sections ask, and their interrupts reach this graph (docs/steering.md).
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiosqlite
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Command
from typing_extensions import TypedDict

from citeloom import CiteloomError, build_section_graph

EXAMPLES = Path(__file__).resolve().parent

# LangGraph's default deserializer calls any function that a checkpoint names. List the types of your own state here:
# allowed_msgpack_modules=[("your.module", "YourClass")].
PLAIN_VALUES = JsonPlusSerializer(pickle_fallback=False, allowed_msgpack_modules=None)


class Paper(TypedDict, total=False):
    """The state of your agent. It shares only the name `experiment` with ours, and need not share that."""

    experiment: dict[str, Any]
    outline: list[str]
    sections: dict[str, str]
    cited: list[str]
    paper: str


# Compiled without a checkpointer, the section graph inherits that of the calling graph. Never compile it with
# `checkpointer=False`: it would then start over after a kill.
section_graph = build_section_graph().compile(name="section")


async def plan(state: Paper) -> Paper:
    """Your agent's own planning; here it is a fixed outline."""
    return {"outline": ["introduction", "discussion"], "sections": {}, "cited": []}


async def write(state: Paper) -> Paper:
    """The next section of the outline. Your state and ours differ, so this node maps one to the other.

    Settings such as the chat model come from the environment, `.env` and `citeloom.toml`, whatever context your own
    graph has; `context` overrides them for this call. Keys come from the environment only.
    """
    kind = state["outline"][len(state["sections"])]
    answer = await section_graph.ainvoke(
        {"section": kind, "experiment": state["experiment"]}, context={"section_words": 250}
    )
    keys = [citation["key"] for citation in answer["result"]["citations"]]
    return {
        "sections": {**state["sections"], kind: answer["text"]},
        "cited": sorted({*state["cited"], *keys}),
    }


def more_to_write(state: Paper) -> str:
    return "write" if len(state["sections"]) < len(state["outline"]) else "assemble"


async def assemble(state: Paper) -> Paper:
    parts = [f"## {kind.capitalize()}\n\n{text}" for kind, text in state["sections"].items()]
    return {"paper": "\n\n".join([*parts, f"Cited: {', '.join(state['cited'])}"])}


def writing_agent() -> StateGraph[Paper, Any, Paper, Paper]:
    """Your graph, with one section per step: a finished section is in a checkpoint before the next one starts.

    If your state used our names (`section`, `experiment`, `text`, `result`), the node could be the graph itself:
    `graph.add_node("write", section_graph)`.
    """
    graph = StateGraph(Paper)
    graph.add_node("plan", plan)
    graph.add_node("write", write)
    graph.add_node("assemble", assemble)
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", more_to_write, ["write", "assemble"])
    graph.add_conditional_edges("write", more_to_write, ["write", "assemble"])
    graph.add_edge("assemble", END)
    return graph


async def run(
    agent: CompiledStateGraph[Paper, Any, Paper, Paper],
    thread: str,
    experiment: dict[str, Any],
    report: Callable[[str, str], None],
    answer: Callable[[dict[str, Any]], object] = lambda question: "accept",
) -> str:
    """Start the thread's paper or resume it; `report` is called with the kind of each event and a line about it.

    `answer` says what a person wants of a question: "accept", or the fields to change.
    """
    config: Any = {"configurable": {"thread_id": thread}}
    state = await agent.aget_state(config)
    if state.values and not state.next:
        report("finished", "this thread's paper was finished earlier")
        return str(state.values["paper"])
    # The input starts a run, None resumes one. Sending the input again would restart at the outline.
    given: Any = None if state.next else {"experiment": experiment}
    while True:
        # subgraphs=True passes our events on; durability="sync" writes each step to disk before the next one starts.
        async for _, mode, data in agent.astream(
            given, config, stream_mode=["custom", "updates"], subgraphs=True, durability="sync"
        ):
            if mode == "custom":
                if data["kind"] == "stage":
                    report(data["stage"], data["text"])
            else:
                for node in data.keys() - {"__interrupt__"}:
                    report("step", node)
        state = await agent.aget_state(config)
        if not state.interrupts:
            return str(state.values["paper"])
        # A section asks: until this is answered the thread waits, also when the process ends.
        (asked,) = state.interrupts
        given = Command(resume={asked.id: answer(asked.value)})


def show(kind: str, text: str) -> None:
    print(f"  {text[:100]}" if kind != "step" else f"{text} is done", file=sys.stderr)


def ask(question: dict[str, Any]) -> object:
    """Ask the person at the terminal; what is typed are fields as JSON, or nothing to accept all."""
    print(question["description"], file=sys.stderr)
    said = input("Enter accepts this, or type fields as JSON: ")
    return json.loads(said) if said.strip() else "accept"


async def main() -> None:
    options = argparse.ArgumentParser(description="Write a paper with a graph that embeds the section graph.")
    options.add_argument("--exp", type=Path, default=EXAMPLES / "exp.json", help="the experiment")
    options.add_argument("--thread", default="my-paper", help="name of the paper's thread")
    options.add_argument("--checkpoints", type=Path, default=Path("demo-out/embedded.sqlite"), help="SQLite file")
    given = options.parse_args()
    given.checkpoints.parent.mkdir(parents=True, exist_ok=True)
    experiment = json.loads(given.exp.read_text(encoding="utf-8"))
    async with aiosqlite.connect(given.checkpoints) as connection:
        saver = AsyncSqliteSaver(connection, serde=PLAIN_VALUES)
        agent = writing_agent().compile(checkpointer=saver)
        print(await run(agent, given.thread, experiment, show, ask))


if __name__ == "__main__":
    try:
        asyncio.run(main())
    except CiteloomError as error:
        sys.exit(f"Error: {error}")
