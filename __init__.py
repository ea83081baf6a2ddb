"""Citeloom writes paper sections whose every cited sentence links to the words it is based on.

Everything here is imported when it is first used, so that importing the package is cheap.
"""

from importlib import import_module
from inspect import isfunction, signature
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .api.agent_tools import langchain_tools
    from .api.checking import acheck_claims, acheck_text, check_claims, check_text
    from .api.citing import asuggest_citations, suggest_citations
    from .api.conversation import Conversation
    from .api.evidence_tables import (
        aagree,
        acontradictions,
        agree,
        amake_table,
        asave_table,
        contradictions,
        make_table,
        save_table,
    )
    from .api.files import aexport, aimport_text, async_tex, averify, export, import_text, sync_tex, verify
    from .api.homes import aopen_library, open_library
    from .api.ingesting import adescribe_figures, aingest, describe_figures, ingest
    from .api.library_papers import afigures, figures
    from .api.library_search import asearch, search
    from .api.paper_lookup import aadd, add, aenrich, async_zotero, enrich, sync_zotero
    from .api.running import (
        aanswer_run,
        answer_run,
        aresearch,
        astream_paper,
        astream_research,
        astream_section,
        awrite_paper,
        awrite_section,
        research,
        write_paper,
        write_section,
    )
    from .api.text_updating import aupdate_texts, update_texts
    from .errors import CiteloomError, WaitingError
    from .experiment import load_experiment
    from .graph.graphs import build_paper_graph, build_research_graph, build_section_graph
    from .settings.config import Settings

_NAMES = {
    "api.agent_tools": "langchain_tools",
    "api.checking": "acheck_claims acheck_text check_claims check_text",
    "api.citing": "asuggest_citations suggest_citations",
    "api.conversation": "Conversation",
    "api.evidence_tables": (
        "aagree acontradictions agree amake_table asave_table contradictions make_table save_table"
    ),
    "api.files": "aexport aimport_text async_tex averify export import_text sync_tex verify",
    "api.homes": "aopen_library open_library",
    "api.ingesting": "adescribe_figures aingest describe_figures ingest",
    "api.library_papers": "afigures figures",
    "api.library_search": "asearch search",
    "api.paper_lookup": "aadd add aenrich async_zotero enrich sync_zotero",
    "api.running": (
        "aanswer_run answer_run aresearch astream_paper astream_research astream_section awrite_paper awrite_section "
        "research write_paper write_section"
    ),
    "api.text_updating": "aupdate_texts update_texts",
    "errors": "CiteloomError WaitingError",
    "experiment": "load_experiment",
    "graph.graphs": "build_paper_graph build_research_graph build_section_graph",
    "settings.config": "Settings",
}
_HOMES = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = [
    "CiteloomError", "Conversation", "Settings", "WaitingError", "aadd", "aagree", "aanswer_run", "acheck_claims",
    "acheck_text", "acontradictions", "add", "adescribe_figures", "aenrich", "aexport", "afigures", "agree",
    "aimport_text", "aingest", "amake_table", "answer_run", "aopen_library", "aresearch", "asave_table", "asearch",
    "astream_paper", "astream_research", "astream_section", "asuggest_citations", "async_tex", "async_zotero",
    "aupdate_texts", "averify", "awrite_paper", "awrite_section", "build_paper_graph", "build_research_graph",
    "build_section_graph", "check_claims", "check_text", "contradictions", "describe_figures", "enrich", "export",
    "figures", "import_text", "ingest", "langchain_tools", "load_experiment", "make_table", "open_library",
    "research", "save_table", "search", "suggest_citations", "sync_tex", "sync_zotero", "update_texts", "verify",
    "write_paper", "write_section",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        found = getattr(import_module(f"citeloom.{_HOMES[name]}"), name)
        if isfunction(found) and next(iter(signature(found).parameters), "") == "session":
            from .api.arguments import requires_open

            found = requires_open(found)
        return globals().setdefault(name, found)
    raise AttributeError(f"module 'citeloom' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
