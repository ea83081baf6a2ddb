"""The steps of a run, of a section or a question; each function is called as its node."""

from citeloom.graph.nodes.agent import after_guard, agent, guard, tools
from citeloom.graph.nodes.asking import one_paper, read, route, survey, to_track
from citeloom.graph.nodes.rendering import render
from citeloom.graph.nodes.searching import default_queries, gather, plan_needs, to_agent_or_generate
from citeloom.graph.nodes.writing import check, generate, repair, to_repair_or_render

__all__ = [
    "after_guard",
    "agent",
    "check",
    "default_queries",
    "gather",
    "generate",
    "guard",
    "one_paper",
    "plan_needs",
    "read",
    "render",
    "repair",
    "route",
    "survey",
    "to_agent_or_generate",
    "to_repair_or_render",
    "to_track",
    "tools",
]
