"""Formats results for display: safe text, one-line references and coverage, and evidence views."""

from ..citations.checks.support_findings import DOUBTFUL as DOUBTFUL
from ..citations.export.evidence_report import (
    VERDICTS as VERDICTS,
    Card as Card,
    ReportView as ReportView,
    SearchHit as SearchHit,
    commonness as commonness,
    packaged_template as packaged_template,
    report_links as report_links,
    report_view as report_view,
)
from ..citations.export.report_html import (
    EnclosedSentence as EnclosedSentence,
    Link as Link,
    doi_html as doi_html,
    non_overlapping as non_overlapping,
    reference_html as reference_html,
    section_html as section_html,
    shown_text as shown_text,
    zotero_html as zotero_html,
)
from ..citations.export.section_files import section_title as section_title
from ..citations.html_escaping import inert as inert
from ..citations.references import numbered_list as numbered_list
from ..drafts.completeness import (
    all_unreadable as all_unreadable,
    coverage_line as coverage_line,
    coverage_warnings as coverage_warnings,
)
from ..runs.result_record import ResultRecord as ResultRecord, UsageRecord as UsageRecord
from ..stores.library import Library as Library
from ..tools.paper_records import find_cited_figures as find_cited_figures
