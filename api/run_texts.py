"""Texts of finished runs: their files, sentences, references, evidence and the user's edits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ..citations.checks.support_findings import DOUBTFUL
from ..citations.export.evidence_report import (
    VERDICTS,
    Card,
    ReportImages,
    ReportView,
    SearchHit,
    commonness,
    packaged_template,
    report_links,
    report_view,
)
from ..citations.export.report_html import (
    EnclosedSentence,
    Link,
    doi_html,
    non_overlapping,
    reference_html,
    section_html,
    shown_text,
    zotero_html,
)
from ..citations.export.section_files import section_title, slug
from ..graph.session import Session
from ..runs.edited_text import answer_as_run, answer_as_shown, editable_text, edited_record, find_text
from ..runs.output_files import ResultFiles, UnknownFileError, report_images, save, stem_of, write_own_file
from ..runs.result_record import ResultRecord, StoredRecord, UsageRecord, add_status_warnings, public_record, stored
from ..runs.sentence_check import (
    CheckedSentence,
    CurrentText,
    NotEditedError,
    Rewriting,
    SentenceChangedError,
    TextSentence,
    check_sentence,
    compare_versions,
    current_text,
    keep_edit,
    load_editable,
    rewrite_sentence,
    sentence_records,
    unchecked_record,
    withdraw_edit,
)
from ..stores.home import Home
from ..stores.library import Library
from ..stores.run_register import RunRecord
from ..text.sentences import sentence_spans
from ..tools.paper_search import find_cited_figures
from .blocking import threaded
from .run_options import WordOptions


def file_versions(record: StoredRecord, home: Home) -> list[ResultFiles]:
    """Return a finished run's files, plus those of the user's version if sentences were edited; blocks."""
    versions = [ResultFiles.of(record, home)]
    if home.runs().edits(record["thread_id"]):
        versions.append(ResultFiles.of(record, home, f"{versions[0].stem}.edited"))
    return versions


@threaded
def render_file(
    record: StoredRecord,
    stem: str,
    name: str,
    session: Session,
    *,
    page_images: bool = False,
    word: WordOptions | None = None,
    file_of: Callable[[str], Path] = Path,
) -> bytes:
    """Render the file `name` of a record whose files are called `stem`; raises `UnknownFileError`.

    With `page_images` an evidence report has images of the cited PDF pages; `file_of` finds a paper's file. `word`
    sets how a Word or LibreOffice file cites.
    """
    images = ReportImages({}, {})
    if name.endswith(".evidence.html"):
        images, _ = report_images(record, session.library, pages=page_images, file_of=file_of)
    return ResultFiles.of(record, session.home, stem, images, (word or WordOptions()).document()).render(name)
