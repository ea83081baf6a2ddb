"""Limits and results of an evidence search, and how well the results cover each need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..documents import Chunk, Evidence, EvidenceSpan
from ..roles.protocols import Need, NeedCoverage, PassageFinding, Status
from ..settings.config import RetrievalMode
from ..text.wordings import Direction, count_measures, direction, telling_words
from .retrieval import Retrieval
from .window_search import WindowLimits

_BREADTH: Final = 2
_ENOUGH_OF_A_PAPER: Final = 3  # strong findings for one need of a question about many papers
MEASURED_WEIGHT: Final = 0.03  # added for each of an effect, a group size and a test
_RESTATED: Final = 0.8  # share of the shorter statement's significant words that a restatement contains
_RESTATED_RESULTS: Final = 0.6  # the same, if the statements share at least `_RESULTS` numbers
_RESULTS: Final = 3
_FEWEST_WORDS: Final = 5  # significant words of a statement that can be restated


@dataclass(frozen=True, slots=True)
class EvidenceLimits(WindowLimits):
    """How much a search reads and keeps, and how it weights scores (see `config.Settings`).

    `read_tokens` limits the first search for all needs, `search_tokens` each later one, `call_tokens` one call of the
    reader. The first search is read in `waves` parts, and then the abstracts of `abstracts` papers. Reading for a need
    stops after `plenty` strong findings (from several papers, if there are several) or after `dry` consecutive windows
    without one; reading a paper for a need stops after `of_paper` strong findings (None: no limit). `top_k_final` and
    `per_paper` limit the findings kept per need, and per paper and need; None keeps all useful ones. If none is useful,
    the `near` best are kept, so that an answer can name the nearest.
    """

    retrieval_mode: RetrievalMode = "hybrid"
    read_tokens: int = 16_000
    search_tokens: int = 1_200
    call_tokens: int = 5_000
    waves: int = 2
    abstracts: int = 4
    plenty: int = 6
    dry: int = 6
    of_paper: int | None = None
    top_k_initial: int = 40
    top_k_final: int | None = None
    per_paper: int | None = None
    paper_margin: float = 0.08
    spread: int = 3
    vector_weight: float = 0.4
    llm_weight: float = 0.6
    score_threshold: float = 0.35
    near: int = 0
    rerank: float = 0.0

    @property
    def retrieval(self) -> Retrieval:
        return Retrieval(mode=self.retrieval_mode, rerank=self.rerank)

    def within(self, call_tokens: int) -> EvidenceLimits:
        """Return these limits for a reader with at most `call_tokens` per call."""
        return replace(self, call_tokens=call_tokens, window_tokens=min(self.window_tokens, call_tokens))

    def for_breadth(self) -> EvidenceLimits:
        """Return these limits for a question about many papers: more, smaller windows, and reading stops later."""
        return replace(
            self,
            read_tokens=_BREADTH * self.read_tokens,
            window_tokens=max(1, self.window_tokens // _BREADTH),
            call_tokens=self.call_tokens * 3 // 2,
            plenty=_BREADTH * _BREADTH * self.plenty,
            dry=_BREADTH * _BREADTH * self.dry,
            of_paper=_ENOUGH_OF_A_PAPER,
        )

    def windows(self, tokens: int, needs: int = 1) -> EvidenceLimits:
        """Return these limits for proposing windows of `tokens` in total for this many needs."""
        return replace(self, tokens=tokens, hits=self.top_k_initial * needs)


@dataclass(frozen=True, slots=True)
class FoundEvidence:
    """A kept finding, which becomes evidence with an id; `also` are further needs that it serves."""

    finding: PassageFinding
    combined_score: float
    query: str
    also: tuple[str, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        return (self.finding.need, *self.also)

    def merge_same_words(self, other: FoundEvidence) -> FoundEvidence:
        """Merge with `other`, which rests on the same words: serves both findings' needs and keeps the longer words."""
        longer = FindingWords.of_finding(other.finding).length > FindingWords.of_finding(self.finding).length
        return self._merge(other, other.finding.spans if longer else self.finding.spans, self.finding.statement)

    def merge_restated(self, other: FoundEvidence) -> FoundEvidence:
        """Merge with `other`, which says the same elsewhere: keeps the fuller statement and the words of both."""
        statement = max(
            self.finding.statement, other.finding.statement, key=lambda text: (count_measures(text), len(text))
        )
        spans = list(self.finding.spans)
        for span in other.finding.spans:
            if not any(_words_of(span) in _words_of(kept) for kept in spans):
                spans.append(span)
        return self._merge(other, sorted(spans, key=lambda span: (span[0].index, span[1])), statement)

    def _merge(self, other: FoundEvidence, spans: Sequence[tuple[Chunk, int, int]], statement: str) -> FoundEvidence:
        also = tuple(dict.fromkeys(need for need in (*self.also, *other.needs) if need and need != self.finding.need))
        score = max(self.finding.score, other.finding.score)
        finding = replace(self.finding, spans=tuple(spans), score=score, statement=statement)
        return replace(self, finding=finding, also=also)

    def as_evidence(self, identifier: str) -> Evidence:
        """Convert to evidence with the id by which a writer cites it."""
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
class SearchResult:
    """The result of a search: the kept findings, best first, and the ids of all chunks read.

    `proposed` counts the found passages, `shown` those shown to the reader, and `unreadable` the shown ones without a
    valid answer. `again` are the ids of needs for which a further search was read.
    """

    found: tuple[FoundEvidence, ...]
    read: tuple[str, ...]
    proposed: int = 0
    shown: int = 0
    unreadable: int = 0
    again: tuple[str, ...] = ()


def limit_findings(found: Sequence[FoundEvidence], limits: EvidenceLimits) -> list[FoundEvidence]:
    """Select the useful findings to keep, best first, within the limits per need and per paper.

    Findings on the same words, and restatements within a paper, are merged into one that serves the needs of all.
    """
    best: list[FoundEvidence] = []
    words: list[FindingWords] = []
    statements: list[_StatementWords] = []
    of_need: Counter[str] = Counter()
    of_paper: Counter[tuple[str, str]] = Counter()

    def order(item: FoundEvidence) -> tuple[float, str, int]:
        chunk, start, _ = item.finding.spans[0]
        return (-item.combined_score - MEASURED_WEIGHT * count_measures(item.finding.statement), chunk.id, start)

    ordered = sorted(found, key=order)
    useful = [item for item in ordered if item.finding.score >= limits.score_threshold]
    for item in useful or ordered[: limits.near]:
        need, key = item.finding.need, item.finding.paper.key
        own = FindingWords.of_finding(item.finding)
        if (place := find_same(own, words)) is not None:
            best[place] = best[place].merge_same_words(item)
            words[place] = FindingWords.of_finding(best[place].finding)
            continue
        said = _StatementWords.by(item)
        if (same := next((place for place, other in enumerate(statements) if said.restates(other)), None)) is not None:
            best[same] = best[same].merge_restated(item)
            words[same], statements[same] = FindingWords.of_finding(best[same].finding), _StatementWords.by(best[same])
            continue
        if limits.top_k_final is not None and of_need[need] >= limits.top_k_final:
            continue
        if limits.per_paper is not None and of_paper[need, key] >= limits.per_paper:
            continue
        of_need[need] += 1
        of_paper[need, key] += 1
        best.append(item)
        words.append(own)
        statements.append(said)
    return best


def _words_of(span: tuple[Chunk, int, int]) -> str:
    chunk, start, end = span
    return " ".join(chunk.text[start:end].split())


@dataclass(frozen=True, slots=True)
class _StatementWords:
    """A finding's paper key, and the numbers, significant words and direction of its statement."""

    key: str
    numbers: frozenset[str]
    words: frozenset[str]
    way: Direction

    @classmethod
    def by(cls, item: FoundEvidence) -> _StatementWords:
        telling = telling_words(item.finding.statement)
        numbers = frozenset(word for word in telling if word[0].isdigit())
        return cls(item.finding.paper.key, numbers, frozenset(telling) - numbers, direction(item.finding.statement))

    def restates(self, other: _StatementWords) -> bool:
        """Whether, in the same paper, one statement has all numbers and nearly all words of the other."""
        less, more = sorted((self, other), key=lambda item: len(item.words))
        if self.key != other.key or self.way != other.way or len(less.words) < _FEWEST_WORDS:
            return False
        fewer = min(len(less.numbers), len(more.numbers))
        least = _RESTATED_RESULTS if fewer >= _RESULTS else _RESTATED
        return len(less.numbers & more.numbers) == fewer and len(less.words & more.words) >= least * len(less.words)


_FEWEST_SHARED: Final = 40  # characters; shorter words may occur in others by chance


@dataclass(frozen=True, slots=True)
class FindingWords:
    """The words that a finding rests on: the paper's key, and each run's chunk id and text on one line."""

    key: str
    runs: tuple[tuple[str, str], ...]

    @classmethod
    def of_finding(cls, finding: PassageFinding) -> FindingWords:
        runs = ((chunk.id, chunk.text[start:end]) for chunk, start, end in finding.spans)
        return cls(finding.paper.key, tuple((name, " ".join(text.split())) for name, text in runs))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> FindingWords:
        runs = [(record["chunk_id"], record["quote"])]
        runs += [(span["chunk_id"], span["quote"]) for span in record.get("more", ())]
        return cls(record["key"], tuple((name, " ".join(text.split())) for name, text in runs))

    @property
    def length(self) -> int:
        return sum(len(text) for _, text in self.runs)

    def same_as(self, other: FindingWords) -> bool:
        """Whether the words are the same, or one contains the other in another chunk (chunks overlap)."""
        if self.key != other.key:
            return False
        if {text for _, text in self.runs} == {text for _, text in other.runs}:
            return True
        less, more = sorted((self, other), key=lambda words: words.length)
        return less.length >= _FEWEST_SHARED and all(
            any(name != holder and text in whole for holder, whole in more.runs) for name, text in less.runs
        )


def find_same(words: FindingWords, among: Sequence[FindingWords]) -> int | None:
    """Return the index of the first entry with the same words."""
    return next((place for place, other in enumerate(among) if words.same_as(other)), None)


STRONG: Final = 0.6  # minimum score of a finding that helps with its need, rather than being background
_WHOLE: Final = 0.9  # minimum score of a finding that meets its need alone
_SEVERAL: Final = 2
TRIES: Final = 2  # fruitless searches after which a need's status is "in vain"


def coverage(
    needs: Sequence[Need], evidence: Sequence[Mapping[str, Any]], queries: Sequence[Mapping[str, Any]]
) -> list[NeedCoverage]:
    """Return the coverage of each need; `evidence` and `queries` are the records of a run's state.

    A need is met by one finding that meets it alone, or by two that help; its status is "in vain" after two searches
    without a helpful finding. Of records with the same id, the latest counts.
    """
    planned = {need.id for need in needs}
    evidence = sorted({record["id"]: record for record in evidence}.values(), key=lambda record: -record["llm_score"])
    covered: list[NeedCoverage] = []
    for need in needs:
        searches = [record for record in queries if need.id in record.get("needs", ())]
        # Evidence first found for an earlier section of a paper names a need of that section.
        again = {name for record in searches for name in record["evidence_ids"]}
        serving = [
            record
            for record in evidence
            if need.id in (record.get("need"), *record.get("also", ()))
            or (record["id"] in again and record.get("need") not in planned)
        ]
        strong = [record for record in serving if record["llm_score"] >= STRONG]
        met = meets([record["llm_score"] for record in strong])
        status: Status = "met" if met else "in vain" if len(searches) >= TRIES and not strong else "open"
        covered.append(
            NeedCoverage(
                need=need,
                evidence=tuple(record["id"] for record in serving),
                papers=len({record["key"] for record in strong}),
                searches=len(searches),
                tried=tuple(record["query"] for record in searches if record["origin"] == "custom"),
                status=status,
            )
        )
    return covered


def meets(scores: Sequence[float]) -> bool:
    """Whether findings with these scores meet their need: one alone, or two that help."""
    return sum(score >= STRONG for score in scores) >= _SEVERAL or any(score >= _WHOLE for score in scores)
