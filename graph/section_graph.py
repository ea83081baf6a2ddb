"""The section graph: from default queries through an agent with tools to a checked and rendered section.

    START -> default_queries -> plan_needs -> gather -> agent -> guard -> tools -> agent ...
                                                                 guard -> generate -> check
    check -> repair -> check ... -> render -> END

`build_section_graph()` returns an uncompiled builder, which the command line compiles with its own checkpointer;
`section_graph()` returns the graph compiled without one, for the LangGraph server, which brings its own, and for a
parent graph, whose checkpointer it inherits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from . import nodes
from .context import SectionContext
from .input_check import CheckedStateGraph
from .node_binding import SessionProvider, bound
from .shared_sessions import shared_session
from .state import SectionInput, SectionOutput, SectionState

SectionGraph = CompiledStateGraph[SectionState, Any, SectionInput, SectionOutput]


def build_section_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[SectionState, Any, SectionInput, SectionOutput]:
    """The uncompiled graph; `session_of` provides each node with library, roles and journal."""
    graph = CheckedStateGraph(
        SectionState, context_schema=SectionContext, input_schema=SectionInput, output_schema=SectionOutput
    )
    graph.add_edge(START, "default_queries")
    add_steps(graph, session_of, finished="render")
    graph.add_node("render", bound(nodes.render, session_of))
    graph.add_edge("render", END)
    return graph


def add_steps(graph: StateGraph[SectionState, Any, Any, Any], session_of: SessionProvider, *, finished: str) -> None:
    """Add the steps from the default queries to a checked draft, which continues to the node `finished`."""
    for node in (
        nodes.default_queries,
        nodes.plan_needs,
        nodes.gather,
        nodes.agent,
        nodes.guard,
        nodes.tools,
        nodes.generate,
        nodes.check,
        nodes.repair,
    ):
        graph.add_node(node.__name__, bound(node, session_of))
    graph.add_edge("default_queries", "plan_needs")
    graph.add_edge("plan_needs", "gather")
    graph.add_conditional_edges("gather", nodes.to_agent_or_generate)
    graph.add_edge("agent", "guard")
    graph.add_conditional_edges("guard", nodes.after_guard)
    graph.add_conditional_edges("tools", nodes.to_agent_or_generate)
    graph.add_edge("generate", "check")
    graph.add_conditional_edges("check", nodes.to_repair_or_render, {"repair": "repair", "render": finished})
    graph.add_edge("repair", "check")


@lru_cache(maxsize=1)
def section_graph() -> SectionGraph:
    """The graph compiled without a checkpointer."""
    return build_section_graph().compile(name="section")
