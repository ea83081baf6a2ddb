"""Citeloom writes paper sections whose every cited sentence opens to the words it rests on.

Everything here is imported when it is first used, so that importing the package is cheap.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.checking import acheck_claims, acheck_text, check_claims, check_text
    from .api.contradiction_search import acontradictions, contradictions
    from .api.conversation import Conversation
    from .api.files import aexport, averify, export, verify
    from .api.homes import aopen_library, open_library
    from .api.ingesting import adescribe_figures, aingest, describe_figures, ingest
    from .api.library_papers import afigures, figures
    from .api.library_search import asearch, search
    from .api.paper_lookup import aadd, add, aenrich, enrich
    from .api.questions import aresearch, astream_research, research
    from .api.writing import astream_paper, astream_section, awrite_paper, awrite_section, write_paper, write_section
    from .api.zotero_sync import async_zotero, sync_zotero
    from .errors import CiteloomError
    from .experiment import load_experiment
    from .graph.graphs import build_paper_graph, build_research_graph, build_section_graph
    from .settings.config import Settings

_HOMES = {
    "CiteloomError": "citeloom.errors",
    "Conversation": "citeloom.api.conversation",
    "Settings": "citeloom.settings.config",
    "aadd": "citeloom.api.paper_lookup",
    "acheck_claims": "citeloom.api.checking",
    "acheck_text": "citeloom.api.checking",
    "acontradictions": "citeloom.api.contradiction_search",
    "add": "citeloom.api.paper_lookup",
    "aenrich": "citeloom.api.paper_lookup",
    "adescribe_figures": "citeloom.api.ingesting",
    "aexport": "citeloom.api.files",
    "afigures": "citeloom.api.library_papers",
    "aingest": "citeloom.api.ingesting",
    "aopen_library": "citeloom.api.homes",
    "aresearch": "citeloom.api.questions",
    "asearch": "citeloom.api.library_search",
    "async_zotero": "citeloom.api.zotero_sync",
    "astream_paper": "citeloom.api.writing",
    "astream_research": "citeloom.api.questions",
    "astream_section": "citeloom.api.writing",
    "averify": "citeloom.api.files",
    "awrite_paper": "citeloom.api.writing",
    "awrite_section": "citeloom.api.writing",
    "build_paper_graph": "citeloom.graph.graphs",
    "build_research_graph": "citeloom.graph.graphs",
    "build_section_graph": "citeloom.graph.graphs",
    "check_claims": "citeloom.api.checking",
    "check_text": "citeloom.api.checking",
    "contradictions": "citeloom.api.contradiction_search",
    "enrich": "citeloom.api.paper_lookup",
    "describe_figures": "citeloom.api.ingesting",
    "export": "citeloom.api.files",
    "figures": "citeloom.api.library_papers",
    "ingest": "citeloom.api.ingesting",
    "load_experiment": "citeloom.experiment",
    "open_library": "citeloom.api.homes",
    "research": "citeloom.api.questions",
    "search": "citeloom.api.library_search",
    "sync_zotero": "citeloom.api.zotero_sync",
    "verify": "citeloom.api.files",
    "write_paper": "citeloom.api.writing",
    "write_section": "citeloom.api.writing",
}

__all__ = [
    "CiteloomError",
    "Conversation",
    "Settings",
    "aadd",
    "acheck_claims",
    "acheck_text",
    "acontradictions",
    "add",
    "adescribe_figures",
    "aenrich",
    "aexport",
    "afigures",
    "aingest",
    "aopen_library",
    "aresearch",
    "asearch",
    "astream_paper",
    "astream_research",
    "astream_section",
    "async_zotero",
    "averify",
    "awrite_paper",
    "awrite_section",
    "build_paper_graph",
    "build_research_graph",
    "build_section_graph",
    "check_claims",
    "check_text",
    "contradictions",
    "describe_figures",
    "enrich",
    "export",
    "figures",
    "ingest",
    "load_experiment",
    "open_library",
    "research",
    "search",
    "sync_zotero",
    "verify",
    "write_paper",
    "write_section",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'citeloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
