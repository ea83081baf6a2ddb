"""Writes a section without a chat model: the experiment's own statements, with quotations from matching sources."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

import numpy as np

from ...experiment import SectionKind
from ...models.embeddings.protocol import Vectors
from ...models.journal.streaming import TextListener
from ...text.normalize import one_line, plain_wording
from ...text.sentences import sentence_spans
from ..inputs import SectionBrief, Source
from ..protocols import Draft, FailingSentence, QuoteSpan
from .draft_blocks import blocks_of, cites
from .paper_outline import share_of
from .quotable_sentences import QuotablePassage, quotable_passages
from .section_outlines import OUTLINES, Paragraph, paragraphs
from .sentence_vectors import SentenceVectors
from .source_matching import Match, Quotable, candidate_matches, choose
from .templates import source_sentences
from .themes import Theme, experiment_themes, themes_in, vocabulary

# Statements that sources are sought for; a section takes a handful of sources, and a real one has fewer statements.
_MOST_MATCHED: Final = 400


class ExtractiveWriter:
    """Implements `SectionWriter`; the same brief always gives the same draft."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._vectors = vectors

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section, with a note when fewer papers fit than the section should cite."""
        outline, plan = OUTLINES[brief.kind], _plan(brief)
        statements = [statement for paragraph in plan for statement in paragraph]
        themes = await asyncio.to_thread(_themes, brief)
        said = one_line(" ".join(section.text for section in brief.earlier or ()))
        pairs = await asyncio.to_thread(_passages_on, brief.sources, themes, said)
        matched = [number for number, statement in enumerate(statements) if statement.about][:_MOST_MATCHED]
        chosen: list[Match] = []
        if pairs and matched:
            quotables = await self._near_topic(brief, pairs)
            cosines = await self._cosines([statements[number].about for number in matched], quotables)
            found = candidate_matches(
                [statements[number].about for number in matched],
                quotables,
                cosines,
                themes,
                outline.preferred,
                brief.experiment.model_dump_json(),
                outline.stricter,
            )
            chosen = choose(found, outline.limits, wanted_papers=max(1, outline.wanted_papers))
        placed = [(matched[match.fact], match) for match in chosen]
        return Draft(
            _compose(plan, placed),
            quotes=tuple(
                QuoteSpan(
                    match.quotable.source.evidence.id,
                    match.quotable.passage.start,
                    match.quotable.passage.end,
                )
                for match in chosen
            ),
            notes=_shortfall(brief.kind, chosen),
        )

    async def repair(
        self, brief: SectionBrief, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        """The draft without the quotations that fail; the experiment's own statements stay."""
        paragraphs_kept = (
            " ".join(sentence.text for sentence in block.sentences if not (sentence.fails and cites(sentence.text)))
            for block in blocks_of(draft.text, failing)
        )
        return Draft("\n\n".join(filter(None, paragraphs_kept)), quotes=draft.quotes, notes=draft.notes)

    async def repair_sentences(self, brief: SectionBrief, failing: Sequence[FailingSentence]) -> list[str | None]:
        """Removes the quotations that fail; the experiment's own statements stay."""
        return ["" if item.as_a_whole and cites(item.text) else None for item in failing]

    async def _near_topic(
        self, brief: SectionBrief, pairs: Sequence[tuple[Source, QuotablePassage, tuple[Theme, ...]]]
    ) -> list[Quotable]:
        rows = await self._vectors.of([passage.text for _, passage, _ in pairs])
        experiment = brief.experiment
        topics = [experiment.paper_concept.title, experiment.hypothesis.description, experiment.summary]
        topic_rows = [await self._vectors.of_query(topic) for topic in topics if topic.strip()]
        # Near to two of the three is enough: a method paper need not mention the findings.
        nearness = (
            np.sort(rows @ np.array(topic_rows).T, axis=1)[:, -2:].mean(axis=1) if topic_rows else np.ones(len(rows))
        )
        return [
            Quotable(source, passage, found, float(nearness[number]))
            for number, (source, passage, found) in enumerate(pairs)
        ]

    async def _cosines(self, facts: Sequence[str], quotables: Sequence[Quotable]) -> Vectors:
        rows = await self._vectors.of([quotable.passage.text for quotable in quotables])
        asked = np.array([await self._vectors.of_query(fact) for fact in facts], dtype=np.float32)
        cosines: Vectors = asked @ rows.T
        return cosines


def _themes(brief: SectionBrief) -> list[Theme]:
    return experiment_themes(brief.experiment, vocabulary([(item.paper.key, item.text) for item in brief.sources]))


def _plan(brief: SectionBrief) -> list[Paragraph]:
    """The section's statements about the experiment; in a paper, only those that no earlier section made."""
    if brief.earlier is None:
        return paragraphs(brief.kind, brief.experiment)
    said = {
        plain_wording(section.text[start:end])
        for section in brief.earlier
        for start, end in sentence_spans(section.text)
    }
    return share_of(brief.kind, brief.experiment, said)


def _passages_on(
    sources: Sequence[Source], themes: Sequence[Theme], said: str
) -> list[tuple[Source, QuotablePassage, tuple[Theme, ...]]]:
    """The passages that mention a theme, except those already quoted in `said`."""
    found = []
    for source in sources:
        for passage in quotable_passages(source.text):
            spoken = themes_in(passage.text, themes)
            if spoken and one_line(passage.text) not in said:
                found.append((source, passage, tuple(spoken)))
    return found


def _compose(plan: Sequence[Paragraph], placed: Sequence[tuple[int, Match]]) -> str:
    sentences = source_sentences([match for _, match in placed])
    beside: dict[int, list[str]] = {}
    for (number, _), sentence in zip(placed, sentences, strict=True):
        beside.setdefault(number, []).append(sentence)
    texts: list[str] = []
    number = 0
    for paragraph in plan:
        parts: list[str] = []
        for statement in paragraph:
            if statement.block:
                texts += [" ".join(parts), statement.text]
                parts = []
            elif statement.text:
                parts.append(statement.text)
            parts += beside.get(number, [])
            number += 1
        texts.append(" ".join(parts))
    return "\n\n".join(text for text in texts if text)


def _shortfall(kind: SectionKind, chosen: Sequence[Match]) -> tuple[str, ...]:
    papers = {match.quotable.source.paper.key for match in chosen}
    wanted = OUTLINES[kind].wanted_papers
    if len(papers) >= wanted:
        return ()
    count = (
        "No paper fits" if not papers else "Only 1 paper fits" if len(papers) == 1 else f"Only {len(papers)} papers fit"
    )
    return (f"{count} this {kind} closely enough to be quoted; no source was added for show.",)
