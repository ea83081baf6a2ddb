"""What the agent may do, and the retrieval under it."""

from citeloom.tools.evidence import EvidenceLimits, Found, search_evidence
from citeloom.tools.requests import TOOL_SPECS, ToolRequestError, parse_request
from citeloom.tools.scope import Scope

__all__ = [
    "TOOL_SPECS",
    "EvidenceLimits",
    "Found",
    "Scope",
    "ToolRequestError",
    "parse_request",
    "search_evidence",
]
