"""Renders finished texts as plain text; imports only what a run has already imported."""

from ..citations.html_escaping import inert as inert
from ..citations.references import numbered_list as numbered_list
from ..drafts.page_record import (
    all_unreadable as all_unreadable,
    coverage_line as coverage_line,
    coverage_warnings as coverage_warnings,
)
