"""The user's version of a finished section or paper: its record with the edited sentences, from which files are made.

Nothing is asked of a model: edited sentences have the verdicts of their last check, or none.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..citations.checks.draft_checks import check_draft
from ..citations.checks.support_findings import PairKey, support_findings
from ..citations.export.whole_paper import whole_paper
from ..citations.markers import sentences
from ..citations.references import References
from ..graph.completeness import coverage_in_all
from ..graph.finished_text import FinishedText
from ..graph.page_record import RenderedPage, layout_page, page_record, references_of
from ..graph.role_inputs import sources_for
from ..graph.session import Session
from ..graph.verdicts import still_placed, verdicts_of
from ..plurals import counted
from ..roles.protocols import DecidingSpan, Draft, SectionBrief, Verdict
from .editable_text import EditableSection, EditableText
from .provenance import provenance
from .result_record import StoredRecord, stored

_NEVER_JUDGED = Verdict("unjudged")  # without a reason: the run had no judge


async def edited_record(text: EditableText, session: Session, csl: str | None = None) -> StoredRecord:
    """The record of the user's version, in its own or another CSL style; the stored one stays as it is."""
    original = stored(text.run.result or {})
    style = original["csl"] if csl is None else csl
    session = session.with_settings(cite_style=original["cite_style"], csl=style, strict=original["strict"])
    pages = await _pages(text, session)
    cited = {paper.key: paper for page in pages for paper in page.papers}
    numbering = pages[-1].shown.numbering
    papers = [cited[key] for key in numbering if key in cited]
    references = await references_of(papers, numbering, original["cite_style"], session)
    edits = await asyncio.to_thread(lambda: text.edited_count)
    by_hand = f"{counted(edits, 'sentence')} {'was' if edits == 1 else 'were'} edited by hand."
    notice = f"{original['report']['notice']} {by_hand}".strip()
    if "sections" not in original:
        result = {**page_record(pages[0], references, session, notice), "usage": original["usage"]}
    else:
        result = _paper(text, pages, References(references.entries), session, original, notice)
    values = {"evidence": original["evidence"], "queries": original["report"]["searches"]}
    sources = await asyncio.to_thread(provenance, result, values, session.library)
    kept = {name: original["report"][name] for name in ("title", "library_version")}
    report = {**result["report"], **kept, **sources}
    return stored({**result, "thread_id": text.run.thread_id, "usage": original["usage"], "report": report})


def _paper(
    text: EditableText,
    pages: Sequence[RenderedPage],
    references: References,
    session: Session,
    original: StoredRecord,
    notice: str,
) -> dict[str, Any]:
    sections = [
        {
            **page_record(page, references, session, original["report"]["notice"]),
            "usage": section.record["usage"],
            "thread_id": text.run.thread_id,
        }
        for page, section in zip(pages, text.sections, strict=True)
    ]
    papers = [paper for page in pages for paper in page.papers]
    title = text.experiment.paper_concept.title
    whole = whole_paper(title, sections, original["evidence"], papers, references, notice)
    return {**whole, "coverage": coverage_in_all(section["coverage"] for section in sections)}


async def _pages(text: EditableText, session: Session) -> list[RenderedPage]:
    """The sections laid out in order; citation numbers follow the order of the text."""
    pages: list[RenderedPage] = []
    numbering: tuple[str, ...] = ()
    for section in text.sections:
        final = await _finished(section, text, session)
        pages.append(await layout_page(final, session, read=(), before=numbering))
        numbering = pages[-1].shown.numbering
    return pages


async def _finished(section: EditableSection, text: EditableText, session: Session) -> FinishedText:
    """The section with the edits in place, with what the checks find in it now."""
    sources, lost = await asyncio.to_thread(sources_for, session.library, section.evidence)
    edited, spans = await asyncio.to_thread(section.edited, section.edits)
    verdicts = still_placed(_verdicts(section), sources)
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    experiment = text.experiment
    brief = SectionBrief(section.kind, experiment, tuple(sources), (), 0, 0)
    draft = Draft(edited)
    found = await asyncio.to_thread(
        check_draft, draft, sources, kind=section.kind, experiment=experiment, known_keys=keys
    )
    searches = [{**search, "section": section.kind} for search in _searches(section, text)]
    state = {
        "section": section.kind,
        "experiment": text.run.request["experiment"],
        "evidence": section.record["evidence"],
        "queries": searches,
        "warnings": [],
    }
    left = [*found, *support_findings(edited, verdicts)]
    return FinishedText(
        cast(Any, state),
        brief,
        draft,
        sources,
        verdicts,
        lost=lost,
        text=edited,
        left=left,
        unmarked=list(spans.values()),
    )


def _searches(section: EditableSection, text: EditableText) -> list[Mapping[str, Any]]:
    """The searches that were made for the section."""
    report = stored(text.run.result or {})["report"]
    return [item for item in report["searches"] if item.get("section", section.kind) == section.kind]


def _verdicts(section: EditableSection) -> dict[PairKey, Verdict]:
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
        found |= verdicts_of({"verdicts": edit.checked.get("verdicts", [])})
    return found


def _verdict(citation: Mapping[str, Any]) -> Verdict:
    start, end = citation.get("decided_by") or (None, None)
    spans = [
        DecidingSpan(span["chunk_id"], span["start"], span["end"]) for span in citation.get("decided_by_spans", ())
    ]
    return Verdict(citation["verdict"], citation["reason"], start, end, spans=tuple(spans))
