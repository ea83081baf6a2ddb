"""Markers, checks, rendering, references, export: what makes a draft's citations true and traceable."""

from citeloom.citations.checks import check_draft, neutralise
from citeloom.citations.export import SectionDocument, write_files
from citeloom.citations.findings import Finding
from citeloom.citations.flagged import flag_findings, flag_sources
from citeloom.citations.markers import CitedSentence, marker_ids, normalise_markers, sentences_with_markers
from citeloom.citations.numbers import NumberTrace, trace_numbers
from citeloom.citations.references import Reference, References, build_references
from citeloom.citations.styles import Citation, Rendered, render

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
    "neutralise",
    "normalise_markers",
    "render",
    "sentences_with_markers",
    "trace_numbers",
    "write_files",
]
