"""Makes paper cards: what a person wants to know before opening a paper, in at most 130 tokens.

A screener reads cards to name the papers that may bear on a question. A card is made by rules from a paper's data in
the library (abstract or summary, headings, methods), at no cost and without storage. It is never evidence or quoted.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Collection, Sequence
from itertools import islice, zip_longest
from typing import TYPE_CHECKING, Final

from ..documents import Category, Chunk, Paper
from ..documents.chunking import Window
from ..documents.plain_text import plain_text
from ..models.concurrency import gather_all
from ..roles.protocols import Need, PaperCard, PassageFinding, Purpose, ScreenedPapers
from ..stores.library import Library
from ..text.sentences import sentence_spans
from ..text.words import one_of, read_rules
from .found_evidence import FoundEvidence
from .scope import Scope

if TYPE_CHECKING:
    from ..roles.chat.chat_reader import ChatScreener

_RULES: Final = read_rules(__file__, "question_rules")
_KINDS: Final = {
    kind: re.compile(pattern, re.IGNORECASE | re.MULTILINE) for kind, pattern in _RULES["kinds_of_study"].items()
}
_SAMPLE: Final = one_of(_RULES["abstracts"]["sample"])
_AIM, _OUTCOME, _DESIGN, _STANDARD = (
    one_of(_RULES["abstracts"][name], re.IGNORECASE) for name in ("aim", "outcome", "design", "standard")
)
_SENTENCE: Final = 180  # characters
_SECTIONS: Final = 4
_SECTION: Final = 45  # characters
_SAMPLES: Final = 3
_METHOD_CHUNKS: Final = 2  # chunks searched for numbers of subjects
_NO_SCOPE: Final = frozenset({Category.ABSTRACT, Category.INTRODUCTION, Category.CONCLUSION})


async def screen_papers(
    library: Library, screener: ChatScreener, purpose: Purpose, scope: Scope, most: int, known: Collection[str] = ()
) -> ScreenedPapers:
    """Find the papers that may bear on each need.

    Reads the cards of all papers in `scope`, or of the `most` papers nearest to the needs by summary, except `known`
    ones.
    """
    keys = set(await keys_to_screen(library, purpose, scope, most)).difference(known)
    cards = await asyncio.to_thread(make_cards, library, frozenset(keys))
    return await screener.screen(purpose, cards) if cards else ScreenedPapers({})


async def keys_to_screen(library: Library, purpose: Purpose, scope: Scope, most: int) -> list[str]:
    """Return the keys of the papers in scope, or of the `most` papers nearest to the needs by summary."""
    keys = [paper.key for paper in library.papers() if scope.holds(paper)]
    if len(keys) <= most:
        return keys
    within = frozenset(keys)
    vectors = await gather_all(library.embedding.embed_query(need.queries[0]) for need in purpose.needs)
    near = await asyncio.to_thread(
        lambda: [library.nearest_papers(vector, len(library.papers())) for vector in vectors]
    )
    rankings = [[item.paper.key for item in items if item.paper.key in within] for items in near]
    # The paper nearest to each need in turn, then the second nearest ...
    turns = (key for turn in zip_longest(*rankings) for key in turn if key is not None)
    return list(islice(dict.fromkeys(turns), most))


def make_cards(library: Library, keys: Collection[str] | None = None) -> list[PaperCard]:
    """Make the cards of these papers, or of all, in the order of their keys; blocks."""
    return [_make_card(library, paper) for paper in library.papers() if keys is None or paper.key in keys]


def _make_card(library: Library, paper: Paper) -> PaperCard:
    abstract = plain_text(paper.abstract or library.summary(paper.key))
    sentences = [" ".join(abstract[start:end].split()) for start, end in sentence_spans(abstract)]
    lines = [
        f"{paper.title} ({paper.year or 'n.d.'})",
        *(_shorten(sentences[place], _SENTENCE) for place in _telling_places(sentences)),
    ]
    kind = [kind for kind, pattern in _KINDS.items() if pattern.search(paper.title) or pattern.search(abstract)][:1]
    if design := [*kind, *_find_samples(library, paper.key, abstract)]:
        lines.append(f"Design: {'; '.join(design)}")
    # The headings of a study with participants name its procedures, not its topic.
    has_participants = any(part[0].isdigit() or part.startswith("n") for part in design)
    if not has_participants and (titles := _part_titles(library, paper.key)):
        lines.append(f"Parts: {'; '.join(titles)}")
    return PaperCard(paper.key, "\n".join(lines))


def _find_samples(library: Library, key: str, abstract: str) -> list[str]:
    """Find the numbers and kinds of participants in the abstract, else at the beginning of the methods."""
    found = [match.group() for match in _SAMPLE.finditer(abstract)]
    if not found:
        rows = library.catalog.chunk_rows(keys=[key], categories=[Category.METHOD])[:_METHOD_CHUNKS]
        methods = "\n\n".join(plain_text(chunk.text) for chunk in library.chunks([row.id for row in rows]))
        found = [match.group() for match in _SAMPLE.finditer(methods)]
    return list(dict.fromkeys(found))[:_SAMPLES]


def _telling_places(sentences: Sequence[str]) -> list[int]:
    """Find one sentence on the aim and one on the result, else the first and the last; returns their indices."""
    if not sentences:
        return []
    aim = next((place for place, text in enumerate(sentences) if _AIM.search(text)), 0)
    outcomes = [place for place, text in enumerate(sentences) if place != aim and _OUTCOME.search(text)]
    return list(dict.fromkeys([aim, outcomes[-1] if outcomes else len(sentences) - 1]))


def find_statement(library: Library, key: str, rule: str) -> tuple[Chunk, int, int] | None:
    """Find the sentence of the abstract, else the methods, that states the sample, design, aim or result; blocks.

    Returns the last such sentence for a result, else the first.
    """
    patterns = {"sample": [_SAMPLE], "design": [_DESIGN, *_KINDS.values()], "aim": [_AIM], "result": [_OUTCOME]}[rule]
    sections = (Category.ABSTRACT, Category.METHOD)
    rows = [
        row for one in sections for row in library.catalog.chunk_rows(keys=[key], categories=[one])[:_METHOD_CHUNKS]
    ]
    for chunk in library.chunks([row.id for row in rows]):
        spans = [
            span for span in sentence_spans(chunk.text) if any(p.search(chunk.text[slice(*span)]) for p in patterns)
        ]
        if spans:
            return (chunk, *spans[-1 if rule == "result" else 0])
    return None


def nearest_findings(
    library: Library, need: Need, windows: Sequence[Window], named: Sequence[str], most: int
) -> list[FoundEvidence]:
    """Return what the nearest papers studied and found, in their own words; blocks.

    For a question that no passage helps to answer. The papers are those `named`, then those with the nearest windows.
    Since no finding helps with the need, their scores are 0.
    """
    cosines = {window.paper.key: window.vector_score for window in sorted(windows, key=lambda one: one.vector_score)}
    keys = [key for key in named if key in {paper.key for paper in library.papers()}]
    found: list[FoundEvidence] = []
    for key in list(dict.fromkeys([*keys, *sorted(cosines, key=lambda key: -cosines[key])]))[:most]:
        abstract = [row.id for row in library.catalog.chunk_rows(keys=[key], categories=[Category.ABSTRACT])]
        own = [chunk.id for window in windows if window.paper.key == key for chunk in window.chunks]
        for chunk in library.chunks([*abstract, *own][:1]):
            spans = [span for span in sentence_spans(chunk.text) if any(map(str.isalpha, chunk.text[slice(*span)]))]
            places = sorted(_telling_places([" ".join(chunk.text[start:end].split()) for start, end in spans]))
            if places:
                statement = plain_text(" ".join(chunk.text[slice(*spans[place])] for place in places))
                chosen = tuple((chunk, *spans[place]) for place in places)
                score = cosines.get(key, 0.0)
                finding = PassageFinding(library.paper(key), " ".join(statement.split()), 0.0, need.id, chosen, score)
                found.append(FoundEvidence(finding, score, need.search))
    return found


def _part_titles(library: Library, key: str) -> list[str]:
    sections = [section for section in library.sections(key) if section.searchable and section.title]
    named = [
        section
        for section in sections
        if section.category not in _NO_SCOPE and not _STANDARD.fullmatch(section.title.strip(" .:0123456789"))
    ]
    top = sorted({section.level for section in named})[:2]
    titles = [_shorten(plain_text(section.title), _SECTION) for section in named if section.level in top]
    return list(dict.fromkeys(titles))[:_SECTIONS]


def _shorten(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[:most].rsplit(' ', 1)[0]} ..."
