"""The agent's tools, and the retrieval that they use."""

from .evidence_search import search_evidence
from .found_evidence import EvidenceLimits, FoundEvidence, Searched
from .retrieval import Hit, Retrieval, retrieve
from .scope import Scope
from .tool_schemas import TOOL_SPECS, ToolRequestError, parse_request

__all__ = [
    "TOOL_SPECS",
    "EvidenceLimits",
    "FoundEvidence",
    "Hit",
    "Retrieval",
    "Scope",
    "Searched",
    "ToolRequestError",
    "parse_request",
    "retrieve",
    "search_evidence",
]
