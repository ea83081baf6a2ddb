"""Citeloom writes paper sections whose every cited sentence opens to the words it rests on.

Everything here is imported when it is first used, so that importing the package is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from citeloom.api import (
        aingest,
        aopen_library,
        asearch,
        awrite_paper,
        awrite_section,
        ingest,
        open_library,
        search,
        write_paper,
        write_section,
    )
    from citeloom.config import Settings
    from citeloom.conversation import Conversation
    from citeloom.errors import CiteloomError
    from citeloom.experiment import load_experiment
    from citeloom.graph.paper_graph import build_paper_graph
    from citeloom.graph.research_graph import build_research_graph
    from citeloom.graph.section_graph import build_section_graph
    from citeloom.questions import aresearch, research
    from citeloom.streaming import astream_research, astream_section

_HOMES = {
    "CiteloomError": "citeloom.errors",
    "Conversation": "citeloom.conversation",
    "Settings": "citeloom.config",
    "aingest": "citeloom.api",
    "aopen_library": "citeloom.api",
    "aresearch": "citeloom.questions",
    "asearch": "citeloom.api",
    "astream_research": "citeloom.streaming",
    "astream_section": "citeloom.streaming",
    "awrite_paper": "citeloom.api",
    "awrite_section": "citeloom.api",
    "build_paper_graph": "citeloom.graph.paper_graph",
    "build_research_graph": "citeloom.graph.research_graph",
    "build_section_graph": "citeloom.graph.section_graph",
    "ingest": "citeloom.api",
    "load_experiment": "citeloom.experiment",
    "open_library": "citeloom.api",
    "research": "citeloom.questions",
    "search": "citeloom.api",
    "write_paper": "citeloom.api",
    "write_section": "citeloom.api",
}

__all__ = [
    "CiteloomError",
    "Conversation",
    "Settings",
    "aingest",
    "aopen_library",
    "aresearch",
    "asearch",
    "astream_research",
    "astream_section",
    "awrite_paper",
    "awrite_section",
    "build_paper_graph",
    "build_research_graph",
    "build_section_graph",
    "ingest",
    "load_experiment",
    "open_library",
    "research",
    "search",
    "write_paper",
    "write_section",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'citeloom' has no attribute {name!r}")
