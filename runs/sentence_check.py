"""Rechecks an edited sentence of a finished run: citations, numbers, wording, and the judge's verdict.

The run's stored text never changes. Saved edits are stored beside it, and files can be made of either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..citations.checks.draft_checks import check_draft
from ..citations.checks.fabricated_citations import NEEDED
from ..citations.checks.findings import Finding, for_reader
from ..citations.checks.number_tracing import trace_numbers
from ..citations.checks.support_findings import support_findings
from ..citations.citation_styles import Citation, Rendered, render as render_text
from ..citations.html_escaping import inert
from ..citations.markers import sentences
from ..drafts.verdicts import VerdictRecord, judge_text, verdicts_from
from ..drafts.written_draft import sources_for
from ..graph.prompt_fitting import fitted
from ..graph.session import Session
from ..models.journal.records import spent_since
from ..roles.extractive.passage_details import blank_details
from ..roles.protocols import Draft, Source
from ..stores.backends import backend_of
from ..stores.home import Home
from ..stores.run_register import EditedSentence
from .edited_text import LONGEST_EDIT, EditableSection, EditableText, NotEditableError, editable_text
from .result_record import StoredRecord

# Most important for a reader first.
_WORST_FIRST: Final = ("contradicted", "unsupported", "off-topic", "partly", "unjudged", "on-topic", "supported")


class NotEditedError(NotEditableError):
    """The sentence has no edit to withdraw."""


class CheckedSentence(TypedDict):
    """What the check of an edited sentence found; spans of findings and numbers are in `text`, as readers see it.

    `verdict` is the worst of its citations, "uncited" without any, or "removed"; null if it was not checked. `ok` if
    nothing is left to fix.
    """

    position: int
    section: str
    text: str
    verdict: str | None
    ok: bool
    citations: list[dict[str, Any]]
    findings: list[dict[str, Any]]
    numbers: list[dict[str, Any]]
    warnings: list[str]
    usage: dict[str, Any]


class EditOfSentence(TypedDict):
    """The user's wording of a sentence; `checked` is the result of its last check, null if it was never checked."""

    text: str
    updated_at: float
    checked: dict[str, Any] | None


class TextSentence(TypedDict):
    """A sentence; `start` and `end` are its place in the text of its section."""

    position: int
    section: str
    text: str
    start: int
    end: int
    verdict: str
    keys: list[str]
    findings: list[dict[str, str]]
    edited: EditOfSentence | None


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """A check's result, and the verdicts that are stored with an edit."""

    record: CheckedSentence
    verdicts: list[VerdictRecord] = field(default_factory=list)


def unchecked(position: int) -> CheckedSentence:
    """The record of a sentence that was not checked."""
    return {
        "position": position,
        "section": "",
        "text": "",
        "verdict": None,
        "ok": False,
        "citations": [],
        "findings": [],
        "numbers": [],
        "warnings": [],
        "usage": {},
    }


@dataclass(frozen=True, slots=True)
class _Checked:
    """A section's edited text, the edit's span in it, the sources, and the sentences whose citation the user typed."""

    text: str
    span: tuple[int, int]
    sources: Sequence[Source]
    typed: frozenset[str]

    def touches(self, span: tuple[int, int] | None) -> bool:
        """Whether a span of the text overlaps the edit."""
        return span is not None and span[0] < self.span[1] and span[1] > self.span[0]


def load_editable(home: Home, run_id: str) -> EditableText:
    """Load a finished run's text with the user's edits; blocks. Raises `UnknownRunError` and `NotEditableError`."""
    backend = backend_of(home)
    run = backend.runs().get(run_id)
    return editable_text(run, backend.edited_sentences().of(run.thread_id))


def sentence_records(text: EditableText) -> list[TextSentence]:
    """All sentences, each with its span in its section, findings, verdict and edit; blocks."""
    return [record for section in text.sections for record in _sentence_records(section)]


async def check_sentence(run_id: str, position: int, words: str, session: Session) -> SentenceCheck:
    """Check the user's new wording for the sentence at `position`, with all other edits applied.

    The judge's answers go to the journal and count against the run's budget. Raises
    `NotEditableError` and `PausedError`.
    """
    text = await asyncio.to_thread(load_editable, session.home, run_id)
    section = text.section_at(position)
    words = _plain(words)
    if not words:
        return SentenceCheck({**unchecked(position), "section": section.kind, "verdict": "removed", "ok": True})
    edits = {**section.edits, position: EditedSentence(position, words)}
    whole = await asyncio.to_thread(section.edited, edits)
    sources, lost = await asyncio.to_thread(sources_for, session.library, section.evidence)
    seen = _Checked(whole.text, whole.spans[position], sources, whole.typed)
    run = text.run.thread_id
    before = await session.usage(run)
    edited = {item.text for item in sentences(whole.text) if seen.touches((item.start, item.end))}

    async def judge() -> list[VerdictRecord]:
        return await judge_text((await session.roles_of(run)).judge, whole.text, sources, {}, only=edited)

    with session.run(run, fresh=text.run.fresh):
        verdicts = await fitted(session, run, judge)
    usage = spent_since(before, await session.usage(run))
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    return await asyncio.to_thread(_result, position, section, text, seen, keys, verdicts, lost, usage)


def keep_edit(home: Home, run_id: str, position: int, words: str, check: SentenceCheck | None = None) -> EditedSentence:
    """Store an edit beside the original text; blocks. Raises as `load_editable` does."""
    text = load_editable(home, run_id)
    text.section_at(position)
    checked = {} if check is None else {**check.record, "verdicts": check.verdicts}
    edit = EditedSentence(position, _plain(words), checked)
    backend_of(home).edited_sentences().keep(text.run.thread_id, edit)
    return edit


def withdraw_edit(home: Home, run_id: str, position: int) -> None:
    """Restore the original sentence; blocks. Raises `NotEditedError` if it was not edited."""
    backend = backend_of(home)
    run = backend.runs().get(run_id)
    if not backend.edited_sentences().withdraw(run.thread_id, position):
        raise NotEditedError(f"The sentence at {position} was not edited.")


def _result(
    position: int,
    section: EditableSection,
    text: EditableText,
    seen: _Checked,
    keys: Sequence[str],
    verdicts: list[VerdictRecord],
    lost: list[str],
    usage: dict[str, Any],
) -> SentenceCheck:
    known = verdicts_from(verdicts)
    drafted = check_draft(
        Draft(seen.text), seen.sources, kind=section.kind, experiment=text.experiment, known_keys=keys
    )
    found = [item for item in (*drafted, *support_findings(seen.text, known)) if seen.touches(item.span)]
    traces = [
        trace
        for trace in trace_numbers(blank_details(seen.text), seen.sources, text.experiment)
        if seen.touches((trace.start, trace.end))
    ]
    shown = render_text(
        seen.text,
        seen.sources,
        section.record["cite_style"],
        verdicts=known,
        before=section.record["numbering"],
        typed=seen.typed,
    )
    start, end = shown.moved(seen.span[0]), shown.moved(seen.span[1])
    numbers = [
        {**trace.as_dict(seen.text), "start": first - start, "end": last - start}
        for trace in traces
        for first, last in [shown.span(trace.start, trace.end)]
    ]
    citations = _citations_between(shown, start, end)
    record: CheckedSentence = {
        "position": position,
        "section": section.kind,
        "text": inert(shown.text[start:end]),
        "verdict": _worst([citation.verdict for citation in citations]),
        "ok": not any(finding.severity != "note" for finding in found),
        "citations": [citation.as_dict() for citation in citations],
        "findings": [_finding(finding, seen.sources, shown, start, end) for finding in found],
        "numbers": numbers,
        "warnings": lost,
        "usage": usage,
    }
    return SentenceCheck(record, verdicts)


def _citations_between(shown: Rendered, start: int, end: int) -> list[Citation]:
    """Citations of the sentences overlapping a span of a rendered text."""
    known = {citation.evidence_id for citation in shown.citations}
    found: list[Citation] = []
    done = 0
    for sentence in shown.sentences:
        count = sum(identifier in known for identifier in sentence.ids)
        if sentence.start < end and sentence.end > start:
            found += shown.citations[done : done + count]
        done += count
    return found


def _finding(finding: Finding, sources: Sequence[Source], shown: Rendered, start: int, end: int) -> dict[str, Any]:
    message = for_reader(finding.message, {source.evidence.id: source.evidence for source in sources})
    first, last = shown.span(*finding.span) if finding.span else (start, end)
    place = {"start": max(first, start) - start, "end": min(last, end) - start}
    return {**finding.as_dict(), "message": inert(message), **place}


def _worst(labels: Sequence[str]) -> str:
    return next((label for label in _WORST_FIRST if label in labels), "uncited")


def _sentence_records(section: EditableSection) -> list[TextSentence]:
    record = section.record
    shown, places = section.shown(), section.places()
    found: list[TextSentence] = []
    for number, (own, words, (start, end)) in enumerate(zip(section.citations(), shown, places, strict=True)):
        edit = section.edits.get(section.first + number)
        found.append(
            {
                "position": section.first + number,
                "section": section.kind,
                "text": inert(words),
                "start": start,
                "end": end,
                "verdict": _worst([citation["verdict"] for citation in own]),
                "keys": list(dict.fromkeys(citation["key"] for citation in own)),
                "findings": _findings_between(record, start, end) or _replaced_in(words),
                "edited": None if edit is None else _edit_record(edit),
            }
        )
    return found


def _findings_between(record: StoredRecord, start: int, end: int) -> list[dict[str, str]]:
    return [
        {"rule": finding["rule"], "severity": finding["severity"], "message": inert(finding["message"])}
        for finding in record["findings"]
        if finding["start"] is not None
        and finding["end"] is not None
        and finding["start"] < end
        and finding["end"] > start
    ]


def _replaced_in(words: str) -> list[dict[str, str]]:
    """The finding for a sentence with a replaced citation, since the record's finding has no span."""
    if NEEDED not in words:
        return []
    message = "What was cited here is not among the evidence and was taken out."
    return [{"rule": "foreign-citation", "severity": "error", "message": message}]


def _edit_record(edit: EditedSentence) -> EditOfSentence:
    checked = {name: value for name, value in edit.checked.items() if name != "verdicts"}
    return {"text": inert(edit.text), "updated_at": edit.updated_at, "checked": checked or None}


def _plain(words: str) -> str:
    """Join into one line; raises `NotEditableError` if too long."""
    plain = " ".join(words.split())
    if len(plain) > LONGEST_EDIT:
        raise NotEditableError(f"text: has {len(plain):,} characters; a sentence has at most {LONGEST_EDIT:,}.")
    return plain
