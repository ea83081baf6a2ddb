"""Parses what a citation in a user's text names: keys, numbers, or authors and year, with locators."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

from ..documents import Paper
from ..text.words import read_rules
from .checks.unicode_folding import fold
from .citation_patterns import (
    CitationForm,
    NamedSource,
    citation_forms,
    matched_year,
    name_patterns,
    only_dates,
    split_authors,
)

_WORKS: Final = {name: re.compile(rule) for name, rule in read_rules(__file__, "citation_patterns")["works"].items()}
LATEX_CITATION: Final = _WORKS["latex_citation"].pattern
NUMBER_LIST: Final = _WORKS["number_list"]
_SMALL_DIGITS: Final = str.maketrans("\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079", "0123456789")
_LONGEST_RANGE: Final = 50
_NAMING: Final = ("pandoc", "latex", "numeric", "superscript", "author-year", "key")  # forms that name a work


@dataclass(frozen=True, slots=True)
class CitedWork:
    """One work that a citation names; `pages` are those of its locator, `others` is true for "et al."."""

    key: str = ""
    number: int | None = None
    authors: tuple[str, ...] = ()
    others: bool = False
    year: str = ""
    pages: frozenset[int] = frozenset()

    @property
    def shown(self) -> str:
        if self.key or self.number is not None:
            return self.key or str(self.number)
        return f"{' and '.join(self.authors)}{' et al.' if self.others else ''} {self.year}".strip()


@dataclass(frozen=True, slots=True)
class CitationMark:
    """A citation at `start:end` and the works that it names; `narrative` if it is a part of the sentence."""

    form: CitationForm
    start: int
    end: int
    works: tuple[CitedWork, ...]
    narrative: bool = False


def find_marks(text: str, known_keys: Collection[str] = ()) -> list[CitationMark]:
    """The citations that name works, in order, outside code; brackets may hold `known_keys` without a sign: `[key]`."""
    view = fold(text)
    known = frozenset(known_keys)
    found: list[CitationMark] = []
    for form, start, end in sorted(citation_forms(view), key=lambda item: (item[1], -item[2])):
        if form not in _NAMING or (view.in_code(view.starts[start]) and form != "latex"):
            continue
        words = view.text[start:end]
        works, narrative = _parse(form, words, known)
        if form == "pandoc" and narrative:  # `@key`, perhaps followed by a locator in brackets
            if behind := _WORKS["narrative_locator"].match(view.text, end, end + 80):
                works = tuple(replace(work, pages=pages_in(behind["place"])) for work in works)
            end = behind.end() if behind else start + len(words.rstrip(".,:;?!"))
        if works:
            found.append(CitationMark(form, *view.span(start, end), works, narrative))
    apart: list[CitationMark] = []
    for mark in found:  # of two that overlap, keep the longer one
        if not apart or mark.start >= apart[-1].end:
            apart.append(mark)
        elif mark.end - mark.start > apart[-1].end - apart[-1].start:
            apart[-1] = mark
    return _join_neighbours(text, apart)


def _parse(form: CitationForm, words: str, known: Collection[str]) -> tuple[tuple[CitedWork, ...], bool]:
    bracketed = words[:1] in ("[", "(")
    inside = words.strip("[]()") if bracketed else words
    if form == "pandoc":
        found = [(part, match) for part in inside.split(";") for match in _WORKS["at_key"].finditer(part)]
        keys = [(match[1] or match[2].rstrip(".,:;?!"), pages_in(part[match.end() :])) for part, match in found]
        return tuple(
            CitedWork(key, pages=at) for key, at in keys if not _WORKS["cross_reference"].match(key)
        ), not bracketed
    if form == "latex":
        named = (key.strip() for match in _WORKS["latex_keys"].finditer(words) for key in match[1].split(","))
        return tuple(CitedWork(key) for key in named if key), _WORKS["latex_narrative"].match(words) is not None
    if form in ("numeric", "superscript"):
        digits = re.sub(r"[^\d,;\s\u2013-]|textsuperscript", "", inside.translate(_SMALL_DIGITS))
        return tuple(CitedWork(number=number) for number in expand_numbers(digits)), False
    if form == "key":
        return tuple(parse_keys(inside, known)) if bracketed else (), False
    return tuple((bracketed and parse_keys(inside, known)) or find_author_year_works(words)), not bracketed


def find_author_year_works(words: str) -> list[CitedWork]:
    """The works named by authors and year, in brackets or in the sentence; "Smith 2019, 2020b" names two."""
    enclosed, narrative = name_patterns()
    bracketed = words[:1] in ("(", "[")
    pattern, words = (enclosed, words[1:-1]) if bracketed else (narrative, words)
    found: list[CitedWork] = []
    for match in pattern.finditer(words):
        years, end = [matched_year(match)], match.end()
        if not years[0][:4].isdigit() or only_dates(match["authors"], match["others"] or ""):
            continue
        work = CitedWork(authors=tuple(split_authors(match["authors"])), others=bool(match["others"]))
        found.append(replace(work, year=years[0], pages=pages_in(words[end:].partition(";")[0])))
        while bracketed and (more := _WORKS["more_years"].match(words, end)):
            years.append(more["year"] if more["year"][0].isdigit() else f"{years[-1][:4]}{more['year']}")
            end = more.end()
            found.append(replace(work, year=years[-1], pages=pages_in(words[end:].partition(";")[0])))
    return found


def parse_keys(inside: str, known: Collection[str]) -> list[CitedWork]:
    """The works of a bracket that names `known` keys, such as `smith2020, p. 4; @lee2019`; empty if it has others."""
    found: list[CitedWork] = []
    for part in inside.split(";"):
        items = [item.strip() for item in part.split(",")]
        bare = [re.sub(r"^-?@?\{?|\}$", "", item) for item in items]
        keys = [key for key in bare if key in known]
        locators = [item for item, key in zip(items, bare, strict=True) if key not in known]
        if bare[0] not in known or (locators and not _WORKS["locator"].match(locators[0])):
            return []
        pages = pages_in(", ".join(locators))
        found += [CitedWork(key, pages=pages) for key in keys]
    return found


def expand_numbers(inside: str) -> list[int]:
    """The numbers of `3, 5-7`, with ranges filled in."""
    found: list[int] = []
    for part in re.split(r"[,;]", inside):
        ends = [int(end) for end in re.findall(r"\d{1,6}", part)[:2]]
        if not ends:
            continue
        first, last = ends[0], ends[-1]
        found += range(first, last + 1) if first <= last <= first + _LONGEST_RANGE else (first,)
    return found


def pages_in(locator: str) -> frozenset[int]:
    """The pages that a locator names; empty if it names none."""
    found = _WORKS["page"].search(locator[:200])
    return frozenset(expand_numbers(found[1].strip(" ,\u2013-"))) if found else frozenset()


def _join_neighbours(text: str, marks: Sequence[CitationMark]) -> list[CitationMark]:
    """Join neighbouring marks into one: `[1][2]`, `[1]-[3]`, `[@a] [@b]`."""
    joined: list[CitationMark] = []
    for mark in marks:
        last = joined[-1] if joined else None
        gap = text[last.end : mark.start] if last else ""
        between = _WORKS["between"].fullmatch(gap) if len(gap) <= 3 else None  # bounded: 3 characters
        bracketed = last is not None and last.form == mark.form and not (last.narrative or mark.narrative)
        joins = mark.form == "numeric" or (mark.form == "pandoc" and between and not between[1])
        if last is None or between is None or not bracketed or not joins:
            joined.append(mark)
            continue
        first, second = last.works[-1].number or 0, mark.works[0].number or 0
        filled = range(first + 1, second) if between[1] and first < second <= first + _LONGEST_RANGE else ()
        works = (*last.works, *(CitedWork(number=number) for number in filled), *mark.works)
        joined[-1] = replace(last, end=mark.end, works=works)
    return joined


@dataclass(frozen=True)
class WorkIndex:
    """Finds the papers that a citation names; ambiguous names find none. `numbers` are keys by reference number."""

    papers: Sequence[Paper]
    numbers: Mapping[int, str] = field(default_factory=dict)

    def key_of(self, work: CitedWork) -> str:
        """The key of the one paper that is named; empty if there is none, or several."""
        if work.key:
            return work.key if work.key in self._keys else ""
        if work.number is not None:
            return self.numbers.get(work.number, "")
        fitting = self.find_papers(work)
        return fitting[0] if len(fitting) == 1 else ""

    def find_papers(self, work: CitedWork) -> list[str]:
        """All papers that authors and year may name; if one has exactly these authors, only that one."""
        fitting = [
            (key, source)
            for key, source in self._by_year.get(work.year[:4], ())
            if source.is_named(work.authors, work.others, work.year)
        ]
        exact = [key for key, source in fitting if work.others or len(source.family_names) == len(work.authors)]
        return exact if len(exact) == 1 else [key for key, _ in fitting]

    @cached_property
    def _keys(self) -> frozenset[str]:
        return frozenset(paper.key for paper in self.papers)

    @cached_property
    def _by_year(self) -> dict[str, list[tuple[str, NamedSource]]]:
        found: dict[str, list[tuple[str, NamedSource]]] = {}
        for paper in self.papers:
            found.setdefault(str(paper.year), []).append((paper.key, NamedSource.of(paper)))
        return found
