"""The graphs of a section, a paper and a question, wired from shared nodes (docs/architecture.md).

`build_..._graph()` returns an uncompiled graph; `..._graph()` returns the graph compiled without a checkpointer, for
the LangGraph server, which brings its own, and for parent graphs, whose checkpointer it inherits.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from .input_check import CheckedStateGraph
from .nodes import agent, ask, finish, route_question, tabulate, write
from .shared_sessions import SectionContext, bind_node
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

# Each node has one exit: a node, a function that chooses one, or such a function with the nodes it can choose.
_FROM_AGENT_TO_CHECK: Final[Edges] = {
    "agent": "guard",
    "guard": agent.after_guard,
    "tools": route_question.to_agent_or_generate,
    "ask_evidence": ask.to_search_or_generate,
    "search_further": "ask_evidence",
    "generate": "check",
    "search_for_sentences": "check",
    "repair": "check",
}
_SECTION_STEPS: Final[Edges] = {
    "default_queries": "plan_needs",
    "plan_needs": (route_question.before_reading, {"ask_needs": "ask_needs", "read": "gather"}),
    "ask_needs": "gather",
    "gather": route_question.to_agent_or_generate,
    **_FROM_AGENT_TO_CHECK,
}
_NODES: Final[Mapping[str, Callable[..., Any]]] = {
    node.__name__: node
    for node in (
        *(agent.agent, agent.guard, agent.tools, ask.ask_needs, ask.ask_evidence, ask.ask_sentences),
        *(ask.search_further, ask.search_for_sentences, tabulate.tabulate, write.generate, write.check, write.repair),
        *(route_question.default_queries, route_question.plan_needs, route_question.gather, route_question.route),
        *(route_question.read, finish.render, finish.begin, finish.store_section, finish.assemble),
    )
}


def _or_store(*names: str) -> dict[Hashable, str]:
    """Map a function's choices to nodes for a paper, where a section is stored instead of rendered."""
    return {**dict(zip(names, names, strict=True)), "render": "store_section"}


Builder = StateGraph[Any, Any, Any, Any]
Graph = CompiledStateGraph[Any, Any, Any, Any]


@dataclass(frozen=True, eq=False)
class GraphShape:
    """A graph: its `types` (state, input, output), and the edges between its `nodes`."""

    name: str
    types: tuple[type, type, type]
    edges: Edges
    nodes: Mapping[str, Callable[..., Any]] = field(default_factory=lambda: _NODES)

    @property
    def steps(self) -> list[Callable[..., Any]]:
        return [self.nodes[name] for name in self.edges if name != START]

    def build(self) -> Builder:
        """Build the uncompiled graph; its context is a `Session`, or settings for a session shared in the process."""
        state, given, made = self.types
        graph: Builder = CheckedStateGraph(state, context_schema=SectionContext, input_schema=given, output_schema=made)
        for step in self.steps:
            graph.add_node(step.__name__, bind_node(step))
        for start, end in self.edges.items():
            if isinstance(end, str):
                graph.add_edge(start, end)
            elif isinstance(end, tuple):
                graph.add_conditional_edges(start, *end)
            else:
                graph.add_conditional_edges(start, end)
        return graph

    @cache  # noqa: B019  # the shapes live as long as the process
    def compile(self) -> Graph:
        """Return the graph compiled without a checkpointer."""
        return self.build().compile(name=self.name)


# In a paper these steps run for each of six sections on one thread; only queries and evidence carry over.
_SECTION: Final = GraphShape(
    "section",
    (SectionState, SectionInput, SectionOutput),
    {
        START: "default_queries",
        **_SECTION_STEPS,
        "check": write.to_repair_or_render,
        "ask_sentences": ask.after_sentences,
        "render": END,
    },
)
_PAPER: Final = GraphShape(
    "paper",
    (SectionState, PaperInput, PaperOutput),
    {
        START: "begin",
        "begin": "default_queries",
        **_SECTION_STEPS,
        "check": (write.to_repair_or_render, _or_store("repair", "ask_sentences")),
        "ask_sentences": (ask.after_sentences, _or_store("search_for_sentences", "check")),
        "store_section": finish.to_next_or_assemble,
        "assemble": END,
    },
)
_RESEARCH: Final = GraphShape(
    "research",
    (ResearchState, ResearchInput, ResearchOutput),
    {
        START: "route",
        "route": route_question.to_needs_or_render,
        "plan_needs": route_question.to_table_or_read,
        "tabulate": tabulate.to_generate_or_read,
        "ask_needs": "read",
        "read": route_question.to_agent_or_generate,
        **_FROM_AGENT_TO_CHECK,
        "check": write.to_repair_or_render,
        "ask_sentences": ask.after_sentences,
        "render": END,
    },
)


build_section_graph, section_graph = _SECTION.build, _SECTION.compile
build_paper_graph, paper_graph = _PAPER.build, _PAPER.compile
build_research_graph, research_graph = _RESEARCH.build, _RESEARCH.compile
