"""Keeps the user's own citations verbatim, since no writer or check may remove them, and links them to the library."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final

from ..documents import Paper
from ..documents.blocks import field_blocks
from ..documents.marker_escaping import as_text, as_written
from ..experiment import Experiment, SectionKind
from ..plurals import counted
from ..roles.extractive.section_outlines import failed_statement
from ..section_kinds import SECTIONS
from ..text.sentences import sentence_spans
from ..text.words import plain_wording
from .checks.fabricated_citations import find_fabricated
from .checks.findings import shown
from .cited_works import WorkIndex, find_author_year_works, find_marks
from .quotations import verbatim_spans

# Fields that an abstract only summarises.
_IN_SHORT: Final = frozenset(
    field for kind in ("discussion", "results", "conclusion") for field in SECTIONS[kind].stated
) | {"paper_concept.description", "hypothesis.description"}
# A URL that identifies a work rather than a repository or home page.
_WORK = re.compile(r"\b10\.\d{4,9}/|arxiv|pmc?i?d|PMC\d|ISBN", re.IGNORECASE)
_TEXT_FIELDS: Final = ("experimental_plan", "results", "reasoning", "verdict", "summary")
_WORDS_MOST: Final = 4_000  # characters of a statement to search for in a text


@dataclass(frozen=True, slots=True)
class CitingStatement:
    """A sentence with citations from a field, or a list or table with such a line."""

    field: str
    text: str
    citations: tuple[str, ...]
    block: bool = False


@dataclass(frozen=True, slots=True)
class UserCitation:
    """A user's citation at `start:end` of a text; `keys` are the papers in the library that it names."""

    citation: str
    sentence: str
    field: str
    keys: tuple[str, ...]
    start: int
    end: int

    def as_dict(self) -> dict[str, Any]:
        """The plain form of the JSON output; `linked` is true if the library has the cited papers."""
        return {**asdict(self), "keys": list(self.keys), "linked": bool(self.keys)}


def citing_statements(experiment: Experiment, known_keys: Sequence[str] = ()) -> list[CitingStatement]:
    """The statements of the experiment's prose that contain a citation, in the order of its fields."""
    keys, concept, hypothesis = frozenset(known_keys), experiment.paper_concept, experiment.hypothesis
    prose = [
        ("paper_concept.description", concept.description),
        *((f"paper_concept.open_questions[{place}]", text) for place, text in enumerate(concept.open_questions)),
        ("hypothesis.description", hypothesis.description),
        ("hypothesis.method_combination", hypothesis.method_combination),
        *((name, getattr(experiment, name)) for name in _TEXT_FIELDS),
        *((f"plots[{place}].caption", plot.caption) for place, plot in experiment.found_plots()),
    ]
    return [item for field, text in prose for item in _citing(field, text, keys)]


def insert_user_statements(
    text: str, kind: SectionKind, experiment: Experiment, earlier: Sequence[str] = (), known_keys: Sequence[str] = ()
) -> str:
    """Insert the statements that the user's fields require: those with citations, and the one that the run failed.

    A statement that already occurs verbatim in the draft or an earlier section is not repeated. A missing one is
    inserted after the paragraph that shares most of its words. A draft without any text stays empty, which is a failure
    of its section.
    """
    if not any(map(str.isalnum, text)):
        return ""
    existing = plain_wording(as_written("\n\n".join([text, *earlier])))
    for item in citing_statements(experiment, known_keys):
        here = any(item.field == field or item.field.startswith(f"{field}[") for field in SECTIONS[kind].stated)
        if not here or plain_wording(as_written(item.text)) in existing:
            continue
        paragraphs, wanted = text.split("\n\n"), set(plain_wording(item.text).split())
        shared = [len(wanted & set(plain_wording(paragraph).split())) for paragraph in paragraphs]
        place = shared.index(max(shared))
        words = item.text if item.block or item.text[-1:] in ".?!" else f"{item.text.rstrip(';:,')}."
        if item.block or paragraphs[place].lstrip()[:1] in ("|", "#", "-", "*", ">", "`"):
            paragraphs.insert(place + 1, words)
        else:
            paragraphs[place] = f"{paragraphs[place].rstrip()} {words}"
        text = "\n\n".join(paragraphs)
    failed = failed_statement(kind, experiment)
    return text if not failed or plain_wording(failed) in existing else f"{failed}\n\n{text}"


def left_to_other_sections(
    text: str, kind: SectionKind, experiment: Experiment, earlier: Sequence[str] = (), known_keys: Sequence[str] = ()
) -> list[str]:
    """A warning that names citing statements left out of an abstract, unless an earlier section has them."""
    if kind != "abstract":
        return []
    existing = plain_wording(as_written("\n\n".join([text, *earlier])))
    statements = [item for item in citing_statements(experiment, known_keys) if item.field in _IN_SHORT]
    left = [item for item in statements if plain_wording(as_written(item.text)) not in existing]
    if not left:
        return []
    named = "; ".join(f'"{shown(item.text)}" ({item.field})' for item in left)
    cite, are = ("cites", "is") if len(left) == 1 else ("cite", "are")
    return [
        f"exp.json: an abstract has no citations, so {counted(len(left), 'sentence')} of yours that {cite} a"
        f" source {are} left to the other sections: {named}."
    ]


def with_literal_markers(text: str, own_words: str) -> str:
    """Escape apparent markers in a model's draft that are part of the user's own words."""
    marked = as_text(own_words)
    if marked == own_words:
        return text
    # From the word before each group of replaced brackets to its end.
    places = [n for n, (one, other) in enumerate(zip(own_words, marked, strict=True)) if one != other]
    groups: set[str] = set()
    for opening, closing in zip(places[::2], places[1::2], strict=False):
        before = own_words[max(0, opening - 60) : opening].split()[-1:]
        groups.add(own_words[own_words.rfind(before[0], 0, opening) if before else opening : closing + 1])
    for group in sorted(groups, key=lambda words: (-len(words), words)):
        text = text.replace(group, as_text(group))
    return text


def with_literal_quotes(text: str, passages: Sequence[str]) -> str:
    """Escape apparent markers in a draft's verbatim quotations that are part of the quoted passage."""
    for start, end in verbatim_spans(text, passages) if as_text(text) != text else ():
        quotation = text[start:end]
        for passage in passages:
            quotation = with_literal_markers(quotation, passage)  # keeps the length
        text = text[:start] + quotation + text[end:]
    return text


def find_user_citations(text: str, experiment: Experiment, papers: Sequence[Paper]) -> list[UserCitation]:
    """The user's citations in a finished text that still has its markers."""
    text = as_written(text)
    keys = [paper.key for paper in papers]
    found: dict[tuple[int, int], UserCitation] = {}
    for item in citing_statements(experiment, keys):
        words = as_written(item.text)[:_WORDS_MOST].rstrip(" .;:,").split()
        place = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
        if place is None:
            continue
        done = place.start()
        for citation in item.citations:
            written = re.compile(r"\s+".join(map(re.escape, citation.split())))
            if at := written.search(text, done, place.end() + 1):
                done = at.end()
                keys_cited = _keys(citation, papers)
                found[at.span()] = UserCitation(citation, as_written(item.text), item.field, keys_cited, *at.span())
    return [found[at] for at in sorted(found)]


@lru_cache(maxsize=256)
def _citing(field: str, text: str, known_keys: frozenset[str]) -> tuple[CitingStatement, ...]:
    found: list[CitingStatement] = []
    for block in field_blocks(text):
        cited = [
            (item.start, block.text[item.start : item.end])
            for item in find_fabricated(block.text, known_keys=known_keys)
            if item.kind != "identifier" or _WORK.search(block.text, item.start, item.end)
        ]
        starts = [start for start, _ in cited]
        flowing = block.kind == "paragraph"
        for start, end in sentence_spans(block.text) if cited and flowing else [(0, len(block.text))]:
            here = tuple(words for _, words in cited[slice(bisect_left(starts, start), bisect_left(starts, end))])
            if here:
                found.append(CitingStatement(field, as_text(block.text[start:end]), here, not flowing))
    return tuple(found)


def _keys(citation: str, papers: Sequence[Paper]) -> tuple[str, ...]:
    """The papers that a citation names, by key or by authors and year; ambiguous names match none."""
    index = WorkIndex(papers)
    keys = {paper.key for paper in papers}
    works = [work for mark in find_marks(citation, keys) for work in mark.works] or find_author_year_works(
        f"({citation})"
    )
    bare = [key for key in re.split(r"[\s,;]+", citation.strip("()[] ")) if key in keys]
    named = [paper.key for paper in papers if paper.doi and paper.doi.casefold() in citation.casefold()]
    return tuple(dict.fromkeys(key for key in (*map(index.key_of, works), *bare, *named) if key))
