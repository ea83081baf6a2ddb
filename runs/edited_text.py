"""The user's version of a finished section, paper or answer: edited sentences, record and files.

Edits are stored beside the text, or made in the markdown file; the stored text never changes. No model is called:
edited sentences have the verdicts of their last check, or none.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, Final, cast

from ..citations.checks.draft_checks import DraftKind, check_draft
from ..citations.checks.findings import Finding
from ..citations.checks.support_findings import PairKey, support_findings
from ..citations.citation_styles import MARKS, Rendered, render as render_text
from ..citations.markers import MARKER, CitedSentence, sentences
from ..citations.user_citations import CitableEvidence
from ..claims.claim_passages import paper_sentences
from ..claims.detail_checks import quote_faults, whole_source
from ..documents import Evidence, Paper
from ..drafts.finished_text import FinishedText
from ..drafts.page_record import PageOptions, RenderedPage, page_record, paper_record, render_page
from ..drafts.written_draft import (
    QuestionSearch,
    RouteRecord,
    WrittenDraft,
    relocate_verdicts,
    sources_for,
    verdicts_from,
)
from ..errors import InputError
from ..experiment import Experiment, parse_experiment
from ..graph.session import Session
from ..plurals import counted
from ..roles.protocols import AnswerBrief, Brief, DecidingSpan, Draft, SectionBrief, Source, Verdict
from ..stores.home import Home
from ..stores.library import Library
from ..stores.run_register import EditedSentence, KeptTurn, RunHead, RunRecord, UnknownRunError
from .output_files import complete_section
from .result_record import StoredRecord, complete_record, stored

LONGEST_EDIT: Final = 4000  # characters
_BULLET: Final = "\n- "  # removed with a list item's only sentence
_ANSWER: Final = re.compile(r"(.+)\.(\d{1,6})")  # the id of an answer in a conversation


class NotEditableError(InputError):
    """The sentences of a run cannot be edited or checked."""


@dataclass(frozen=True, slots=True)
class EditedSection:
    """A section's text with edits, and the spans of edited sentences by position (below 0 if imported).

    `typed` are the sentences, with markers, whose citation the user typed; it must stay where it is.
    """

    text: str
    spans: Mapping[int, tuple[int, int]]
    typed: frozenset[str]


@dataclass(frozen=True)
class EditableSection:
    """A section's record and evidence, and the user's edits by sentence position."""

    kind: DraftKind
    record: StoredRecord
    evidence: tuple[Evidence, ...]
    first: int  # the run-wide position of its first sentence
    edits: Mapping[int, EditedSentence]
    imported: EditedSentence | None = None  # the section as imported or edited in its file, before later edits
    typed: frozenset[str] = frozenset()  # sentences whose citations the user placed

    @cached_property
    def sentences(self) -> Sequence[CitedSentence]:
        """The sentences of the stored text, with markers."""
        return sentences(self.record["with_markers"])

    def citations(self) -> list[list[dict[str, Any]]]:
        waiting = list(self.record["citations"])
        return [
            [waiting.pop(0) for identifier in sentence.ids if waiting and waiting[0]["evidence_id"] == identifier]
            for sentence in self.sentences
        ]

    def add_markers(self, words: str, place: int, *, sure: bool, count: int = 1) -> tuple[str, list[str]]:
        """Return the user's words with markers, and their sentences if the user typed a citation in them.

        The words replace `count` sentences from the index `place`. If that is not `sure`, markers are kept only where
        the citation is shown at the end of a later sentence.
        """
        old = slice(place, place + count) if 0 <= place < len(self.sentences) else slice(0)
        original = " ".join(sentence.text for sentence in self.sentences[old])
        shown = " ".join(self.as_shown()[old])
        covered = any(sentence.covered for sentence in self.rendered.sentences[old][-1:])
        known = original if sure or covered else MARKER.sub("", self.record["with_markers"])
        citable = CitableEvidence(self.evidence, self.record["cite_style"], self.record["numbering"])
        marked, typed = (
            citable.with_markers(words, known, covered=covered),
            citable.adds_citation(words, original, shown),
        )
        return marked, [item.text for item in sentences(marked)] if typed else []

    def mark_edit(self, edit: EditedSentence, place: int) -> tuple[str, list[str]]:
        """As `add_markers`, for a stored edit; an edit accepted from an update already has its markers."""
        known = str(edit.checked.get("marked", ""))
        if not known:
            return self.add_markers(edit.text, place, sure=True)
        return known, [item.text for item in sentences(known)] if edit.checked.get("placed", True) else []

    def apply(self, edits: Mapping[int, EditedSentence]) -> EditedSection:
        """Apply edits to the section."""
        brought = self.imported
        text = brought.text if brought else self.record["with_markers"]
        typed = list[str](brought.checked.get("typed", ()) if brought else ())
        pieces: list[str] = []
        spans: dict[int, tuple[int, int]] = {}
        done = length = 0
        found = sorted((*self._span(position), position) for position, edit in edits.items() if self._is_later(edit))
        for start, end, position in found:
            new, own = self.mark_edit(edits[position], position - self.first)
            typed += own
            if not new and text.endswith(_BULLET, done, start) and text[end : end + 1] in ("", "\n"):
                start -= len(_BULLET)
            pieces += [text[done:start], " " * (start == end), new]
            length += start - done + (start == end)
            spans[position] = (length, length + len(new))
            length += len(new)
            done = end
        text = "".join([*pieces, text[done:]])
        known = {sentence.text for sentence in self.sentences}
        for place, item in enumerate(sentences(text) if brought else ()):
            apart = all(item.end <= first or item.start >= last for first, last in list(spans.values()))
            if apart and item.text not in known:
                spans[-1 - place] = item.start, item.end
        return EditedSection(text, spans, frozenset(typed))

    def current(self, position: int) -> str:
        """Return the current sentence with markers; empty if an import removed it."""
        if (edit := self.edits.get(position)) and self._is_later(edit):
            return self.mark_edit(edit, position - self.first)[0]
        return self.before_edits(position)

    def positions(self, now: EditableSection) -> list[int | None]:
        """For each sentence of `now`, the current section, find the position of the run's sentence that it replaces.

        None for a sentence that only an imported text has.
        """
        places: dict[str, list[int | None]] = {}
        for position in range(self.first, self.first + len(self.sentences)):
            for item in sentences(self.current(position)):
                places.setdefault(item.text, []).append(position)
        return [(places.get(sentence.text) or [None]).pop(0) for sentence in now.sentences]

    def _is_later(self, edit: EditedSentence) -> bool:
        """Whether an edit was made after the import, which includes all earlier edits."""
        return self.imported is None or edit.updated_at > self.imported.updated_at

    def before_edits(self, position: int) -> str:
        """Return the sentence with markers as the run wrote it, or as imported."""
        if self.imported is None:
            return self.sentences[position - self.first].text
        return str(self.imported.checked.get("sentences", {}).get(str(position), ""))

    def _span(self, position: int) -> tuple[int, int]:
        """The span of a sentence before later edits; the end of the text if an import removed it."""
        if self.imported is None:
            old = self.sentences[position - self.first]
            return old.start, old.end
        words, text = self.before_edits(position), self.imported.text
        start = text.find(words) if words else -1
        return (start, start + len(words)) if start >= 0 else (len(text), len(text))

    @cached_property
    def rendered(self) -> Rendered:
        """The stored text in its citation style, without marks for failed checks."""
        sources = [Source(item, Paper(item.key, ""), "") for item in self.evidence]
        style, before, verdicts = self.record["cite_style"], self.record["numbering"], section_verdicts(self)
        text, typed = self.record["with_markers"], self.typed
        return render_text(text, sources, style, before=before, verdicts=verdicts, typed=typed)

    def as_shown(self) -> list[str]:
        """Return the sentences as readers see them, without marks for failed checks."""
        return [self.rendered.text[sentence.start : sentence.end] for sentence in self.rendered.sentences]

    def places(self) -> list[tuple[int, int]]:
        """Return each sentence's span in the record's text, which includes marks."""
        text, start = self.record["text"], 0
        places: list[tuple[int, int]] = []
        for words in self.as_shown():
            start, end = _find_span(text, words, start)
            places.append((start, end))
            start = end
        return places


@dataclass(frozen=True)
class EditableText:
    """A finished section or answer, or all sections of a finished paper in text order."""

    run: RunRecord
    experiment: Experiment
    sections: tuple[EditableSection, ...]

    @property
    def edits(self) -> list[EditedSentence]:
        """All edits in text order; a section's import comes before the edits of its sentences."""
        return [
            edit
            for section in self.sections
            for edit in (section.imported, *(section.edits[position] for position in sorted(section.edits)))
            if edit is not None
        ]

    @property
    def payer(self) -> str:
        """The id of the run or conversation to which checks are billed."""
        return self.run.thread_id.partition(".")[0]

    def build_brief(self, section: EditableSection, sources: Sequence[Source]) -> Brief:
        """Rebuild the writer's brief for a section, or for the answer."""
        if section.kind == "answer":
            return AnswerBrief(question=section.record["question"], sources=tuple(sources))
        return SectionBrief(kind=section.kind, experiment=self.experiment, sources=tuple(sources))

    def as_now(self, record: Mapping[str, Any]) -> EditableText:
        """Return the user's version as a text without edits; `record` is the record of that version."""
        parts = record.get("sections") or [record]
        sections = [
            section
            if part is section.record
            else replace(section, record=part, edits={}, imported=None, typed=section.apply(section.edits).typed)
            for section, part in zip(self.sections, parts, strict=True)
        ]
        return replace(self, sections=tuple(sections))

    def section_at(self, position: int) -> EditableSection:
        """Return the section with the sentence at a position; raises `NotEditableError`."""
        total = sum(len(section.sentences) for section in self.sections)
        if not 0 <= position < total:
            raise NotEditableError(
                f"position: there is no sentence {position}; the text has {counted(total, 'sentence')}, counted from 0."
            )
        return next(item for item in reversed(self.sections) if item.first <= position)


def find_text(home: Home, text_id: str) -> RunRecord:
    """Find the run with this id, or the answer `CONVERSATION.NUMBER` in the form of a run; blocks.

    Raises `UnknownRunError` and `UnknownConversationError`.
    """
    if not (answer := _ANSWER.fullmatch(text_id)):
        return home.runs().get(text_id)
    thread_id = home.conversations().get(answer[1]).thread_id
    turn = next((turn for turn in home.conversations().turns(thread_id) if turn.number == int(answer[2])), None)
    if turn is None:
        raise UnknownRunError(f"Conversation {thread_id} has no answer {answer[2]}.")
    return answer_as_run(thread_id, turn)


def answer_as_run(thread_id: str, turn: KeptTurn) -> RunRecord:
    """Convert an answer of a conversation to the form of a finished run."""
    version, at = turn.record["report"]["library_version"], turn.answered_at
    head = RunHead(f"{thread_id}.{turn.number}", "research", turn.asked, "finished", "", version, False, at, at)
    return RunRecord(**asdict(head), fingerprint="", request={}, result=turn.record)


def editable_text(run: RunRecord, edits: Sequence[EditedSentence]) -> EditableText:
    """Return a finished run's text with the user's edits; raises `NotEditableError` for an unfinished run."""
    if run.status != "finished" or run.result is None:
        raise NotEditableError(f"Run {run.thread_id} is not finished.", help="Resume it first.")
    sections = cited_sections(run, edits)
    given = {"question": run.result["question"]} if run.section == "research" else run.request.get("experiment")
    return EditableText(run, parse_experiment(given), sections)


def cited_sections(run: RunRecord, edits: Sequence[EditedSentence]) -> tuple[EditableSection, ...]:
    """Return the sections of a finished text (an answer has one) with the user's edits."""
    whole: Any = run.result
    sections: list[EditableSection] = []
    first = 0
    imported = {edit.position: edit for edit in edits if edit.position < 0}
    for place, record in enumerate(whole.get("sections") or [whole], 1):
        count = len(sentences(record["with_markers"]))
        own = {edit.position: edit for edit in edits if first <= edit.position < first + count}
        brought = imported.get(-place)
        with_own = [*own.values(), *([brought] if brought else [])]
        added = [item for edit in with_own for item in edit.checked.get("evidence", ())]
        evidence = tuple({item["id"]: Evidence.from_dict(item) for item in (*record["evidence"], *added)}.values())
        kind = record.get("section", "answer")
        sections.append(EditableSection(kind, record, evidence, first, own, imported=brought))
        first += count
    return tuple(sections)


def _find_span(text: str, words: str, start: int) -> tuple[int, int]:
    """Find `words` in `text` from `start` on, allowing marks between them."""
    found = text.find(words[:_BEGINNING], start)  # after the markup of a list or heading
    start = found if found >= 0 else start + len(text[start:]) - len(text[start:].lstrip())
    at, done = start, 0
    while done < len(words) and at < len(text):
        mark = next((f" {mark}" for mark in MARKS.values() if text.startswith(f" {mark}", at)), "")
        if mark and not words.startswith(mark, done):
            at += len(mark)
            continue
        at, done = at + 1, done + 1
    return start, at


_BEGINNING: Final = 12  # initial characters of a sentence, which contain no mark
_NEVER_JUDGED: Final = Verdict("unjudged")  # without a reason: the run had no judge


def answer_as_shown(thread_id: str, turn: KeptTurn, session: Session) -> StoredRecord:
    """Return the record of a conversation's answer with the user's edits; blocks."""
    run = answer_as_run(thread_id, turn)
    text = editable_text(run, session.home.runs().edits(run.thread_id))
    return edited_record(text, session)


def edited_record(text: EditableText, session: Session, csl: str | None = None) -> StoredRecord:
    """Return the record of the user's version, optionally in another CSL style; stores nothing. Blocks."""
    original = stored(text.run.result or {})
    if not text.edits and not csl:
        return original
    edited = [edit for section in text.sections for edit in section.edits.values()]
    evidence = [*original["evidence"], *(item for edit in edited for item in edit.checked.get("evidence", ()))]
    edits = sum(len(section.apply(section.edits).spans) for section in text.sections)
    by_hand = f"{counted(edits, 'sentence')} {'was' if edits == 1 else 'were'} edited by hand."
    notice = f"{original['report']['notice']} {by_hand * bool(edits)}".strip()
    is_paper, is_answer = "sections" in original, "question" in original
    options = PageOptions(
        original["cite_style"],
        original["csl"] if csl is None else csl,
        strict=original["strict"],
        quoted_only="writer" in session.extractive,
        notice=original["report"]["notice"] if is_paper else notice,
    )
    pages: list[RenderedPage] = []
    for section in text.sections:
        cited = pages[-1].shown.numbering if pages else original["numbering"] if is_answer else ()
        final = _finish_section(section, text, session.library)
        pages.append(render_page(final, session.library, options, before=cited))
    if is_paper:
        usage = [section.record["usage"] for section in text.sections]
        result = paper_record(pages, usage, evidence, text.experiment.paper_concept.title, notice)
    else:
        result = page_record(pages[0])
    before = original["report"]
    values = {"evidence": evidence, "queries": before["searches"]}
    own = {name: original[name] for name in _UNCHANGED if name in original}
    return complete_record(result, values, session.library, before["title"], before["library_version"], **own)


_UNCHANGED: Final = ("thread_id", "usage", "asked", "answered", "outcome", "steering")  # fields that edits keep


def _finish_section(section: EditableSection, text: EditableText, library: Library) -> FinishedText:
    sources, lost = sources_for(library, section.evidence)
    edited = section.apply(section.edits)
    verdicts = relocate_verdicts(section_verdicts(section), sources)
    tables = edited.text[start:] if section.kind == "answer" and (start := edited.text.find("\n\n| ")) >= 0 else ""
    draft = Draft(edited.text.removesuffix(tables))
    found = check_draft(
        draft,
        sources,
        kind=section.kind,
        experiment=text.experiment,
        known_keys=[paper.key for paper in library.papers()],
    )
    settled = {"one-sided"}  # reported with the run itself
    if section.record["with_markers"].rstrip().endswith(edited.text.rstrip().rpartition("\n")[2]):
        settled.add("truncated")  # the run's text ended so, such as with a list of passages
    result = stored(text.run.result or {})
    search = None
    if "route" in result:
        read = result["coverage"].get("papers", {}).get("read", 0)
        search = QuestionSearch(cast(RouteRecord, result["route"]), (), limited=False, read=read)
    written = WrittenDraft(
        text.build_brief(section, sources),
        draft,
        sources,
        verdicts,
        evidence=[item.as_dict() for item in section.evidence],
        queries=[item for item in result["report"]["searches"] if item.get("section", section.kind) == section.kind],
        search=search,
    )
    found = (*found, *support_findings(draft.text, verdicts), *quote_findings(edited, sources, library))
    left = [item for item in found if item.rule not in settled]
    unmarked = list(edited.spans.values())
    typed = edited.typed
    return FinishedText(written, edited.text, lost, left=left, unmarked=unmarked, typed=typed, tables=tables)


def quote_findings(edited: EditedSection, sources: Sequence[Source], library: Library) -> list[Finding]:
    """Find quotations in edited sentences that no cited paper contains verbatim; blocks."""
    found: list[Finding] = []
    for item in sentences(edited.text):
        if any(item.start < end and item.end > start for start, end in edited.spans.values()):
            cited = [source for source in sources if source.evidence.id in item.ids]
            if quote_faults(item.text, cited):  # only then are the whole papers read
                papers = {source.paper.key: source.paper for source in cited}
                cited += [whole_source(papers[key], paper_sentences(library, key).text, "") for key in papers]
                faults = quote_faults(item.text, cited)
                found += [Finding("quote-differs", fault["message"], (item.start, item.end)) for fault in faults]
    return found


def section_verdicts(section: EditableSection) -> dict[PairKey, Verdict]:
    """Return the verdicts on the run's sentences from its record, and on checked edits."""
    found: dict[PairKey, Verdict] = {}
    for sentence, own in zip(section.sentences, section.citations(), strict=True):
        for citation in own:
            start, end = citation["decided_by"] or (None, None)
            spans = [DecidingSpan(at["chunk_id"], at["start"], at["end"]) for at in citation["decided_by_spans"]]
            verdict = Verdict(citation["verdict"], citation["reason"], start, end, spans=tuple(spans))
            if verdict != _NEVER_JUDGED:
                found[sentence.text, citation["evidence_id"]] = verdict
    for edit in section.edits.values():
        found |= verdicts_from(edit.checked.get("verdicts", []))
    return found


def section_of_paper(run: RunRecord, section: str) -> RunRecord:
    """Reduce a paper's run to one of its sections; other runs, and the whole paper, are returned unchanged."""
    paper = stored(run.result or {})
    found = next((item for item in paper.get("sections") or () if item["section"] == section), None)
    return (
        run if found is None else replace(run, section=section, result=dict(complete_section(found, paper["report"])))
    )
