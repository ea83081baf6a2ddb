"""The user's version of a finished section or paper: its record with the edited sentences, from which files are made.

Nothing is asked of a model: edited sentences have the verdicts of their last check, or none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, cast

from ..citations.checks.draft_checks import check_draft
from ..citations.checks.support_findings import PairKey, support_findings
from ..citations.markers import sentences
from ..documents.sandbox import in_thread
from ..drafts.evidence_sources import sources_for
from ..drafts.finished_text import FinishedText
from ..drafts.page_record import PageOptions, RenderedPage, page_record, page_references, render_page
from ..drafts.paper_record import paper_record
from ..drafts.verdicts import relocate_verdicts, verdicts_from
from ..drafts.written_draft import WrittenDraft
from ..graph.session import Session
from ..plurals import counted
from ..roles.protocols import DecidingSpan, Draft, SectionBrief, Verdict
from ..stores.library import Library
from .editable_text import EditableSection, EditableText
from .provenance import provenance
from .result_record import StoredRecord, stored

_NEVER_JUDGED: Final = Verdict("unjudged")  # without a reason: the run had no judge


async def edited_record(text: EditableText, session: Session, csl: str | None = None) -> StoredRecord:
    """The record of the user's version, in its own or another CSL style; the stored one stays as it is."""
    return await in_thread(_build_record, text, session, csl)


def _build_record(text: EditableText, session: Session, csl: str | None) -> StoredRecord:
    original = stored(text.run.result or {})
    edits = text.edited_count
    by_hand = f"{counted(edits, 'sentence')} {'was' if edits == 1 else 'were'} edited by hand."
    notice = f"{original['report']['notice']} {by_hand}".strip()
    is_paper = "sections" in original
    options = PageOptions(
        original["cite_style"],
        original["csl"] if csl is None else csl,
        strict=original["strict"],
        quoted_only="writer" in session.extractive,
        notice=original["report"]["notice"] if is_paper else notice,
    )
    pages: list[RenderedPage] = []
    for section in text.sections:
        before = pages[-1].shown.numbering if pages else ()
        pages.append(
            render_page(_finish_section(section, text, session.library), session.library, options, before=before)
        )
    if is_paper:
        usage = [section.record["usage"] for section in text.sections]
        result = paper_record(pages, usage, original["evidence"], text.experiment.paper_concept.title, notice)
        result["sections"] = [{**section, "thread_id": text.run.thread_id} for section in result["sections"]]
    else:
        page = pages[0]
        references = page_references(page.papers, page.shown.numbering, options.style, options.csl)
        result = page_record(page, references)
    values = {"evidence": original["evidence"], "queries": original["report"]["searches"]}
    kept = {name: original["report"][name] for name in ("title", "library_version")}
    report = {**result["report"], **kept, **provenance(result, values, session.library)}
    return stored({**result, "thread_id": text.run.thread_id, "usage": original["usage"], "report": report})


def _finish_section(section: EditableSection, text: EditableText, library: Library) -> FinishedText:
    """The section with the edits in place, with what the checks find in it now."""
    sources, lost = sources_for(library, section.evidence)
    edited, spans = section.edited(section.edits)
    verdicts = relocate_verdicts(_section_verdicts(section), sources)
    draft = Draft(edited)
    found = check_draft(
        draft,
        sources,
        kind=section.kind,
        experiment=text.experiment,
        known_keys=[paper.key for paper in library.papers()],
    )
    searches = stored(text.run.result or {})["report"]["searches"]
    written = WrittenDraft(
        SectionBrief(section.kind, text.experiment, tuple(sources), (), 0, 0),
        draft,
        sources,
        verdicts,
        evidence=section.record["evidence"],
        queries=[item for item in searches if item["section"] == section.kind],
    )
    left = [*found, *support_findings(edited, verdicts)]
    return FinishedText(written, edited, lost, left=left, unmarked=list(spans.values()))


def _section_verdicts(section: EditableSection) -> dict[PairKey, Verdict]:
    """The verdicts on the sentences of the run as its record has them, and those of checked edits."""
    waiting = list(section.record["citations"])
    found: dict[PairKey, Verdict] = {}
    for sentence in sentences(section.record["with_markers"]):
        for identifier in sentence.ids:
            if waiting and waiting[0]["evidence_id"] == identifier:
                verdict = _verdict(cast(Mapping[str, Any], waiting.pop(0)))
                if verdict != _NEVER_JUDGED:
                    found[sentence.text, identifier] = verdict
    for edit in section.edits.values():
        found |= verdicts_from(edit.checked.get("verdicts", []))
    return found


def _verdict(citation: Mapping[str, Any]) -> Verdict:
    start, end = citation["decided_by"] or (None, None)
    spans = [DecidingSpan(span["chunk_id"], span["start"], span["end"]) for span in citation["decided_by_spans"]]
    return Verdict(citation["verdict"], citation["reason"], start, end, spans=tuple(spans))
