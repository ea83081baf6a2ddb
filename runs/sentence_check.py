"""Rechecks an edited sentence of a finished run: citations, numbers, wording, and the judge's verdict.

The run's stored text never changes: edits are stored beside it, and files can be made of either version.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from difflib import SequenceMatcher
from itertools import groupby, islice, zip_longest
from math import inf
from operator import itemgetter
from typing import Any, Final, Literal, cast

from typing_extensions import TypedDict  # as in `graph/state.py`: pydantic reads these types on 3.11 too

from ..citations.checks.draft_checks import check_draft
from ..citations.checks.fabricated_citations import NEEDED
from ..citations.checks.findings import for_reader
from ..citations.checks.number_tracing import trace_numbers
from ..citations.checks.support_findings import support_findings
from ..citations.citation_styles import render as render_text
from ..citations.html_escaping import inert
from ..citations.markers import marker_ids, normalise_markers, sentences
from ..claims.claim_records import PassageRecord
from ..documents import Evidence
from ..documents.sandbox import in_thread
from ..drafts.sentence_edits import sources_to_rewrite
from ..drafts.written_draft import judge_text, sources_for, verdicts_from
from ..experiment import Experiment, parse_experiment
from ..graph.prompt_fitting import run_fitted
from ..graph.session import Session
from ..models.journal.records import spent_since
from ..roles.extractive.passage_details import blank_details
from ..roles.protocols import Brief, Draft, FailingSentence, SectionBrief, Source
from ..stores.home import Home
from ..stores.library import Library
from ..stores.run_register import EditedSentence
from .edited_text import (
    LONGEST_EDIT,
    EditableSection,
    EditableText,
    EditedSection,
    NotEditableError,
    editable_text,
    edited_record,
    find_text,
    quote_findings,
)
from .result_record import StoredRecord

Rewriting = Literal["shorter", "careful", "source"]
REWRITINGS: Final[Mapping[Rewriting, str]] = {
    "shorter": "It is too long: say the same in fewer words, with its citations.",
    "careful": "It claims too much: say it more carefully, no more than its passages bear out, with its citations.",
    "source": "It is to rest on another source: cite one of these passages that says it, and say what it says.",
}
# The most important for a reader first.
_WORST_FIRST: Final = ("contradicted", "unsupported", "off-topic", "partly", "unjudged", "on-topic", "supported")

_ENDED: Final = re.compile(r"[.!?:\u2026][\"'\u201d\u2019)\]*_]*$")
_INTERNAL: Final = frozenset({"verdicts", "evidence", "marked", "placed", "before"})  # how an edit is stored


class NotEditedError(NotEditableError):
    """The sentence has no edit to withdraw."""


class SentenceChangedError(NotEditableError):
    """The edited sentence was changed meanwhile; its words are now `now`."""

    def __init__(self, position: int, now: str) -> None:
        said = f"now it is “{now}”" if now else "it was removed"
        super().__init__(
            f"Sentence {position + 1} was changed meanwhile: {said}.", help="Keep your words anyway, or go back."
        )
        self.now = now


class CheckedSentence(TypedDict):
    """The check of an edited sentence; spans of findings and numbers are offsets in `text`, as readers see it.

    `verdict` is the worst of its citations, "uncited" or "removed"; null if it was not checked. `ok` means that nothing
    is left to fix.
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
    """A sentence; `start` and `end` are its span in the section's text."""

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
class CurrentText:
    """A run's text with all edits of the user; `now` holds the user's version as a separate text.

    `sentences` replace the run's sentences at their positions, with spans in the whole text; `edited` are the
    positions whose sentences differ from the run's.
    """

    record: StoredRecord
    text: EditableText
    now: EditableText
    sentences: list[TextSentence]
    edited: frozenset[int]

    def words_at(self, position: int) -> str:
        """Return the words that replace the run's sentence at a position; empty if it was removed."""
        return " ".join(item["text"] for item in self.sentences if item["position"] == position)

    def add_markers(self, words: str, position: int) -> dict[str, Any]:
        """Put markers into words for a sentence, as an edit stores them, and tell whether they cite (`placed`)."""
        section = self.text.section_at(position)
        now = self.now.sections[self.text.sections.index(section)]
        places = section.positions(now)
        whose, place = (now, places.index(position)) if position in places else (section, position - section.first)
        marked, typed = whose.add_markers(words, place, sure=True, count=max(1, places.count(position)))
        return {"marked": marked, "placed": bool(typed)}


def current_text(text: EditableText, session: Session) -> CurrentText:
    """Return a finished text with the user's edits, as readers see it; blocks."""
    record = edited_record(text, session)
    now = text.as_now(record)
    pairs = zip(text.sections, now.sections, strict=True)
    places = [place for section, own in pairs for place in section.positions(own)]
    bodies: dict[str, str] = {section.kind: section.record["text"] for section in now.sections}
    edited = frozenset(
        position
        for section in text.sections
        for position, sentence in enumerate(section.sentences, section.first)
        if text.edits and section.current(position) != sentence.text
    )
    found: list[TextSentence] = []
    end = 0
    for position, group in groupby(zip(places, sentence_records(now), strict=True), key=itemgetter(0)):
        items = [item for _, item in group]
        words = bodies[items[0]["section"]][items[0]["start"] : items[-1]["end"]]
        start = record["text"].find(words, end)
        if position is None or start < 0:
            continue
        end = start + len(words)
        said, findings = " ".join(item["text"] for item in items), [one for item in items for one in item["findings"]]
        own: Any = {"position": position, "text": said, "start": start, "end": end, "findings": findings}
        found.append({**items[0], **own})
    return CurrentText(record, text, now, found, edited)


Words = list[tuple[str, bool]]  # pieces of text, each with whether it differs


def compare_versions(first: EditableText, second: EditableText) -> Iterator[tuple[int, Words, Words]]:
    """Compare two versions by sentence: its index in the first version (-1 if absent), and its words in both."""
    one, other = ([inert(words) for part in each.sections for words in part.as_shown()] for each in (first, second))
    for _, start, end, begin, stop in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        for place, pair in enumerate(zip_longest(one[start:end], other[begin:stop], fillvalue=""), start):
            old, new = map(str.split, pair)
            changes = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            before = [(" ".join(old[at:to]), kind != "equal") for kind, at, to, _, _ in changes]
            after = [(" ".join(new[at:to]), kind != "equal") for kind, _, _, at, to in changes]
            yield place if place < end else -1, before, after


@dataclass(frozen=True, slots=True)
class SentenceCheck:
    """A check's result, with what an edit stores: verdicts, markers, and the time of the edit that it replaces."""

    record: CheckedSentence
    words: str = ""
    verdicts: list[dict[str, Any]] = field(default_factory=list)
    marked: dict[str, Any] = field(default_factory=dict)
    before: float | None = None


def unchecked_record(position: int) -> CheckedSentence:
    """Return the record of a sentence that was not checked."""
    found: dict[str, Any] = {name: [] for name in ("citations", "findings", "numbers", "warnings")}
    own = {"position": position, "section": "", "text": "", "verdict": None, "ok": False}
    return cast(CheckedSentence, {**own, **found, "usage": {}})


def load_editable(home: Home, run_id: str) -> EditableText:
    """Load the text of a finished run, or an answer `CONVERSATION.NUMBER`, with the user's edits; blocks.

    Raises what `find_text` raises, and `NotEditableError`.
    """
    run = find_text(home, run_id)
    return editable_text(run, home.runs().edits(run.thread_id))


def sentence_records(text: EditableText) -> list[TextSentence]:
    """Return all sentences, each with its span in the section, findings, verdict and edit; blocks."""
    found: list[TextSentence] = []
    for section in text.sections:
        sentences_shown = zip(section.citations(), section.as_shown(), section.places(), strict=True)
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
                message = "The work cited here is not among the evidence, so the citation was removed."
                findings = [{"rule": "foreign-citation", "severity": "error", "message": message}]
            found.append(
                {
                    "position": position,
                    "section": section.kind,
                    "text": inert(words),
                    "start": start,
                    "end": end,
                    "verdict": _worst_verdict([citation["verdict"] for citation in own]),
                    "keys": list(dict.fromkeys(citation["key"] for citation in own)),
                    "findings": findings,
                    "edited": None
                    if edit is None
                    else {"text": inert(edit.text), "updated_at": edit.updated_at, "checked": checked or None},
                }
            )
    return found


async def check_sentence(
    run_id: str, position: int, words: str, session: Session, *, before: str | None = None, judged: bool = True
) -> SentenceCheck:
    """Check the user's new wording for the sentence at `position`, with all other edits applied.

    The judge's answers go to the journal and count against the run's budget; without `judged` nothing is checked. If
    `before` has the words being replaced in the user's version, citation numbers are that version's, else the run's.
    Raises `NotEditableError`, `SentenceChangedError` if the version now has other words, and `PausedError`.
    """
    text = await asyncio.to_thread(load_editable, session.home, run_id)
    section = text.section_at(position)
    words = _plain(words)
    marked: dict[str, Any] = {}
    seen = None
    if before is not None:
        current = await in_thread(current_text, text, session)
        now = current.words_at(position)
        if [*filter(str.isprintable, now)] != [*filter(str.isprintable, before)]:  # pages omit direction marks
            raise SentenceChangedError(position, now)
        if words and _ENDED.search(before) and not _ENDED.search(words):
            words += "."  # else it would merge with the next sentence
        marked = await asyncio.to_thread(current.add_markers, words, position)
        seen = section.edits[position].updated_at if position in section.edits else 0.0
    if not words or not judged:
        removed = {"verdict": "removed", "ok": True} if not words else {}
        blank = cast(CheckedSentence, {**unchecked_record(position), "section": section.kind, **removed})
        return SentenceCheck({**blank, "text": inert(words)}, words, [], marked, seen)
    edits = {**section.edits, position: EditedSentence(position, words, marked, inf)}
    whole = await asyncio.to_thread(section.apply, edits)
    sources, lost = await asyncio.to_thread(sources_for, session.library, section.evidence)
    run, (first, last) = text.payer, whole.spans[position]
    spent = await session.usage(run)
    edited = {item.text for item in sentences(whole.text) if item.start < last and item.end > first}

    async def judge() -> list[dict[str, Any]]:
        return await judge_text((await session.roles_of(run)).judge, whole.text, sources, {}, only=edited)

    with session.run(run, fresh=text.run.fresh):
        verdicts = await run_fitted(session, run, judge)
    library = session.library
    record = await asyncio.to_thread(
        _check_record, section, text.experiment, whole, position, sources, library, verdicts
    )
    usage = spent_since(spent, await session.usage(run))
    return SentenceCheck({**record, "warnings": lost, "usage": usage}, words, verdicts, marked, seen)


def _check_record(
    section: EditableSection,
    experiment: Experiment,
    whole: EditedSection,
    position: int,
    sources: Sequence[Source],
    library: Library,
    verdicts: list[dict[str, Any]],
) -> CheckedSentence:
    text, (first, last), known = whole.text, whole.spans[position], verdicts_from(verdicts)
    keys = [paper.key for paper in library.papers()]
    drafted = check_draft(Draft(text), sources, kind=section.kind, experiment=experiment, known_keys=keys)
    found = [
        item
        for item in (*drafted, *support_findings(text, known), *quote_findings(whole, sources, library))
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
        **unchecked_record(position),
        "section": section.kind,
        "text": inert(shown.text[start:end]),
        "verdict": _worst_verdict([citation.verdict for citation in citations]),
        "ok": not any(finding.severity != "note" for finding in found),
        "citations": [asdict(citation) for citation in citations],
        "findings": findings,
        "numbers": numbers,
    }


async def rewrite_sentence(run_id: str, position: int, words: str, how: Rewriting, session: Session) -> str:
    """Have the writer reword a sentence of the user's version; stores nothing.

    Raises `NotEditableError` without a chat model or another source, and `PausedError`.
    """
    text = await asyncio.to_thread(load_editable, session.home, run_id)
    current = await in_thread(current_text, text, session)
    marked = (await asyncio.to_thread(current.add_markers, _plain(words), position))["marked"]
    at = text.sections.index(text.section_at(position))
    section = current.now.sections[at]
    sources, _ = await asyncio.to_thread(sources_for, session.library, section.evidence)
    offered = sources_to_rewrite(marked, sources, others=how == "source")
    if how == "source" and not offered:
        raise NotEditableError("The run found no other source for this sentence.", help="Cite a paper of the library.")
    failing = FailingSentence(marked, (REWRITINGS[how],), sources=tuple(offered))
    answer = await _rewrite(text.payer, text.build_brief(section, sources), failing, session, fresh=text.run.fresh)
    known, style = section.record["numbering"], section.record["cite_style"]
    keys = {source.evidence.key for source in sources if source.evidence.id in marker_ids(answer)}
    return inert(render_text(answer, sources, style if keys <= {*known} else "key", before=known).text)


async def soften_sentence(
    run: str, marked: str, passages: Sequence[tuple[str, PassageRecord]], session: Session
) -> str:
    """Have the writer word a sentence of the user's own text more cautiously, billed to `run`.

    `passages` were found for its citations, each with its marker's id. Raises what `rewrite_sentence` raises.
    """
    evidence = await asyncio.to_thread(
        lambda: [passage_evidence(session.library, passage, name) for name, passage in passages]
    )
    sources, _ = await asyncio.to_thread(sources_for, session.library, evidence)
    brief = SectionBrief(kind="discussion", experiment=parse_experiment({}), sources=tuple(sources))
    failing = FailingSentence(marked, (REWRITINGS["careful"],), sources=tuple(sources))
    return await _rewrite(run, brief, failing, session)


async def _rewrite(run: str, brief: Brief, failing: FailingSentence, session: Session, *, fresh: bool = False) -> str:
    if "writer" in session.extractive:
        raise NotEditableError("Rewriting needs a chat model.", help="Choose one in the settings.")

    async def rewrite() -> str:
        return (await (await session.roles_of(run)).writer.repair_sentences(brief, [failing]))[0] or ""

    with session.run(run, fresh=fresh):
        answer = normalise_markers(await run_fitted(session, run, rewrite))
    if not answer:
        raise NotEditableError("The model gave no other wording.", help="Change the sentence yourself, or ask again.")
    return answer


def passage_evidence(library: Library, passage: PassageRecord, name: str) -> Evidence:
    """Convert a passage found by a check or update to evidence with the id `name`; blocks.

    Raises `NotEditableError` if the library no longer has it.
    """
    if not (chunks := library.chunks([passage["chunk_id"]])):
        message = f"The library no longer has the passage of {passage['key']}."
        raise NotEditableError(message, help="Check or update the text again.")
    near: dict[str, Any] = dict.fromkeys(("vector_score", "llm_score", "combined_score"), passage["similarity"])
    near |= {"id": name, "summary": "", "source_query": ""}
    return Evidence.of(chunks[0], start=passage["start"], end=passage["end"], **near)


def keep_edit(home: Home, run_id: str, position: int, words: str, check: SentenceCheck | None = None) -> None:
    """Store an edit beside the original text, with the words and result of its `check` if given; blocks.

    An edit that restores the original sentence is withdrawn. Raises what `load_editable` raises, and
    `SentenceChangedError` if another edit was made since the check.
    """
    check = check or SentenceCheck(unchecked_record(position), words)
    text = load_editable(home, run_id)
    section = text.section_at(position)
    earlier = section.edits.get(position)
    if check.before is not None and check.before != (earlier.updated_at if earlier else 0.0):
        raise SentenceChangedError(
            position, inert(earlier.text if earlier else section.as_shown()[position - section.first])
        )
    register = home.runs()
    if check.marked and check.marked["marked"] == section.before_edits(position):
        register.withdraw_edit(text.run.thread_id, position)
        return
    judged = {**check.record, "verdicts": check.verdicts} if check.record["verdict"] else {}
    checked: dict[str, Any] = {**judged, **check.marked}
    if earlier and earlier.checked.get("evidence"):  # evidence that an update added can still be cited
        checked["evidence"] = earlier.checked["evidence"]
    register.edit(text.run.thread_id, EditedSentence(position, _plain(check.words), checked))


def withdraw_edit(home: Home, run_id: str, position: int) -> None:
    """Restore the original sentence; blocks. Raises `NotEditedError` if it was not edited."""
    if not home.runs().withdraw_edit(find_text(home, run_id).thread_id, position):
        raise NotEditedError(f"The sentence at {position} was not edited.")


def _worst_verdict(labels: Sequence[str]) -> str:
    return next((label for label in _WORST_FIRST if label in labels), "uncited")


def _plain(words: str) -> str:
    """Join the words into one line; raises `NotEditableError` if it is too long."""
    plain = " ".join(words.split())
    if len(plain) > LONGEST_EDIT:
        raise NotEditableError(f"text has {len(plain):,} characters; a sentence has at most {LONGEST_EDIT:,}.")
    return plain
