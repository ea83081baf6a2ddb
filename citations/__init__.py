"""Citations of a draft: markers, checks, rendering, references and export."""

from .checks.draft_checks import check_draft, replace_invalid_citations
from .checks.findings import Finding
from .checks.injection_flags import flag_findings, flag_sources
from .checks.number_tracing import NumberTrace, trace_numbers
from .citation_styles import Citation, Rendered, render
from .export.files import SectionDocument, write_files
from .markers import CitedSentence, marker_ids, normalise_markers, sentences_with_markers
from .references import Reference, References, build_references

__all__ = [
    "Citation",
    "CitedSentence",
    "Finding",
    "NumberTrace",
    "Reference",
    "References",
    "Rendered",
    "SectionDocument",
    "build_references",
    "check_draft",
    "flag_findings",
    "flag_sources",
    "marker_ids",
    "normalise_markers",
    "render",
    "replace_invalid_citations",
    "sentences_with_markers",
    "trace_numbers",
    "write_files",
]
