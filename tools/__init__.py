"""What the agent may do, and the retrieval under it."""

from citeloom.tools.evidence import EvidenceLimits, Found, Searched, search_evidence
from citeloom.tools.requests import TOOL_SPECS, ToolRequestError, parse_request
from citeloom.tools.retrieval import Hit, Retrieval, retrieve
from citeloom.tools.scope import Scope

__all__ = [
    "TOOL_SPECS",
    "EvidenceLimits",
    "Found",
    "Hit",
    "Retrieval",
    "Scope",
    "Searched",
    "ToolRequestError",
    "parse_request",
    "retrieve",
    "search_evidence",
]
