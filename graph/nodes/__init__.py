"""The nodes of the graphs; each function has the name of its node."""

from .agent import after_guard, agent, guard, tools
from .finish import render
from .route_question import one_paper, read, route, survey, to_needs_or_render, to_track
from .search import default_queries, gather, plan_needs, to_agent_or_generate
from .write import check, generate, repair, to_repair_or_render

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
    "to_needs_or_render",
    "to_repair_or_render",
    "to_track",
    "tools",
]
