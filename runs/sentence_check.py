"""Rechecks an edited sentence of a finished run: citations, numbers, wording, and the judge's verdict.

The run's stored text never changes. Saved edits are stored beside it, and files can be made of either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from math import inf
from typing import Any, Final

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..citations.checks.draft_checks import check_draft
from ..citations.checks.fabricated_citations import NEEDED
from ..citations.checks.findings import for_reader
from ..citations.checks.number_tracing import trace_numbers
from ..citations.checks.support_findings import support_findings
from ..citations.citation_styles import render as render_text
from ..citations.html_escaping import inert
from ..citations.markers import sentences
from ..drafts.verdicts import VerdictRecord, judge_text, verdicts_from
from ..drafts.written_draft import sources_for
from ..experiment import Experiment
from ..graph.prompt_fitting import fitted
from ..graph.session import Session
from ..models.journal.records import spent_since
from ..roles.extractive.passage_details import blank_details
from ..roles.protocols import Draft, Source
from ..stores.home import Home
from ..stores.run_register import EditedSentence
from .edited_text import LONGEST_EDIT, EditableSection, EditableText, EditedSection, NotEditableError, editable_text

# Most important for a reader first.
_WORST_FIRST: Final = ("contradicted", "unsupported", "off-topic", "partly", "unjudged", "on-topic", "supported")

_INTERNAL: Final = frozenset({"verdicts", "evidence", "marked", "before"})  # how an edit is stored


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


def load_editable(home: Home, run_id: str) -> EditableText:
    """Load a finished run's text with the user's edits; blocks. Raises `UnknownRunError` and `NotEditableError`."""
    run = home.runs().get(run_id)
    return editable_text(run, home.runs().edits(run.thread_id))


def sentence_records(text: EditableText) -> list[TextSentence]:
    """All sentences, each with its span in its section, findings, verdict and edit; blocks."""
    found: list[TextSentence] = []
    for section in text.sections:
        sentences_shown = zip(section.citations(), section.shown(), section.places(), strict=True)
        for position, (own, words, (start, end)) in enumerate(sentences_shown, section.first):
            edit = section.edits.get(position)
            checked = {name: value for name, value in edit.checked.items() if name not in _INTERNAL} if edit else {}
            findings = [
                {"rule": finding["rule"], "severity": finding["severity"], "message": inert(finding["message"])}
                for finding in section.record["findings"]
                if finding["start"] is not None and finding["end"] is not None
                if finding["start"] < end and finding["end"] > start
            ]
            if not findings and NEEDED in words:  # the record's finding of a replaced citation has no span
                message = "What was cited here is not among the evidence and was taken out."
                findings = [{"rule": "foreign-citation", "severity": "error", "message": message}]
            found.append(
                {
                    "position": position,
                    "section": section.kind,
                    "text": inert(words),
                    "start": start,
                    "end": end,
                    "verdict": _worst([citation["verdict"] for citation in own]),
                    "keys": list(dict.fromkeys(citation["key"] for citation in own)),
                    "findings": findings,
                    "edited": None
                    if edit is None
                    else {"text": inert(edit.text), "updated_at": edit.updated_at, "checked": checked or None},
                }
            )
    return found


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
    edits = {**section.edits, position: EditedSentence(position, words, updated_at=inf)}
    whole = await asyncio.to_thread(section.edited, edits)
    sources, lost = await asyncio.to_thread(sources_for, session.library, section.evidence)
    run, (first, last) = text.run.thread_id, whole.spans[position]
    before = await session.usage(run)
    edited = {item.text for item in sentences(whole.text) if item.start < last and item.end > first}

    async def judge() -> list[VerdictRecord]:
        return await judge_text((await session.roles_of(run)).judge, whole.text, sources, {}, only=edited)

    with session.run(run, fresh=text.run.fresh):
        verdicts = await fitted(session, run, judge)
    keys = [paper.key for paper in await asyncio.to_thread(session.library.papers)]
    record = await asyncio.to_thread(_checked, section, text.experiment, whole, position, sources, keys, verdicts)
    usage = spent_since(before, await session.usage(run))
    return SentenceCheck({**record, "warnings": lost, "usage": usage}, verdicts)


def _checked(
    section: EditableSection,
    experiment: Experiment,
    whole: EditedSection,
    position: int,
    sources: Sequence[Source],
    keys: Sequence[str],
    verdicts: list[VerdictRecord],
) -> CheckedSentence:
    text, (first, last), known = whole.text, whole.spans[position], verdicts_from(verdicts)
    drafted = check_draft(Draft(text), sources, kind=section.kind, experiment=experiment, known_keys=keys)
    found = [
        item
        for item in (*drafted, *support_findings(text, known))
        if item.span is not None and item.span[0] < last and item.span[1] > first
    ]
    style, numbering = section.record["cite_style"], section.record["numbering"]
    shown = render_text(text, sources, style, verdicts=known, before=numbering, typed=whole.typed)
    start, end = shown.map_position(first), shown.map_position(last)
    numbers = [
        {**trace.as_dict(text), "start": begin - start, "end": stop - start}
        for trace in trace_numbers(blank_details(text), sources, experiment)
        if trace.start < last and trace.end > first
        for begin, stop in [shown.span(trace.start, trace.end)]
    ]
    known_ids = {citation.evidence_id for citation in shown.citations}
    waiting = iter(shown.citations)
    citations = [
        citation
        for sentence in shown.sentences
        for citation in list(islice(waiting, sum(identifier in known_ids for identifier in sentence.ids)))
        if sentence.start < end and sentence.end > start
    ]
    evidence = {source.evidence.id: source.evidence for source in sources}
    findings = [
        {
            **finding.as_dict(),
            "message": inert(for_reader(finding.message, evidence)),
            "start": max(begin, start) - start,
            "end": min(stop, end) - start,
        }
        for finding in found
        for begin, stop in [shown.span(*finding.span) if finding.span else (start, end)]
    ]
    return {
        **unchecked(position),
        "section": section.kind,
        "text": inert(shown.text[start:end]),
        "verdict": _worst([citation.verdict for citation in citations]),
        "ok": not any(finding.severity != "note" for finding in found),
        "citations": [asdict(citation) for citation in citations],
        "findings": findings,
        "numbers": numbers,
    }


def keep_edit(home: Home, run_id: str, position: int, words: str, check: SentenceCheck | None = None) -> EditedSentence:
    """Store an edit beside the original text; blocks. Raises as `load_editable` does."""
    text = load_editable(home, run_id)
    earlier = text.section_at(position).edits.get(position)
    checked: dict[str, Any] = {} if check is None else {**check.record, "verdicts": check.verdicts}
    if earlier and earlier.checked.get("evidence"):  # what an update added may be cited further
        checked["evidence"] = earlier.checked["evidence"]
    edit = EditedSentence(position, _plain(words), checked)
    home.runs().edit(text.run.thread_id, edit)
    return edit


def withdraw_edit(home: Home, run_id: str, position: int) -> None:
    """Restore the original sentence; blocks. Raises `NotEditedError` if it was not edited."""
    run = home.runs().get(run_id)
    if not home.runs().withdraw_edit(run.thread_id, position):
        raise NotEditedError(f"The sentence at {position} was not edited.")


def _worst(labels: Sequence[str]) -> str:
    return next((label for label in _WORST_FIRST if label in labels), "uncited")


def _plain(words: str) -> str:
    """Join into one line; raises `NotEditableError` if too long."""
    plain = " ".join(words.split())
    if len(plain) > LONGEST_EDIT:
        raise NotEditableError(f"text: has {len(plain):,} characters; a sentence has at most {LONGEST_EDIT:,}.")
    return plain
