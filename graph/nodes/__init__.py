"""The steps of a section's run; each function is called as its node."""

from citeloom.graph.nodes.agent import after_guard, agent, guard, tools
from citeloom.graph.nodes.rendering import render
from citeloom.graph.nodes.searching import default_queries, gather, to_agent_or_generate
from citeloom.graph.nodes.writing import check, generate, repair, to_repair_or_render

__all__ = [
    "after_guard",
    "agent",
    "check",
    "default_queries",
    "gather",
    "generate",
    "guard",
    "render",
    "repair",
    "to_agent_or_generate",
    "to_repair_or_render",
    "tools",
]
