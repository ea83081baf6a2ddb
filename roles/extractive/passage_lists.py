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
from .passage_scores import CITED, PassageScores
from .section_outlines import outline, used_and_left_out
from .statement_needs import is_cited

_OF_A_NEED: Final = 3
_OF_A_QUESTION: Final = 8  # for a question without parts
_OF_A_PAPER: Final = 2  # for one need
_USED_BEFORE: Final = 0.25  # score taken off per earlier passage of the same paper in an answer,
_USED_IN_SECTION: Final = 0.7  # and log-odds in a section
_LABEL: Final = 12  # words of a statement where a passage names it
_NEAR: Final = -0.5  # log-odds from which a passage is listed under a statement
_FAINT: Final = -2.5  # and from which it may add a paper to a section that has few
_FAR: Final = -0.8  # below it, nothing counts as near: odds depend a little on what else a section's searches found
_PAPERS: Final = 4  # in a section; fewer are noted
OF_SUBJECT: Final = "*Nearest to the subject, unjudged:*"
LISTED_BEFORE: Final = "*Listed in the {}, and near to the {} too:*"  # no two sections have the same words
# No more than five words, so that a paper does not repeat a sentence under every statement.
EVIDENCE: Final = "*Nearest in your library, unjudged:*"
NOTHING_NEAR: Final = "*Nothing in your library near:*"
_MARKUP: Final = re.compile(r"[][{}()“”@*_`$|<>\\#;]+")


class _Repairless:
    """The repair methods of a writer, which do nothing: the author's words and verbatim quotes need no repair."""

    async def repair(self, brief: Brief, draft: Draft, problems: Sequence[str]) -> Draft:
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

    @property
    def marker(self) -> str:
        return f"[{self.source.evidence.id}]"


class ExtractiveWriter(_Repairless):
    """Implements `SectionWriter`; the same brief always gives the same draft."""

    def __init__(self, scores: PassageScores) -> None:
        self._scores = scores

    async def write(self, brief: SectionBrief, listener: TextListener | None = None) -> Draft:
        """The section; notes name omitted parts of the experiment, and whether few papers are near."""
        earlier = {section.kind: section.text for section in brief.earlier or ()}
        said = "\n".join(earlier.values())
        paragraphs = outline(brief.kind, brief.experiment, of_paper=brief.earlier is not None)
        needs = {item.need.text: item.need for item in brief.needs}
        stated = {needs[item.about].id for item in paragraphs if item.about in needs}
        near = await self._near(brief, stated)
        best = {item.need: item.odds for item in sorted(near, key=lambda item: item.odds)}
        placed, again = place_passages(near, stated, said)
        papers = {item.source.paper.key for items in (*placed.values(), again) for item in items}
        blocks: list[str] = []
        far: list[str] = []
        for paragraph in paragraphs:
            blocks.append(paragraph.text)
            if (need := needs.pop(paragraph.about, None)) is None:
                continue
            if passages := placed.pop(need.id, []):
                blocks += [EVIDENCE, await self._listed(passages, need.text)]
            elif best.get(need.id, _FAR) <= _FAR and _quoted(need.text) not in said:
                far.append(need.text)
        if beside := sorted((item for items in placed.values() for item in items), key=lambda item: -item.odds):
            blocks += [OF_SUBJECT, "\n".join(_item(item.source, less=item.odds < _NEAR) for item in beside)]
        for kind, text in earlier.items():
            if markers := [item.marker for item in again if item.marker in text]:
                blocks.append(f"{LISTED_BEFORE.format(kind.capitalize(), brief.kind)} {', '.join(markers)}")
                again = [item for item in again if item.marker not in markers]
        if far:
            blocks += [NOTHING_NEAR, "\n".join(f"- {_quoted(text)}" for text in far)]
        notes = used_and_left_out(brief.kind, brief.experiment)
        if len(papers) < _PAPERS:
            found = counted(len(papers), "paper") if papers else "no paper"
            notes.append(f"Passages near to the {brief.kind} were found in {found} of your library.")
        return Draft("\n\n".join(blocks), notes=tuple(notes))

    async def _near(self, brief: SectionBrief, stated: Set[str]) -> list[NearPassage]:
        """Each passage with each need that it was found for; procedures only count under a statement on methods."""
        concept = brief.experiment.paper_concept
        asked = [
            (item.need if item.need.id in stated else replace(item.need, asks="finding"), sources)
            for item in brief.needs
            if (sources := _sources_of(item, brief.sources))
        ]
        odds = await self._scores.near_statements(asked, f"{concept.title}. {concept.description}")
        return [
            NearPassage(need.id, source, float(each) + CITED * is_cited(source.paper, need.text))
            for (need, sources), of_need in zip(asked, odds, strict=True)
            for source, each in zip(sources, of_need, strict=True)
        ]

    async def _listed(self, passages: Sequence[NearPassage], statement: str) -> str:
        sentences = [statement[start:end] for start, end in sentence_spans(statement)]
        nearest = (await self._scores.cosines(sentences, [item.source.evidence.quote for item in passages])).argmax(1)
        return "\n".join(
            _item(item.source, int(place) + 1 if len(sentences) > 1 else 0, less=item.odds < _NEAR)
            for item, place in zip(passages, nearest, strict=True)
        )


def place_passages(
    near: Sequence[NearPassage], stated: Set[str], earlier: str
) -> tuple[dict[str, list[NearPassage]], list[NearPassage]]:
    """The passages to list by need, nearest first, and those that an earlier section of the paper lists already.

    `stated` are the needs with a paragraph in the section, `earlier` the text of earlier sections. Each passage is
    listed once, where it is nearest; the more passages of its paper are listed, the nearer a further one has to be. If
    a section has few papers, the best passages of others are added, whatever need they were found for.
    """
    placed: dict[str, list[NearPassage]] = {}
    again: list[NearPassage] = []
    papers: Counter[str] = Counter()
    listed: set[str] = set()

    def take(item: NearPassage) -> None:
        key, here = item.source.paper.key, placed.setdefault(item.need, [])
        of_paper = sum(other.source.paper.key == key for other in here)
        if item.words in listed or len(here) >= _OF_A_NEED or of_paper >= _OF_A_PAPER:
            return
        (again if item.marker in earlier else here).append(item)
        papers[key] += 1
        listed.add(item.words)

    ranked = sorted(near, key=lambda item: -item.odds)
    for item in ranked:
        least = _NEAR + _USED_IN_SECTION * papers[item.source.paper.key] * bool(placed.get(item.need))
        if item.need in stated and item.marker not in earlier and item.odds >= least:
            take(item)
    for item in ranked:
        if len(papers) < _PAPERS and item.source.paper.key not in papers and item.odds >= _FAINT:
            take(item)
    return {need: items for need, items in placed.items() if items}, again


class ExtractiveAnswerer(_Repairless):
    """Implements `AnswerWriter`: the passages nearest to each part of the question."""

    def __init__(self, scores: PassageScores) -> None:
        self._scores = scores

    async def write(self, brief: AnswerBrief, listener: TextListener | None = None) -> Draft:
        """The passages by need, nearest first; empty when nothing is near."""
        blocks: list[str] = []
        far: list[str] = []
        taken: list[NearPassage] = []
        # Parts of the question label passages better than the whole question, which gets the rest.
        most, of_paper = (_OF_A_NEED, _OF_A_PAPER) if len(brief.needs) > 1 else (_OF_A_QUESTION, _OF_A_NEED)
        for need in [*brief.needs[1:], *brief.needs[:1]]:
            sources = _sources_of(need, brief.sources)
            odds = await self._scores.answers(need.need.text, sources)
            near = [NearPassage(need.need.id, *each) for each in zip(sources, odds, strict=True)]
            if not (passages := choose_passages(near, taken, most, of_paper, brief.most_papers)):
                far.append(need.need.text)
                continue
            taken += passages
            head = "the whole question" if need is brief.needs[0] else _quoted(need.need.text)
            several = f"*Passages near to {head}, nearest first, not judged:*"
            ranked = sorted(passages, key=lambda item: -item.odds)
            blocks += [several if len(brief.needs) > 1 else EVIDENCE, "\n".join(_item(item.source) for item in ranked)]
        if blocks and (far := [text for text in far if text != brief.needs[0].need.text]):
            blocks += [NOTHING_NEAR, "\n".join(f"- {_quoted(text)}" for text in far)]
        return Draft("\n\n".join(blocks))


def choose_passages(
    near: Sequence[NearPassage], taken: Sequence[NearPassage], most: int, of_paper: int, most_papers: int | None
) -> list[NearPassage]:
    """The passages with the best scores for a part of a question, without those `taken` for other parts.

    Papers not used before are preferred. A passage is repeated only if there is no other.
    """
    used = {item.marker for item in taken}
    left = [item for item in near if item.marker not in used]
    papers = Counter(item.source.paper.key for item in taken)
    found: list[NearPassage] = []
    here: Counter[str] = Counter()

    def worth(item: NearPassage) -> float:
        return item.source.evidence.llm_score - _USED_BEFORE * papers[item.source.paper.key]

    while left and len(found) < most:
        best = max(left, key=worth)
        left.remove(best)
        key = best.source.paper.key
        full = most_papers is not None and key not in papers and len(papers) >= most_papers
        if here[key] < of_paper and not full:
            found.append(best)
            here[key] += 1
            papers[key] += 1
    return found or list(near[:1])


def _sources_of(need: NeedCoverage, sources: Sequence[Source]) -> list[Source]:
    """The passages found for a need, best first."""
    known = {source.evidence.id: source for source in sources}
    return [known[name] for name in need.evidence if name in known]


def _item(source: Source, sentence: int = 0, *, less: bool = False) -> str:
    """A passage as a list item: quote, marker, place, the number of the statement's sentence that it is near to."""
    evidence = source.evidence
    page = "" if evidence.page is None else f", page {evidence.page}"
    section = one_line(_MARKUP.sub(" ", evidence.section)) or "no section title"
    how = "less near" if less else "near"
    near_to = f"; {how} to sentence {sentence}" if sentence else f"; {how}" if less else ""
    return f"- “{as_text(one_line(evidence.quote))}” [{evidence.id}], in “{as_text(section)}”{page}{near_to}"


def _quoted(text: str) -> str:
    """The first words of a statement in quotation marks."""
    words = one_line(text).replace("“", '"').replace("”", '"').split()
    return as_text(f"“{' '.join(words[:_LABEL])}{' …' if len(words) > _LABEL else ''}”")
