"""How sections and answers differ when they are planned and finished.

A section repeats the user's own statements and citations; an answer that cites nothing is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from ..citations.citation_styles import Citation
from ..citations.export.files import section_title
from ..citations.numbered_references import cited_places
from ..citations.references import Place
from ..citations.user_citations import OwnCitation, left_to_other_sections, own_citations, with_own_statements
from ..documents import Paper
from ..experiment import experiment_warnings
from ..roles.extractive.statement_needs import section_needs
from ..roles.protocols import AnswerBrief, Brief, Need, SectionBrief, Source
from .answer_record import ALL_LEFT_OUT, as_answer, cites, nothing_found, outcome_of
from .needs_filter import without_own_results
from .state import ResearchState, RunState


class TextRules:
    """What applies to a text of any kind, unless a subclass says otherwise."""

    title: str
    when_empty = ""  # the text when a strict run leaves out every sentence

    def input_warnings(self) -> list[str]:
        """Warnings about what the user gave."""
        return []

    def searchable_needs(self, needs: tuple[Need, ...]) -> tuple[Need, ...]:
        """The planned needs that may be searched for."""
        return needs

    def text_without_sources(
        self, state: RunState, draft: str, sources: Sequence[Source], papers: int, *, judged: bool
    ) -> str:
        """The text in place of a draft that cites no source; empty when the draft stays."""
        return ""

    def with_own_statements(self, text: str, earlier: Sequence[str], keys: Sequence[str]) -> str:
        """The text with those statements of the user that it must have and the writer left out."""
        return text

    def left_to_others(self, text: str, earlier: Sequence[str], keys: Sequence[str]) -> list[str]:
        """Warnings that name the user's statements which the text leaves to other sections."""
        return []

    def own_citations(self, text: str, papers: Sequence[Paper]) -> list[OwnCitation]:
        """The user's own citations in the text."""
        return []

    def places(self, citations: Sequence[Citation]) -> Mapping[str, tuple[Place, ...]]:
        """The cited places of each paper that its reference lists; none when the text itself names them."""
        return {}

    def completed(
        self, record: dict[str, Any], state: RunState, sources: Sequence[Source], *, quoted_only: bool
    ) -> dict[str, Any]:
        """The record with what only this kind of text has."""
        return record


class SectionRules(TextRules):
    """A section has the user's statements and citations, and its needs are about other people's work."""

    def __init__(self, brief: SectionBrief) -> None:
        self._brief = brief
        self.title = section_title(brief.kind)

    def input_warnings(self) -> list[str]:
        return experiment_warnings(self._brief.experiment)

    def searchable_needs(self, needs: tuple[Need, ...]) -> tuple[Need, ...]:
        """The needs without the user's own results; those of the default queries when nothing is left."""
        return without_own_results(needs, self._brief.experiment) or section_needs(self._brief.queries)

    def with_own_statements(self, text: str, earlier: Sequence[str], keys: Sequence[str]) -> str:
        return with_own_statements(text, self._brief.kind, self._brief.experiment, earlier, keys)

    def left_to_others(self, text: str, earlier: Sequence[str], keys: Sequence[str]) -> list[str]:
        return left_to_other_sections(text, self._brief.kind, self._brief.experiment, earlier, keys)

    def own_citations(self, text: str, papers: Sequence[Paper]) -> list[OwnCitation]:
        return own_citations(text, self._brief.experiment, papers)


class AnswerRules(TextRules):
    """An answer has sources, or says what was searched; its references list the cited places."""

    when_empty = ALL_LEFT_OUT

    def __init__(self, brief: AnswerBrief) -> None:
        self.title = brief.question

    def text_without_sources(
        self, state: RunState, draft: str, sources: Sequence[Source], papers: int, *, judged: bool
    ) -> str:
        """That nothing was found, and what was searched."""
        return "" if cites(draft, sources) else nothing_found(cast(ResearchState, state), papers, judged=judged)

    def places(self, citations: Sequence[Citation]) -> Mapping[str, tuple[Place, ...]]:
        return cited_places(citations)

    def completed(
        self, record: dict[str, Any], state: RunState, sources: Sequence[Source], *, quoted_only: bool
    ) -> dict[str, Any]:
        """The record with question, route and outcome."""
        ids = {citation["evidence_id"] for citation in record["citations"]}
        cited = [source for source in sources if source.evidence.id in ids]
        return as_answer(record, cast(ResearchState, state), outcome_of(cited, quoted_only=quoted_only))


def rules_of(brief: Brief) -> TextRules:
    """The rules for the text of a brief."""
    return AnswerRules(brief) if isinstance(brief, AnswerBrief) else SectionRules(brief)
