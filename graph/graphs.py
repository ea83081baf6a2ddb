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
             route -> render, for a remark such as "Thank you!"

`build_section_graph()` and its like return an uncompiled builder, which the command line compiles with its own
checkpointer; `section_graph()` and its like return the graph compiled without one, for the LangGraph server, which
brings its own, and for a parent graph, whose checkpointer it inherits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.typing import InputT, OutputT, StateT

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

Edges = Mapping[str, str | Callable[..., str] | tuple[Callable[..., str], dict[Hashable, str]]]

# Each node has one way out: a node, a function that chooses one, or such a function with the nodes of its answers.
_FROM_AGENT_TO_CHECK: Final[Edges] = {
    "agent": "guard",
    "guard": nodes.after_guard,
    "tools": nodes.to_agent_or_generate,
    "generate": "check",
    "repair": "check",
}
_SECTION_STEPS: Final[Edges] = {
    "default_queries": "plan_needs",
    "plan_needs": "gather",
    "gather": nodes.to_agent_or_generate,
    **_FROM_AGENT_TO_CHECK,
}
_SECTION_NODES: Final = (
    nodes.default_queries,
    nodes.plan_needs,
    nodes.gather,
    nodes.agent,
    nodes.guard,
    nodes.tools,
    nodes.generate,
    nodes.check,
    nodes.repair,
)


def wire(
    graph: StateGraph[StateT, Any, InputT, OutputT],
    session_of: SessionProvider,
    steps: Sequence[Callable[..., Any]],
    edges: Edges,
) -> StateGraph[StateT, Any, InputT, OutputT]:
    """Add nodes and edges to a graph; `session_of` provides each node with library, roles and journal."""
    for step in steps:
        graph.add_node(step.__name__, bound(step, session_of))
    for start, end in edges.items():
        if isinstance(end, str):
            graph.add_edge(start, end)
        elif isinstance(end, tuple):
            graph.add_conditional_edges(start, *end)
        else:
            graph.add_conditional_edges(start, end)
    return graph


def build_section_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[SectionState, Any, SectionInput, SectionOutput]:
    """The uncompiled graph of a section."""
    graph = CheckedStateGraph(
        SectionState, context_schema=SectionContext, input_schema=SectionInput, output_schema=SectionOutput
    )
    edges = {START: "default_queries", **_SECTION_STEPS, "check": nodes.to_repair_or_render, "render": END}
    return wire(graph, session_of, (*_SECTION_NODES, nodes.render), edges)


def build_paper_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[SectionState, Any, PaperInput, PaperOutput]:
    """The uncompiled graph of a paper."""
    graph = CheckedStateGraph(
        SectionState, context_schema=SectionContext, input_schema=PaperInput, output_schema=PaperOutput
    )
    edges: Edges = {
        START: "begin",
        "begin": "default_queries",
        **_SECTION_STEPS,
        "check": (nodes.to_repair_or_render, {"repair": "repair", "render": "store_section"}),
        "store_section": paper.to_next_or_assemble,
        "assemble": END,
    }
    return wire(graph, session_of, (*_SECTION_NODES, paper.begin, paper.store_section, paper.assemble), edges)


def build_research_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[ResearchState, Any, ResearchInput, ResearchOutput]:
    """The uncompiled graph of a question."""
    graph = CheckedStateGraph(
        ResearchState, context_schema=SectionContext, input_schema=ResearchInput, output_schema=ResearchOutput
    )
    found = (nodes.route, nodes.plan_needs, nodes.one_paper, nodes.survey, nodes.read, nodes.agent, nodes.guard)
    written = (nodes.tools, nodes.generate, nodes.check, nodes.repair, nodes.render)
    edges = {
        START: "route",
        "route": nodes.to_needs_or_render,
        "plan_needs": nodes.to_track,
        "one_paper": "read",
        "survey": "read",
        "read": nodes.to_agent_or_generate,
        **_FROM_AGENT_TO_CHECK,
        "check": nodes.to_repair_or_render,
        "render": END,
    }
    return wire(graph, session_of, (*found, *written), edges)


SectionGraph = CompiledStateGraph[SectionState, Any, SectionInput, SectionOutput]
PaperGraph = CompiledStateGraph[SectionState, Any, PaperInput, PaperOutput]
ResearchGraph = CompiledStateGraph[ResearchState, Any, ResearchInput, ResearchOutput]


@lru_cache(maxsize=1)
def section_graph() -> SectionGraph:
    """The graph compiled without a checkpointer."""
    return build_section_graph().compile(name="section")


@lru_cache(maxsize=1)
def paper_graph() -> PaperGraph:
    """The graph compiled without a checkpointer."""
    return build_paper_graph().compile(name="paper")


@lru_cache(maxsize=1)
def research_graph() -> ResearchGraph:
    """The graph compiled without a checkpointer."""
    return build_research_graph().compile(name="research")
