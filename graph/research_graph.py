"""The research graph: from a question and the papers it is about to a checked and rendered answer.

    START -> route -> plan_needs -> one_paper -> read -> generate -> check -> repair -> check ... -> render -> END
                                 -> survey    -> read -> agent -> guard -> tools -> agent ...
                                                                  guard -> generate

The nodes from `agent` on are those of the section graph. `build_research_graph()` returns an uncompiled builder and
`research_graph()` the graph compiled without a checkpointer, as for sections.
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
from .state import ResearchInput, ResearchOutput, ResearchState

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
