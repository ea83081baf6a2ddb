"""Writes sections and answers without a chat model: the author's own paragraphs, with lists of passages near to them.

Nothing is composed, argued or judged. A passage is a verbatim sentence with its place and the nearest sentence of the
statement, nearest first; statements without a near passage are listed at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from ...documents.marker_escaping import as_text
from ...models.journal.streaming import TextListener
from ...plurals import counted
from ...text.sentences import sentence_spans
from ...text.words import one_line
from ..protocols import AnswerBrief, Brief, Draft, FailingSentence, NeedCoverage, SectionBrief, Source
from .extractive_readers import Nearness, SentenceVectors
from .section_outlines import outline, used_and_left_out

_OF_A_NEED: Final = 3
_OF_A_QUESTION: Final = 8  # that has no parts
_OF_A_PAPER: Final = 2  # for one need
_USED_BEFORE: Final = 0.15  # score penalty per earlier passage of the same paper in an answer
_USED_IN_SECTION: Final = 0.5  # log-odds taken off per earlier passage of the same paper in a section
_LABEL: Final = 12  # words of a statement where a passage names it
_NEAR: Final = 1.5  # log-odds from which a passage is listed under a statement
_FAINT: Final = -1.0  # and from which it may add a paper to a section that has few
_PAPERS: Final = 4  # in a section; fewer are noted, after passages near to the subject of the paper were added
EVIDENCE: Final = "*Evidence in your library, nearest first, not judged:*"
NOTHING_NEAR: Final = "*Nothing near in your library to:*"
_MARKUP: Final = re.compile(r"[][{}()“”@*_`$|<>\\#;]+")


class _Repairless:
    """The repair methods of a writer, which do nothing: the author's words and verbatim quotes need no repair."""

    async def repair(
        self, brief: Brief, draft: Draft, problems: Sequence[str], failing: Sequence[tuple[int, int]] = ()
    ) -> Draft:
        return draft

    async def repair_sentences(self, brief: Brief, failing: Sequence[FailingSentence]) -> list[str | None]:
        return [None for _ in failing]


@dataclass(frozen=True, slots=True)
class NearPassage:
    """A passage that may be listed under a need; `odds` are the log-odds that it bears on it."""

    need: str
    source: Source
    odds: float

    @property
    def words(self) -> str:
        """The quoted words on one line: a passage may have been found twice."""
        return one_line(self.source.evidence.quote)


class ExtractiveWriter(_Repairless):
    """Implements `SectionWriter`; the same brief always gives the same draft."""

    def __init__(self, vectors: SentenceVectors, nearness: Nearness) -> None:
        self._vectors = vectors
        self._nearness = nearness

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; notes name omitted parts of the experiment, and whether few papers are near."""
        paragraphs = outline(brief.kind, brief.experiment)
        needs = {item.need.text: item for item in brief.needs}
        stated = {needs[item.about].need.id for item in paragraphs if item.about in needs}
        placed = place_passages(
            await self._near(brief, stated), stated, " ".join(item.text for item in brief.earlier or ())
        )
        papers = {item.source.paper.key for items in placed.values() for item in items}
        blocks: list[str] = []
        far: list[str] = []
        for paragraph in paragraphs:
            blocks.append(paragraph.text)
            need = needs.pop(paragraph.about, None)
            if need is None:
                continue
            if passages := placed.pop(need.need.id, []):
                blocks += [EVIDENCE, await self._listed(passages, need.need.text)]
            else:
                far.append(need.need.text)
        for need in needs.values():
            if passages := placed.get(need.need.id, []):
                near_to = f"*Evidence in your library near to {_quoted(need.need.text)}, not judged:*"
                blocks += [near_to, await self._listed(passages, need.need.text)]
        if far:
            blocks += [NOTHING_NEAR, "\n".join(f"- {_quoted(text)}" for text in far)]
        notes = used_and_left_out(brief.kind, brief.experiment)
        if len(papers) < _PAPERS:
            near = counted(len(papers), "paper") if papers else "no paper"
            notes.append(f"Passages near to the {brief.kind} were found in {near} of your library.")
        return Draft("\n\n".join(blocks), notes=tuple(notes))

    async def _near(self, brief: SectionBrief, stated: Set[str]) -> list[NearPassage]:
        """Each passage with each need that it was found for; procedures only count under a statement on methods."""
        concept = brief.experiment.paper_concept
        found: list[NearPassage] = []
        for item in brief.needs:
            sources = _sources_of(item, brief.sources)
            own = item.need.id in stated
            need = item.need if own else replace(item.need, asks="finding")
            least = _FAINT if own or item.need.asks == "finding" else _NEAR
            odds = await self._nearness.of_sources(need, f"{concept.title}. {concept.description}", sources)
            ranked = zip(sources, odds, strict=True)
            found += [NearPassage(item.need.id, source, each) for source, each in ranked if each >= least]
        return found

    async def _listed(self, passages: Sequence[NearPassage], statement: str) -> str:
        sentences = [statement[start:end] for start, end in sentence_spans(statement)]
        rows = await self._vectors.of([item.source.evidence.quote for item in passages])
        asked = [await self._vectors.of_query(sentence) for sentence in sentences]
        lines: list[str] = []
        for row, item in zip(rows, passages, strict=True):
            cosines = [float(row @ vector) for vector in asked]
            near = sentences[cosines.index(max(cosines))] if len(sentences) > 1 else ""
            lines.append(_item(item.source, near, "less near" if item.odds < _NEAR else "near"))
        return "\n".join(lines)


def place_passages(near: Sequence[NearPassage], stated: Set[str], earlier: str) -> dict[str, list[NearPassage]]:
    """The passages to list by need, nearest first; each stands once, where it is nearest.

    `stated` are the needs with a paragraph in the section, `earlier` the text of earlier sections of the same paper.
    Other needs, passages that an earlier section lists, and those that are less near only add papers to a section that
    has few.
    """
    placed: dict[str, list[NearPassage]] = {}
    papers: Counter[str] = Counter()
    listed: set[str] = set()

    def used(item: NearPassage) -> bool:
        return f"[{item.source.evidence.id}]" in earlier

    def worth(item: NearPassage) -> float:
        return item.odds - _USED_IN_SECTION * papers[item.source.paper.key]

    def order(item: NearPassage) -> tuple[bool, bool, bool, float]:
        faint = item.odds < _NEAR
        return faint, used(item), not faint and item.need not in stated, -item.odds

    def take(item: NearPassage) -> None:
        key = item.source.paper.key
        here = placed.setdefault(item.need, [])
        of_paper = sum(other.source.paper.key == key for other in here)
        if item.words not in listed and len(here) < _OF_A_NEED and of_paper < _OF_A_PAPER:
            here.append(item)
            papers[key] += 1
            listed.add(item.words)

    left = [item for item in near if item.need in stated and item.odds >= _NEAR and not used(item)]
    while left:
        best = max(left, key=worth)
        left.remove(best)
        take(best)
    for item in sorted(near, key=order):
        if len(papers) < _PAPERS and item.source.paper.key not in papers:
            take(item)
    if len(papers) < _PAPERS:  # a library with few papers on the subject: what is nearest is better than nothing
        for item in sorted(near, key=lambda item: -item.odds):
            if item.need in stated and not placed.get(item.need):
                take(item)
    return {need: sorted(items, key=lambda item: -item.odds) for need, items in placed.items() if items}


class ExtractiveAnswerer(_Repairless):
    """Implements `AnswerWriter`: the passages nearest to each part of the question, and what was searched."""

    def __init__(self, nearness: Nearness) -> None:
        self._nearness = nearness

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The passages by need, nearest first; empty when nothing is near."""
        chosen = _Choice(brief.most_papers)
        blocks: list[str] = []
        far: list[str] = []
        # Parts of the question label passages better than the whole question, which gets the rest.
        most = _OF_A_NEED if len(brief.needs) > 1 else _OF_A_QUESTION
        for need in [*brief.needs[1:], *brief.needs[:1]]:
            passages = chosen.take(_sources_of(need, brief.sources), most)
            if not passages:
                far.append(need.need.text)
                continue
            odds = await self._nearness.of_answers(need.need.text, passages)
            ranked = sorted(zip(odds, passages, strict=True), key=lambda item: -item[0])
            head = "the whole question" if need is brief.needs[0] else _quoted(need.need.text)
            several = f"*Passages near to {head}, nearest first, not judged:*"
            listed = "\n".join(_item(source) for _, source in ranked)
            blocks += [several if len(brief.needs) > 1 else EVIDENCE, listed]
        if not blocks:
            return Draft("")
        if far := [text for text in far if text != brief.needs[0].need.text]:
            blocks += [NOTHING_NEAR, "\n".join(f"- {_quoted(text)}" for text in far)]
        searches = dict.fromkeys(query for item in brief.needs for query in item.need.queries)
        blocks += ["*Searched:*", "\n".join(f"- {_quoted(query)}" for query in searches)]
        return Draft("\n\n".join(blocks))


class _Choice:
    """Takes passages for the parts of a question, with as many papers as possible."""

    def __init__(self, most_papers: int | None) -> None:
        self._most = most_papers
        self._taken: set[str] = set()
        self._papers: Counter[str] = Counter()

    def take(self, near: Sequence[Source], most: int) -> list[Source]:
        """The best passages, preferring papers not used before; repeats a passage only if all were used."""
        left = [source for source in near if source.evidence.id not in self._taken]
        found: list[Source] = []
        here: Counter[str] = Counter()
        while left and len(found) < most:
            best = max(left, key=self._worth)
            left.remove(best)
            key = best.paper.key
            full = self._most is not None and key not in self._papers and len(self._papers) >= self._most
            if here[key] >= _OF_A_PAPER or full:
                continue
            found.append(best)
            self._taken.add(best.evidence.id)
            here[key] += 1
            self._papers[key] += 1
        return found or list(near[:1])

    def _worth(self, source: Source) -> float:
        return source.evidence.llm_score - _USED_BEFORE * self._papers[source.paper.key]


def _sources_of(need: NeedCoverage, sources: Sequence[Source]) -> list[Source]:
    """The passages found for a need, best first."""
    known = {source.evidence.id: source for source in sources}
    return [known[name] for name in need.evidence if name in known]


def _item(source: Source, near: str = "", how: str = "near") -> str:
    """A passage as a list item: quote, marker, place, the sentence that it is near to, and whether it is less near."""
    evidence = source.evidence
    page = "" if evidence.page is None else f", page {evidence.page}"
    section = one_line(_MARKUP.sub(" ", evidence.section)) or "no section title"
    near_to = f"; {how} to {_quoted(near)}" if near else f"; {how}" if how != "near" else ""
    return f"- “{as_text(one_line(evidence.quote))}” [{evidence.id}], in “{as_text(section)}”{page}{near_to}"


def _quoted(text: str) -> str:
    """The first words of a statement in quotation marks."""
    words = one_line(text).replace("“", '"').replace("”", '"').split()
    return as_text(f"“{' '.join(words[:_LABEL])}{' …' if len(words) > _LABEL else ''}”")
