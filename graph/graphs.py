"""The graphs of a section, a paper and a question; their nodes are shared.

Section: from default queries through an agent with tools to a checked and rendered section.

    START -> default_queries -> plan_needs -> gather -> agent -> guard -> tools -> agent ...
                                                                 guard -> generate -> check
    check -> repair -> check ... -> render -> END

Paper: the steps of a section for each of six sections on one thread; only queries and evidence carry over.

    START -> begin -> default_queries -> ... -> check -> store_section -> default_queries ...
                                                          store_section -> assemble -> END

Research: from a question and the papers it is about to a checked and rendered answer; the agent is for broad questions.

    START -> route -> plan_needs -> one_paper -> read -> generate -> check -> repair -> check ... -> render -> END
                                 -> survey    -> read -> agent -> guard -> tools -> agent ...
                                                                  guard -> generate

`build_section_graph()` and its like return an uncompiled builder, which the command line compiles with its own
checkpointer; `section_graph()` and its like return the graph compiled without one, for the LangGraph server, which
brings its own, and for a parent graph, whose checkpointer it inherits.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from . import nodes
from .input_check import CheckedStateGraph
from .nodes import finish as paper
from .shared_sessions import SectionContext, SessionProvider, bound, shared_session
from .state import (
    PaperInput,
    PaperOutput,
    ResearchInput,
    ResearchOutput,
    ResearchState,
    SectionInput,
    SectionOutput,
    SectionState,
)

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


PaperGraph = CompiledStateGraph[SectionState, Any, PaperInput, PaperOutput]


def build_paper_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[SectionState, Any, PaperInput, PaperOutput]:
    """The uncompiled graph; `session_of` provides each node with library, roles and journal."""
    graph = CheckedStateGraph(
        SectionState, context_schema=SectionContext, input_schema=PaperInput, output_schema=PaperOutput
    )
    for node in (paper.begin, paper.store_section, paper.assemble):
        graph.add_node(node.__name__, bound(node, session_of))
    graph.add_edge(START, "begin")
    graph.add_edge("begin", "default_queries")
    add_steps(graph, session_of, finished="store_section")
    graph.add_conditional_edges("store_section", paper.to_next_or_assemble)
    graph.add_edge("assemble", END)
    return graph


@lru_cache(maxsize=1)
def paper_graph() -> PaperGraph:
    """The graph compiled without a checkpointer."""
    return build_paper_graph().compile(name="paper")


ResearchGraph = CompiledStateGraph[ResearchState, Any, ResearchInput, ResearchOutput]


def build_research_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[ResearchState, Any, ResearchInput, ResearchOutput]:
    """The uncompiled graph; `session_of` provides each node with library, roles and journal."""
    graph = CheckedStateGraph(
        ResearchState, context_schema=SectionContext, input_schema=ResearchInput, output_schema=ResearchOutput
    )
    for node in (
        nodes.route,
        nodes.plan_needs,
        nodes.one_paper,
        nodes.survey,
        nodes.read,
        nodes.agent,
        nodes.guard,
        nodes.tools,
        nodes.generate,
        nodes.check,
        nodes.repair,
        nodes.render,
    ):
        graph.add_node(node.__name__, bound(node, session_of))
    graph.add_edge(START, "route")
    graph.add_edge("route", "plan_needs")
    graph.add_conditional_edges("plan_needs", nodes.to_track)
    graph.add_edge("one_paper", "read")
    graph.add_edge("survey", "read")
    graph.add_conditional_edges("read", nodes.to_agent_or_generate)
    graph.add_edge("agent", "guard")
    graph.add_conditional_edges("guard", nodes.after_guard)
    graph.add_conditional_edges("tools", nodes.to_agent_or_generate)
    graph.add_edge("generate", "check")
    graph.add_conditional_edges("check", nodes.to_repair_or_render)
    graph.add_edge("repair", "check")
    graph.add_edge("render", END)
    return graph


@lru_cache(maxsize=1)
def research_graph() -> ResearchGraph:
    """The graph compiled without a checkpointer."""
    return build_research_graph().compile(name="research")
