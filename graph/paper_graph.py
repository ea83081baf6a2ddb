"""The paper graph: the steps of the section graph, gone through for each of six sections on one thread.

    START -> begin -> default_queries -> ... -> check -> store_section -> default_queries ...
                                                          store_section -> assemble -> END

Queries and evidence run on from section to section, all else begins anew. `build_paper_graph()` gives an uncompiled
builder, `paper_graph()` the graph compiled without a checkpointer, as for a section.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from .context import SectionContext
from .input_check import CheckedStateGraph
from .node_binding import SessionProvider, bound
from .nodes import paper
from .section_graph import add_steps
from .shared_sessions import shared_session
from .state import PaperInput, PaperOutput, SectionState

PaperGraph = CompiledStateGraph[SectionState, Any, PaperInput, PaperOutput]


def build_paper_graph(
    session_of: SessionProvider = shared_session,
) -> StateGraph[SectionState, Any, PaperInput, PaperOutput]:
    """The uncompiled graph; `session_of` gives each node its library, roles and journal."""
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
