"""The sentences of a finished section or paper, with the user's edits applied beside the stored text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from ..citations.citation_styles import render as render_text
from ..citations.edited_citations import CitableEvidence
from ..citations.markers import CitedSentence, sentences
from ..citations.marking import MARKS
from ..documents import Evidence, Paper
from ..errors import InputError
from ..experiment import Experiment, parse_experiment
from ..plurals import counted
from ..roles.protocols import Source
from ..section_kinds import SectionKind
from ..stores.run_register import EditedSentence, RunRecord
from .result_record import StoredRecord, stored

LONGEST_EDIT: Final = 4000  # characters


class NotEditableError(InputError):
    """The sentences of a run cannot be edited or checked."""


@dataclass(frozen=True)
class EditableSection:
    """One section: its record, its sentences in the draft with markers, and the user's edits of them by position.

    `first` is the position of its first sentence in the run, `by_hand` the whole text if it was edited in its file.
    """

    kind: SectionKind
    record: StoredRecord
    evidence: tuple[Evidence, ...]
    first: int
    edits: Mapping[int, EditedSentence]
    by_hand: str | None = None

    @cached_property
    def sentences(self) -> list[CitedSentence]:
        """The sentences of the stored text, with markers."""
        return sentences(self.record["with_markers"])

    @property
    def citable(self) -> CitableEvidence:
        """What an edited sentence may cite."""
        return CitableEvidence(self.evidence, self.record["cite_style"], self.record["numbering"])

    def marked(self, position: int, words: str) -> str:
        """The user's words for the sentence at a position of the run, with markers."""
        return self.citable.marked(words, self.sentences[position - self.first].text)

    def edited(self, edits: Mapping[int, EditedSentence]) -> tuple[str, dict[int, tuple[int, int]]]:
        """The text with these edits, and the span in it of each edited sentence, by position."""
        if self.by_hand is not None:
            return self.by_hand, self._changed_by_hand(self.by_hand)
        text = self.record["with_markers"]
        pieces: list[str] = []
        spans: dict[int, tuple[int, int]] = {}
        done = length = 0
        for position in sorted(edits):
            old = self.sentences[position - self.first]
            new = self.marked(position, edits[position].text)
            pieces += [text[done : old.start], new]
            length += old.start - done
            spans[position] = (length, length + len(new))
            length += len(new)
            done = old.end
        return "".join([*pieces, text[done:]]), spans

    def _changed_by_hand(self, text: str) -> dict[int, tuple[int, int]]:
        before = {sentence.text for sentence in self.sentences}
        found = enumerate(sentences(text))
        return {place: (item.start, item.end) for place, item in found if item.text not in before}

    def shown(self) -> list[str]:
        """The sentences as the reader sees them, without the marks of failed checks."""
        sources = [Source(item, Paper(item.key, ""), "") for item in self.evidence]
        before = self.record["numbering"]
        rendered = render_text(self.record["with_markers"], sources, self.record["cite_style"], before=before)
        return [rendered.text[sentence.start : sentence.end] for sentence in rendered.sentences]

    def places(self) -> list[tuple[int, int]]:
        """Where each sentence stands in the text of the record, which has marks."""
        text, start = self.record["text"], 0
        places: list[tuple[int, int]] = []
        for words in self.shown():
            start, end = _place(text, words, start)
            places.append((start, end))
            start = end
        return places


@dataclass(frozen=True)
class EditableText:
    """A finished section, or the sections of a finished paper, in the order of the text."""

    run: RunRecord
    experiment: Experiment
    sections: tuple[EditableSection, ...]

    @property
    def edited_count(self) -> int:
        """How many sentences the user edited."""
        return sum(len(section.edited(section.edits)[1]) for section in self.sections)

    @property
    def edits(self) -> list[EditedSentence]:
        """All edits, in the order of the text."""
        return [edit for section in self.sections for _, edit in sorted(section.edits.items())]

    def section_at(self, position: int) -> EditableSection:
        """The section that has the sentence at a position; raises `NotEditableError`."""
        total = sum(len(section.sentences) for section in self.sections)
        if not 0 <= position < total:
            raise NotEditableError(
                f"position: the text has {counted(total, 'sentence')}, counted from 0, and none at {position}."
            )
        return next(item for item in reversed(self.sections) if item.first <= position)


def editable_text(run: RunRecord, edits: Sequence[EditedSentence]) -> EditableText:
    """The text of a finished run with the user's edits.

    Raises `NotEditableError` for an unfinished run, or an answer.
    """
    if run.section == "research":
        raise NotEditableError(
            f"Run {run.thread_id} is an answer; sentences of sections and papers can be edited.",
            help="Ask again, or give feedback on it in a conversation.",
        )
    if run.status != "finished" or run.result is None:
        raise NotEditableError(f"Run {run.thread_id} is not finished.", help="Resume it first.")
    record = stored(run.result)
    records = record.get("sections") or [record]
    return EditableText(run, parse_experiment(run.request.get("experiment")), tuple(_sections(records, edits)))


def _sections(records: Sequence[Any], edits: Sequence[EditedSentence]) -> list[EditableSection]:
    sections: list[EditableSection] = []
    first = 0
    for record in records:
        count = len(sentences(record["with_markers"]))
        own = {edit.position: edit for edit in edits if first <= edit.position < first + count}
        evidence = tuple(Evidence.from_dict(item) for item in record["evidence"])
        sections.append(EditableSection(record["section"], record, evidence, first, own))
        first += count
    return sections


def _place(text: str, words: str, start: int) -> tuple[int, int]:
    """Where `words` stand in `text` at or after `start`, with marks between them."""
    while start < len(text) and text[start].isspace():
        start += 1
    at, done = start, 0
    while done < len(words) and at < len(text):
        mark = next((f" {mark}" for mark in MARKS.values() if text.startswith(f" {mark}", at)), "")
        if mark and not words.startswith(mark, done):
            at += len(mark)
            continue
        at, done = at + 1, done + 1
    return start, at
