"""What a search for evidence may read and keep, and what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from ..documents import Evidence, EvidenceSpan
from ..roles.protocols import PassageFinding
from ..settings.config import RetrievalMode
from .duplicate_findings import Words, first_same
from .retrieval import Retrieval
from .window_search import WindowLimits

_BREADTH: Final = 2


@dataclass(frozen=True, slots=True)
class EvidenceLimits:
    """How much a search reads and keeps, and how scores are weighted (see `config.Settings`).

    `read_tokens` limits what the first search for all needs reads, `search_tokens` each later one; `call_tokens` is
    what one call of the reader is shown; `waves` is the number of parts in which the first search is read, and
    `abstracts` the number of papers whose abstract is read at its end; `paper_share`, `paper_margin` and `spread` are
    those of `WindowLimits`. Reading for a need stops after `plenty` strong findings, from several papers if there are
    several, or after `dry` consecutive windows without one. `top_k_final` and `per_paper` limit what is kept for each
    need, and per paper for each need; None keeps everything that was read and is useful.
    """

    retrieval_mode: RetrievalMode = "hybrid"
    read_tokens: int = 16_000
    search_tokens: int = 1_200
    call_tokens: int = 5_000
    window_tokens: int = 1_200
    waves: int = 2
    abstracts: int = 4
    plenty: int = 6
    dry: int = 6
    top_k_initial: int = 40
    top_k_final: int | None = None
    per_paper: int | None = None
    paper_share: float = 0.5
    paper_margin: float = 0.08
    spread: int = 3
    vector_weight: float = 0.4
    llm_weight: float = 0.6
    score_threshold: float = 0.35
    rerank: float = 0.0

    @property
    def retrieval(self) -> Retrieval:
        """How chunks are retrieved."""
        return Retrieval(mode=self.retrieval_mode, rerank=self.rerank)

    def within(self, call_tokens: int) -> EvidenceLimits:
        """The same for a reader whose calls hold no more than `call_tokens`."""
        return replace(self, call_tokens=call_tokens, window_tokens=min(self.window_tokens, call_tokens))

    def for_breadth(self) -> EvidenceLimits:
        """The same for a question that many papers bear on: more and smaller windows, and none is taken for enough."""
        return replace(
            self,
            read_tokens=_BREADTH * self.read_tokens,
            window_tokens=max(1, self.window_tokens // _BREADTH),
            plenty=_BREADTH * _BREADTH * self.plenty,
            dry=_BREADTH * _BREADTH * self.dry,
        )

    def windows(self, tokens: int, needs: int = 1) -> WindowLimits:
        """The limits of what is proposed for this many needs, `tokens` in total."""
        hits = self.top_k_initial * needs
        return WindowLimits(tokens, self.window_tokens, hits, self.paper_share, self.paper_margin, self.spread)


@dataclass(frozen=True, slots=True)
class FoundEvidence:
    """A finding that is kept; it becomes evidence when it gets an id.

    `also` are further needs that it serves, when it was read for several.
    """

    finding: PassageFinding
    combined_score: float
    query: str
    also: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The ids of all needs that it serves."""
        return (self.finding.need, *self.also)

    def joined(self, other: FoundEvidence) -> FoundEvidence:
        """Merged with `other`, which rests on the same words: serves the needs of both, with the longer words."""
        also = tuple(dict.fromkeys(need for need in (*self.also, *other.needs) if need and need != self.finding.need))
        longer = Words.of_finding(other.finding).length > Words.of_finding(self.finding).length
        spans = other.finding.spans if longer else self.finding.spans
        score = max(self.finding.score, other.finding.score)
        return replace(self, finding=replace(self.finding, spans=spans, score=score), also=also)

    def as_evidence(self, identifier: str) -> Evidence:
        """The evidence with the id by which a writer cites it."""
        (chunk, start, end), *more = self.finding.spans
        return Evidence.of(
            chunk,
            id=identifier,
            summary=self.finding.statement,
            start=start,
            end=end,
            vector_score=round(self.finding.vector_score, 4),
            llm_score=round(self.finding.score, 4),
            combined_score=round(self.combined_score, 4),
            source_query=self.query,
            need=self.finding.need,
            also=self.also,
            more=tuple(EvidenceSpan.of(*span) for span in more),
        )


@dataclass(frozen=True, slots=True)
class Searched:
    """The result of a search: the findings kept, best first, and the ids of all chunks read for it.

    `proposed` counts the passages found, `shown` those shown to the reader, and `unreadable` those of them for which it
    gave no valid answer.
    """

    found: tuple[FoundEvidence, ...]
    read: tuple[str, ...]
    proposed: int = 0
    shown: int = 0
    unreadable: int = 0


def kept(found: Sequence[FoundEvidence], limits: EvidenceLimits) -> list[FoundEvidence]:
    """The findings to keep, best first, within the limits per need and per paper.

    Findings on the same words are merged into one, which serves the needs of all.
    """
    best: list[FoundEvidence] = []
    words: list[Words] = []
    of_need: Counter[str] = Counter()
    of_paper: Counter[tuple[str, str]] = Counter()
    for item in sorted(found, key=_order):
        need, key = item.finding.need, item.finding.paper.key
        own = Words.of_finding(item.finding)
        if (place := first_same(own, words)) is not None:
            best[place] = best[place].joined(item)
            words[place] = Words.of_finding(best[place].finding)
            continue
        if limits.top_k_final is not None and of_need[need] >= limits.top_k_final:
            continue
        if limits.per_paper is not None and of_paper[need, key] >= limits.per_paper:
            continue
        of_need[need] += 1
        of_paper[need, key] += 1
        best.append(item)
        words.append(own)
    return best


def _order(item: FoundEvidence) -> tuple[float, str, int]:
    chunk, start, _ = item.finding.spans[0]
    return (-item.combined_score, chunk.id, start)
