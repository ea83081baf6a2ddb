"""Writes sections and answers without a chat model: the author's own paragraphs, with lists of passages near to them.

Nothing is composed, argued or judged. A passage is a verbatim sentence with its place, its score and the nearest
statement; statements without a near passage are listed at the end.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import product
from typing import Final

from ...documents.marker_escaping import as_text
from ...models.journal.streaming import TextListener
from ...plurals import counted
from ...text.sentences import sentence_spans
from ...text.words import one_line
from ..protocols import AnswerBrief, Brief, Draft, FailingSentence, NeedCoverage, SectionBrief, Source
from .extractive_readers import SentenceVectors
from .section_outlines import outline, used_and_left_out

_OF_A_NEED: Final = 3
_OF_A_QUESTION: Final = 8  # that has no parts
_OF_A_PAPER: Final = 2  # for one need
_USED_BEFORE: Final = 0.15  # score penalty per earlier passage of the same paper in the text
_LABEL: Final = 12  # words of a statement where a passage names it
_NEAR: Final = 0.5  # score from which a passage is listed under a statement
_PAPERS: Final = 4  # in a section; fewer are noted, after passages near to the subject of the paper were added
EVIDENCE: Final = "*Evidence in your library, not judged:*"
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


class ExtractiveWriter(_Repairless):
    """Implements `SectionWriter`; the same brief always gives the same draft."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._passages = _ListedPassages(vectors)

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; notes name omitted parts of the experiment, and whether few papers are near."""
        chosen = _Choice(brief.sources)
        needs = {item.need.text: item for item in brief.needs}
        blocks: list[str] = []
        far: list[str] = []
        for paragraph in outline(brief.kind, brief.experiment):
            blocks.append(paragraph.text)
            need = needs.pop(paragraph.about, None)
            if need is None:
                continue
            if listed := await self._passages.listed(need, chosen.take(need, least=_NEAR)):
                blocks += [EVIDENCE, listed]
            else:
                far.append(need.need.text)
        for least, need in product((_NEAR, 0.0), needs.values()):
            # The subject of the paper brings in papers where the statements found few.
            if listed := await self._passages.listed(need, chosen.take_new(need, _PAPERS, least)):
                blocks += [f"*Evidence in your library near to {_quoted(need.need.text)}, not judged:*", listed]
        if far:
            blocks += [NOTHING_NEAR, "\n".join(f"- {_quoted(text)}" for text in far)]
        notes = used_and_left_out(brief.kind, brief.experiment)
        if len(chosen.papers) < _PAPERS:
            near = counted(len(chosen.papers), "paper") if chosen.papers else "no paper"
            notes.append(f"Passages near to the {brief.kind} were found in {near} of your library.")
        return Draft("\n\n".join(blocks), notes=tuple(notes))


class ExtractiveAnswerer(_Repairless):
    """Implements `AnswerWriter`: the passages nearest to each part of the question, and what was searched."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._passages = _ListedPassages(vectors)

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The passages by need, nearest first; empty when nothing is near."""
        chosen = _Choice(brief.sources, brief.most_papers)
        blocks: list[str] = []
        far: list[str] = []
        # Parts of the question label passages better than the whole question, which gets the rest.
        most = _OF_A_NEED if len(brief.needs) > 1 else _OF_A_QUESTION
        for need in [*brief.needs[1:], *brief.needs[:1]]:
            listed = await self._passages.listed(need, chosen.take(need, most))
            if not listed:
                far.append(need.need.text)
                continue
            head = "the whole question" if need is brief.needs[0] else _quoted(need.need.text)
            blocks += [f"*Passages near to {head}, not judged:*" if len(brief.needs) > 1 else EVIDENCE, listed]
        if not blocks:
            return Draft("")
        if far := [text for text in far if text != brief.needs[0].need.text]:
            blocks += [NOTHING_NEAR, "\n".join(f"- {_quoted(text)}" for text in far)]
        searches = dict.fromkeys(query for item in brief.needs for query in item.need.queries)
        blocks += ["*Searched:*", "\n".join(f"- {_quoted(query)}" for query in searches)]
        return Draft("\n\n".join(blocks))


class _Choice:
    """Takes passages need by need, with as many papers as possible."""

    def __init__(self, sources: Sequence[Source], most_papers: int | None = None) -> None:
        self._sources = {source.evidence.id: source for source in sources}
        self._most = most_papers
        self._taken: set[str] = set()
        self.papers: Counter[str] = Counter()

    def take(self, need: NeedCoverage, most: int = _OF_A_NEED, least: float = 0.0) -> list[Source]:
        """The best passages of a need, preferring papers not used before; repeats a passage only if all were used."""
        near = [source for source in self._near(need) if source.evidence.llm_score >= least]
        left = [source for source in near if source.evidence.id not in self._taken]
        found: list[Source] = []
        here: Counter[str] = Counter()
        while left and len(found) < most:
            best = max(left, key=self._worth)
            left.remove(best)
            key = best.paper.key
            full = self._most is not None and key not in self.papers and len(self.papers) >= self._most
            if here[key] >= _OF_A_PAPER or full:
                continue
            found.append(best)
            self._taken.add(best.evidence.id)
            here[key] += 1
            self.papers[key] += 1
        return sorted(found, key=lambda source: -source.evidence.llm_score) or near[:1]

    def take_new(self, need: NeedCoverage, papers: int, least: float) -> list[Source]:
        """Passages of papers not used before, best first, until there are this many papers."""
        found: list[Source] = []
        for source in self._near(need):
            if source.evidence.llm_score >= least and source.paper.key not in self.papers and len(self.papers) < papers:
                found.append(source)
                self._taken.add(source.evidence.id)
                self.papers[source.paper.key] += 1
        return found

    def _near(self, need: NeedCoverage) -> list[Source]:
        return [self._sources[name] for name in need.evidence if name in self._sources]

    def _worth(self, source: Source) -> float:
        return source.evidence.llm_score - _USED_BEFORE * self.papers[source.paper.key]


class _ListedPassages:
    """Shows passages as list items."""

    def __init__(self, vectors: SentenceVectors) -> None:
        self._vectors = vectors

    async def listed(self, need: NeedCoverage, sources: Sequence[Source]) -> str:
        """A list of the passages of a need; empty without one."""
        return "\n".join([await self._item(source, need.need.text) for source in sources])

    async def _item(self, source: Source, statement: str) -> str:
        evidence = source.evidence
        page = "" if evidence.page is None else f", page {evidence.page}"
        section = one_line(_MARKUP.sub(" ", evidence.section)) or "no section title"
        near = await self._nearest(evidence.quote, statement)
        near_to = f"; near to {_quoted(near)}" if near else ""
        place = as_text(f"{section}{page}; score {evidence.llm_score:.2f}{near_to}")
        return f"- “{as_text(one_line(evidence.quote))}” [{evidence.id}], {place}"

    async def _nearest(self, quote: str, statement: str) -> str:
        """The sentence of a statement that a quote is nearest to; empty for a statement of one sentence."""
        sentences = [statement[start:end] for start, end in sentence_spans(statement)]
        if len(sentences) <= 1:
            return ""
        (row,) = await self._vectors.of([quote])
        cosines = [float(row @ await self._vectors.of_query(sentence)) for sentence in sentences]
        return sentences[cosines.index(max(cosines))]


def _quoted(text: str) -> str:
    """The first words of a statement in quotation marks."""
    words = one_line(text).replace("“", '"').replace("”", '"').split()
    return as_text(f"“{' '.join(words[:_LABEL])}{' …' if len(words) > _LABEL else ''}”")
