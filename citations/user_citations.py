"""The user's own citations: kept verbatim in a draft, linked to the library, and mapped back to markers after an edit.

No writer or check may remove what the user cites. The user edits the text as it was rendered: a citation that names a
paper of the evidence becomes its markers (`(smith2024)` or `[3]` becomes `[E3]`); anything else stays text, which the
checks report when it reads like a citation.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property, lru_cache
from typing import Any, Final

from ..documents import Evidence, Paper
from ..documents.blocks import field_blocks
from ..documents.marker_escaping import escape_markers, unescape
from ..experiment import Experiment, SectionKind
from ..plurals import counted
from ..roles.extractive.section_outlines import failure_statement
from ..section_kinds import SECTIONS
from ..settings.config import CitationStyle
from ..text.sentences import replace_spans, sentence_spans
from ..text.words import STOP_WORDS, one_line, plain_wording
from .checks.fabricated_citations import NEEDED, find_fabricated
from .checks.findings import shorten_words
from .citation_styles import MARKS, show_group
from .cited_works import (
    LATEX_CITATION,
    NUMBER_LIST,
    WorkIndex,
    expand_numbers,
    find_author_year_works,
    find_marks,
    pages_in,
    parse_keys,
)
from .markers import marker_groups, marker_ids, normalise_markers, verbatim_spans

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
    existing = plain_wording(unescape("\n\n".join([text, *earlier])))
    for item in citing_statements(experiment, known_keys):
        here = any(item.field == field or item.field.startswith(f"{field}[") for field in SECTIONS[kind].stated)
        if not here or plain_wording(unescape(item.text)) in existing:
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
    failed = failure_statement(kind, experiment)
    return text if not failed or plain_wording(failed) in existing else f"{failed}\n\n{text}"


def left_to_other_sections(
    text: str, kind: SectionKind, experiment: Experiment, earlier: Sequence[str] = (), known_keys: Sequence[str] = ()
) -> list[str]:
    """A warning that names citing statements left out of an abstract, unless an earlier section has them."""
    if kind != "abstract":
        return []
    existing = plain_wording(unescape("\n\n".join([text, *earlier])))
    statements = [item for item in citing_statements(experiment, known_keys) if item.field in _IN_SHORT]
    left = [item for item in statements if plain_wording(unescape(item.text)) not in existing]
    if not left:
        return []
    named = "; ".join(f'"{shorten_words(item.text)}" ({item.field})' for item in left)
    cite, are = ("cites", "is") if len(left) == 1 else ("cite", "are")
    return [
        f"exp.json: an abstract has no citations, so {counted(len(left), 'sentence')} of yours that {cite} a"
        f" source {are} left to the other sections: {named}."
    ]


def with_literal_markers(text: str, own_words: str) -> str:
    """Escape apparent markers in a model's draft that are part of the user's own words."""
    marked = escape_markers(own_words)
    if marked == own_words:
        return text
    # From the word before each group of replaced brackets to its end.
    places = [n for n, (one, other) in enumerate(zip(own_words, marked, strict=True)) if one != other]
    groups: set[str] = set()
    for opening, closing in zip(places[::2], places[1::2], strict=False):
        before = own_words[max(0, opening - 60) : opening].split()[-1:]
        groups.add(own_words[own_words.rfind(before[0], 0, opening) if before else opening : closing + 1])
    for group in sorted(groups, key=lambda words: (-len(words), words)):
        text = text.replace(group, escape_markers(group))
    return text


def with_literal_quotes(text: str, passages: Sequence[str]) -> str:
    """Escape apparent markers in a draft's verbatim quotations that are part of the quoted passage."""
    for start, end in verbatim_spans(text, passages) if escape_markers(text) != text else ():
        quotation = text[start:end]
        for passage in passages:
            quotation = with_literal_markers(quotation, passage)  # keeps the length
        text = text[:start] + quotation + text[end:]
    return text


def find_user_citations(text: str, experiment: Experiment, papers: Sequence[Paper]) -> list[UserCitation]:
    """The user's citations in a finished text that still has its markers."""
    text = unescape(text)
    keys = [paper.key for paper in papers]
    found: dict[tuple[int, int], UserCitation] = {}
    for item in citing_statements(experiment, keys):
        words = unescape(item.text)[:_WORDS_MOST].rstrip(" .;:,").split()
        place = re.search(r"\s+".join(map(re.escape, words)), text) if words else None
        if place is None:
            continue
        done = place.start()
        for citation in item.citations:
            written = re.compile(r"\s+".join(map(re.escape, citation.split())))
            if at := written.search(text, done, place.end() + 1):
                done = at.end()
                keys_cited = _keys(citation, papers)
                found[at.span()] = UserCitation(citation, unescape(item.text), item.field, keys_cited, *at.span())
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
                found.append(CitingStatement(field, escape_markers(block.text[start:end]), here, not flowing))
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


_MOST: Final = 3  # passages of a newly cited paper that the sentence is compared with
_GROUP = re.compile(rf"{LATEX_CITATION}|\[(?P<square>[^\[\]]{{1,400}})\]|\((?P<round>[^()]{{1,400}})\)")
_LOCATED = re.compile(r"\s*(\d{1,4}),\s*pp?\.\s*\d[\d\s,\u2013-]{0,80}")
_WORD = re.compile(r"[^\W\d_]{4,}")


@dataclass(frozen=True)
class CitableEvidence:
    """What an edited sentence may cite: the evidence of the run, and the numbers of its papers."""

    evidence: Sequence[Evidence]
    style: CitationStyle
    numbering: Sequence[str] = ()

    def with_markers(self, words: str, original: str, *, covered: bool = False) -> str:
        """The edited `words` with markers in place of citations; `original` is the unedited sentence with markers.

        If that was `covered` by the citation of a later sentence, words without a citation keep its markers.
        """
        for mark in MARKS.values():  # inserted by rendering
            words = words if mark == NEEDED else words.replace(f" {mark}", "").replace(mark, "")
        words = one_line(words)
        cited = [
            (start, end, "".join(f"[{identifier}]" for identifier in ids))
            for start, end, ids in self._citations(words, original)
        ]
        kept = "".join(f"[{found}]" for found in marker_ids(original)) if covered and words and not cited else ""
        return normalise_markers(replace_spans(words, cited, escape_markers) + kept)

    def adds_citation(self, words: str, original: str, shown: str) -> bool:
        """Whether edited words have a citation that the sentence did not have as it was `shown`."""
        words = one_line(words)
        return any(words[start:end] not in shown for start, end, _ in self._citations(words, original))

    @classmethod
    def of_record(cls, record: Mapping[str, Any]) -> CitableEvidence:
        """The citable evidence of a published or stored record, with its numbering."""
        evidence = [Evidence.from_dict(dict(item)) for item in record["evidence"]]
        labels = {int(item["label"]): item["key"] for item in record["references"] if str(item["label"]).isdigit()}
        numbering = [labels.get(number, "") for number in range(1, max(labels, default=0) + 1)]
        return cls(evidence, "numeric" if numbering else "key", numbering)

    def text_with_markers(self, text: str) -> str:
        """A whole text with markers in place of citations, line by line."""
        return "\n".join(self.with_markers(line, "") for line in text.splitlines())

    def _citations(self, words: str, original: str) -> Iterator[tuple[int, int, tuple[str, ...]]]:
        by_id = {item.id: item for item in self.evidence}
        numbers = {key: number for number, key in enumerate(self.numbering, 1)}
        groups = [tuple(found for found in ids if found in by_id) for _, _, ids in marker_groups(original)]
        # The citations of the original sentence as they were rendered, with the evidence behind each.
        known = {show_group(ids, by_id, self.style, numbers): ids for ids in groups if ids}
        written = unescape(original)
        before = {identifier for ids in known.values() for identifier in ids}
        named = "|".join(re.escape(shown) for shown in sorted(known, key=len, reverse=True))
        either = re.compile(f"(?P<known>{named})|{_GROUP.pattern}") if named else _GROUP
        for match in either.finditer(words):
            if named and match["known"]:
                yield match.start(), match.end(), known[match["known"]]
                continue
            # A citation from the experiment itself was plain text before and stays so.
            cited = [] if match[0] in written else self._keys(match)
            ids = [found for key, pages in cited for found in self._evidence_for(key, pages, words, before)]
            if ids:
                yield match.start(), match.end(), tuple(dict.fromkeys(ids))

    def _keys(self, match: re.Match[str]) -> list[tuple[str, frozenset[int]]]:
        """The papers that a group names, with the pages; empty if it is not a citation of the evidence."""
        if match["keys"] is not None:
            pages = pages_in(f"p. {match['place'].lstrip('p.~ ')}" if match["place"] else "")
            keys = [key.strip() for key in match["keys"].split(",")]
            return [(key, pages) for key in keys] if all(key in self._held for key in keys) else []
        inside = match["square"] or match["round"]
        located = [(part, _LOCATED.fullmatch(part)) for part in inside.split(";")]
        numeric = match["square"] and self.style == "numeric"
        if numeric and all(at or NUMBER_LIST.fullmatch(part) for part, at in located):
            # "1, p. 4; 3": numbers, each with its pages
            cited = [
                (number, pages_in(part) if at else frozenset[int]())
                for part, at in located
                for number in ([int(at[1])] if at else expand_numbers(part))
            ]
            valid = all(1 <= number <= len(self.numbering) for number, _ in cited)
            return [(self.numbering[number - 1], pages) for number, pages in cited] if valid else []
        return [(work.key, work.pages) for work in parse_keys(inside, self._held)]

    @cached_property
    def _held(self) -> frozenset[str]:
        return frozenset(item.key for item in self.evidence)

    def _evidence_for(self, key: str, pages: frozenset[int], words: str, before: set[str]) -> list[str]:
        """The evidence of a paper that a citation stands for.

        The evidence that the sentence already cited, on the named pages if possible; for a newly cited paper, the
        passages that share the most words with the sentence.
        """
        own = [item for item in self.evidence if item.key == key]
        own = [item for item in own if item.page in pages] or own
        if cited := [item.id for item in own if item.id in before]:
            return cited
        said = set(_WORD.findall(words.casefold())) - STOP_WORDS
        ranked = sorted(own, key=lambda item: (-len(said & self._words[item.id]), item.id))
        return [item.id for item in ranked[:_MOST]]

    @cached_property
    def _words(self) -> dict[str, set[str]]:
        """The words of each evidence, which are compared with many sentences."""
        return {item.id: set(_WORD.findall(f"{item.quote} {item.summary}".casefold())) for item in self.evidence}
