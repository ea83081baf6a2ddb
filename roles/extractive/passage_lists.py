"""Writes sections and answers without a chat model: the author's own paragraphs, with lists of the nearest passages.

Nothing is composed, argued or judged. A passage is a verbatim sentence with its place, nearest first; the last line
names the statements without near passages.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence, Set
from dataclasses import dataclass, replace
from typing import Final

from ...documents.marker_escaping import escape_markers
from ...models.journal.streaming import TextListener
from ...plurals import counted
from ...text.words import one_line, shorten
from ..protocols import AnswerBrief, Brief, Draft, SectionBrief, Source, Writer
from .passage_scores import CITED, PassageScores, genre_of, topic_of
from .section_outlines import note_used_parts, outline
from .statement_needs import is_cited

_OF_A_NEED: Final = 3  # passages
_OF_A_QUESTION: Final = 8  # passages, for a question without parts
_OF_A_PAPER: Final = 2  # passages of one paper for one need
_USED_BEFORE: Final = 0.25  # score deducted per earlier passage of the same paper in an answer
_USED_IN_SECTION: Final = 0.7  # log-odds deducted per earlier passage of the same paper in a section
_NEAR: Final = 0.8  # minimum log-odds of a passage listed under a statement
_OF_SUBJECT: Final = 3.0  # minimum log-odds of a passage near the subject that adds a paper to a section with few
_PAPERS: Final = 4  # in a section; if there are fewer, a note says so
SUBJECT: Final = ""  # replaces the id of a need
# At most five words, so that these labels do not count as sentences that a paper repeats.
OF_SUBJECT: Final = "*Nearest to the subject, unjudged:*"
EVIDENCE: Final = "*Nearest in your library, unjudged:*"
ELSEWHERE: Final = "*Near too, listed elsewhere:*"
SUBJECT_ELSEWHERE: Final = "*Near the subject, listed elsewhere:*"
NOTHING_NEAR: Final = "*Nothing near in your library to {}.*"
_NAMED: Final = 60  # shown characters of a statement without near passages
_MARKUP: Final = re.compile(r"[][{}()“”@*_`$|<>\\#;]+")


@dataclass(frozen=True, slots=True)
class NearPassage:
    """A passage near a need, with its log-odds; `elsewhere` if it is listed under another need or section."""

    need: str
    source: Source
    odds: float
    elsewhere: bool = False

    @property
    def words(self) -> str:
        """The quoted words on one line, which identify a passage found twice."""
        return one_line(self.source.evidence.quote)

    @property
    def marker(self) -> str:
        return f"[{self.source.evidence.id}]"


class ExtractiveWriter(Writer):
    """Implements `Writer`: the same brief always gives the same draft, which needs no repair."""

    def __init__(self, scores: PassageScores) -> None:
        self._scores = scores

    async def write(self, brief: Brief, listener: TextListener | None = None) -> Draft:
        return await (self._write_answer(brief) if isinstance(brief, AnswerBrief) else self._write_section(brief))

    async def _write_section(self, brief: SectionBrief) -> Draft:
        """Write the section; notes name omitted parts of the experiment, and tell if few papers are near."""
        paragraphs = outline(brief.kind, brief.experiment, of_paper=brief.earlier is not None)
        needs = {item.need.text: item.need for item in brief.needs}
        stated = {needs[item.about].id for item in paragraphs if item.about in needs}
        said = "\n".join(section.text for section in brief.earlier or ())
        placed = place_passages(await self._near(brief, stated), said)
        papers = {item.source.paper.key for items in placed.values() for item in items}
        blocks: list[str] = []
        without: list[str] = []
        for paragraph in paragraphs:
            blocks.append(paragraph.text)
            if need := needs.pop(paragraph.about, None):
                listed = _format_list(placed.pop(need.id, []), EVIDENCE)
                blocks += listed
                without += [f"“{escape_markers(shorten(need.text, _NAMED))}”"] * (not listed)
        blocks += _format_list(placed.pop(SUBJECT, []), OF_SUBJECT, SUBJECT_ELSEWHERE)
        if without:
            blocks.append(NOTHING_NEAR.format("; ".join(without)))
        notes = note_used_parts(brief.kind, brief.experiment)
        if len(papers) < _PAPERS:
            found = counted(len(papers), "paper") if papers else "no paper"
            notes.append(f"Passages near the {brief.kind} were found in {found} of your library.")
        return Draft("\n\n".join(blocks), notes=tuple(notes))

    async def _near(self, brief: SectionBrief, stated: Set[str]) -> list[NearPassage]:
        concept, topic = brief.experiment.paper_concept, topic_of(item.need for item in brief.needs)
        quoted = [(source.evidence.quote, source.category) for source in brief.sources]
        about = f"{concept.title}. {concept.description}"
        by_paper = await self._scores.of_subject(about, brief.sources)
        odds = {
            item.need: by_paper + await self._scores.statements(item.need, topic, quoted, crossed=True)
            for item in brief.needs
        }
        papers = [source.paper for source in brief.sources]
        of_subject = await self._scores.subject(about, papers, list(odds.values()))
        near = [NearPassage(SUBJECT, *each) for each in zip(brief.sources, of_subject, strict=True)]
        return near + [
            NearPassage(need.id, source, each + CITED * (source.evidence.chosen or is_cited(source.paper, need.text)))
            for need, of_need in odds.items()
            if need.id in stated
            for source, each in zip(brief.sources, of_need, strict=True)
            if need.asks == "method"
            or source.evidence.chosen
            or is_cited(source.paper, need.text)
            or genre_of(one_line(source.evidence.quote)) != "detail"
        ]

    async def _write_answer(self, brief: AnswerBrief) -> Draft:
        """List the passages nearest to each part of the question; empty when nothing is near."""
        blocks: list[str] = []
        taken: list[NearPassage] = []
        known = {source.evidence.id: source for source in brief.sources}
        whole, parts = brief.needs[:1], brief.needs[1:]
        # Parts of the question come first, since they label passages better than the whole question.
        most, of_paper = (_OF_A_NEED, _OF_A_PAPER) if parts else (_OF_A_QUESTION, _OF_A_NEED)
        for need in (*parts, *whole):
            sources = [known[name] for name in need.evidence if name in known]
            odds = await self._scores.answers(need.need.text, sources)
            near = [NearPassage(need.need.id, *each) for each in zip(sources, odds, strict=True)]
            passages = choose_passages(near, taken, most, of_paper, brief.most_papers)
            taken += passages
            words = "the whole question" if need in whole else f"“{escape_markers(one_line(need.need.text))}”"
            if passages:
                ranked = sorted(passages, key=lambda item: -item.odds)
                blocks.append(f"*Nearest to {words}, unjudged:*" if parts else EVIDENCE)
                blocks.append("\n".join(_list_item(item.source) for item in ranked))
            elif need in parts:
                blocks.append(NOTHING_NEAR.format(words))
        return Draft("\n\n".join(blocks) if taken else "")


def place_passages(near: Sequence[NearPassage], earlier: str) -> dict[str, list[NearPassage]]:
    """Choose the passages to list by need, nearest first; `earlier` is the text of the paper's earlier sections.

    Each passage is listed once, where it is nearest. The more passages of its paper are listed, the nearer a further
    one must be. While a section has few papers, papers near the subject are added. A statement whose near passages are
    all listed elsewhere refers to them.
    """
    placed: dict[str, list[NearPassage]] = {}
    papers: Counter[str] = Counter()
    listed: set[str] = set()

    def take(item: NearPassage) -> None:
        key, here = item.source.paper.key, placed.setdefault(item.need, [])
        of_paper = sum(other.source.paper.key == key for other in here)
        if (
            item.words not in listed
            and len(here) < (_PAPERS if item.need == SUBJECT else _OF_A_NEED)
            and of_paper < _OF_A_PAPER
        ):
            here.append(replace(item, elsewhere=item.marker in earlier))
            papers[key] += 1
            listed.add(item.words)

    ranked = sorted(near, key=lambda item: -item.odds)
    of_statements = [item for item in ranked if item.need != SUBJECT and item.odds >= _NEAR]
    for item in of_statements:
        least = _NEAR + _USED_IN_SECTION * papers[item.source.paper.key] * bool(placed.get(item.need))
        if item.marker not in earlier and item.odds >= least:
            take(item)
    for item in ranked:
        few = len(papers) < _PAPERS and item.source.paper.key not in papers
        if item.need == SUBJECT and few and item.odds >= _OF_SUBJECT:
            take(item)
    for item in of_statements:
        here = placed.setdefault(item.need, [])
        if len(here) < _OF_A_NEED and all(other.elsewhere for other in here):
            here.append(replace(item, elsewhere=True))
    return placed


def choose_passages(
    near: Sequence[NearPassage], taken: Sequence[NearPassage], most: int, of_paper: int, most_papers: int | None
) -> list[NearPassage]:
    """Choose the best passages for a part of a question, preferring new papers.

    Passages `taken` for other parts are used only if there are no others.
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


def _format_list(passages: Sequence[NearPassage], heading: str, label: str = ELSEWHERE) -> list[str]:
    """Format a list: the passages under a heading, then markers of passages listed elsewhere."""
    lines = [_list_item(item.source) for item in passages if not item.elsewhere]
    elsewhere = ", ".join(item.marker for item in passages if item.elsewhere)
    label = ELSEWHERE if lines else label
    return [heading, "\n".join(lines)] * bool(lines) + [f"{label} {elsewhere}"] * bool(elsewhere)


def _list_item(source: Source) -> str:
    """Format a passage as a list item: quote, marker and place."""
    evidence = source.evidence
    page = "" if evidence.page is None else f", page {evidence.page}"
    section = one_line(_MARKUP.sub(" ", evidence.section)) or "no section title"
    return f"- “{escape_markers(one_line(evidence.quote))}” [{evidence.id}], in “{escape_markers(section)}”{page}"
