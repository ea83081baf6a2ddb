"""Formats results for display: safe text, one-line references and coverage, and evidence views."""

from ..citations.export.evidence_report import VERDICTS, commonness, links_of
from ..citations.export.report_html import (
    Link,
    doi_html,
    reference_html,
    section_html,
    shown_text,
    standing_apart,
    zotero_html,
)
from ..citations.export.report_model import DOUBTFUL, Card, ReportView, SearchHit, report_view
from ..citations.export.section_files import section_title
from ..citations.html_escaping import inert
from ..citations.references import numbered_list
from ..drafts.completeness import all_unreadable, attempts, coverage_line, coverage_warnings
from ..runs.result_record import ResultRecord, UsageRecord
from ..stores.library import Library
from ..tools.paper_records import find_cited_figures

__all__ = [
    "DOUBTFUL",
    "VERDICTS",
    "Card",
    "Library",
    "Link",
    "ReportView",
    "ResultRecord",
    "SearchHit",
    "UsageRecord",
    "all_unreadable",
    "attempts",
    "commonness",
    "coverage_line",
    "coverage_warnings",
    "doi_html",
    "find_cited_figures",
    "inert",
    "links_of",
    "numbered_list",
    "reference_html",
    "report_view",
    "section_html",
    "section_title",
    "shown_text",
    "standing_apart",
    "zotero_html",
]
