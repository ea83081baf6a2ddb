"""Finds the papers of a library that a question names: by key, DOI, title, or author and year.

By rules only, so that it costs nothing and can be explained. What is found is removed from the question, so that the
words of a title are not read as names or as words about sections.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ...documents import Paper
from ...documents.front_matter import find_doi
from ...text.words import GENERIC_WORDS, STOP_WORDS
from .author_mentions import folded, papers_by_author

_WORD = re.compile(r"[^\W_]+(?:['’\-][^\W_]+)*")
_QUOTED = re.compile(r"\"([^\"]+)\"|“([^“”]+)”|«([^«»]+)»|‘([^‘’]+)’|(?<!\w)'([^']+)'(?!\w)")
_DOI_LIKE = re.compile(r"(?:https?://(?:dx\.)?doi\.org/|doi:\s*)?10\.\d{4,9}/\S+", re.IGNORECASE)
# A key is delimited by spaces and brackets; the second form finds one between letters of another script.
_KEY_LIKE = re.compile(r"[^\s\[\](){}<>\"“”‘,;?!]+|[A-Za-z][A-Za-z0-9_:.+/-]*")
_ASCII_RUN = re.compile(r"[A-Za-z][A-Za-z0-9_:.+/-]*")
_NAME_YEAR = re.compile(r"([a-z][a-z'-]*)((?:1[5-9]|20|21)\d\d)[a-z]*")
_LONGEST_TITLE = 500  # characters
_LONG_TITLE = 6  # words from which a title is recognised without quotes or capitals
_NEAR = 0.88  # share of equal characters from which two titles are the same except for a typo
_SHARED = 0.6  # of a title's words that must be in the question before it is compared


@dataclass(frozen=True, slots=True)
class Named:
    """The keys of the papers that a question names, sorted, and the question without their names.

    `by_title` when it has nothing of them but words of their titles, without quotation marks.
    """

    keys: tuple[str, ...]
    rest: str
    by_title: bool = False


@dataclass(frozen=True, slots=True)
class _Word:
    """A word of the question: as written, folded for comparison, and its span."""

    written: str
    folded: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Title:
    """A form of a paper's title: all of it, or the part before the colon."""

    key: str
    words: tuple[str, ...]
    written: str

    @property
    def text(self) -> str:
        return " ".join(self.words)


def named_papers(question: str, papers: Sequence[Paper]) -> Named:
    """The papers that a question names; an author and a year may name several."""
    keys: set[str] = set()
    rest = question
    by_title = _QUOTED.search(question) is None
    for find in (_by_doi, _by_key, _by_title):
        found, rest = find(rest, papers)
        keys.update(found)
        by_title = by_title and (find is _by_title or not found)
    for group in papers_by_author(rest, papers):
        # "Crawford 2020 ("Incorporating ...")" names one paper, not all of that author and year.
        keys.update(group if not keys & group else set())
        by_title = False
    return Named(tuple(sorted(keys)), rest, by_title and bool(keys))


def _blanked(text: str, start: int, end: int) -> str:
    """The text with a span replaced by spaces, so that all other offsets are unchanged."""
    return text[:start] + " " * (end - start) + text[end:]


def _by_doi(question: str, papers: Sequence[Paper]) -> tuple[set[str], str]:
    known = {paper.doi.lower(): paper.key for paper in papers if paper.doi}
    found: set[str] = set()
    rest = question
    for match in _DOI_LIKE.finditer(question):
        doi = find_doi(match.group().rstrip("?!'’”]"))
        if doi in known:
            found.add(known[doi])
        rest = _blanked(rest, match.start(), match.end())
    return found, rest


def _by_key(question: str, papers: Sequence[Paper]) -> tuple[set[str], str]:
    known = {paper.key.casefold(): paper.key for paper in papers}
    found: set[str] = set()
    rest = question
    for start, written in _key_candidates(question):
        word = re.sub(r"['’]s$", "", written.rstrip(".:")).casefold()
        # "paper" or "2020" may be a key, but counts as a word unless it is marked as a key.
        marked = question[max(0, start - 1) : start] == "@" or word.startswith("@")
        word = word.lstrip("@")
        if not marked and not (re.search(r"\d", word) and re.search(r"[^\W\d]", word)):
            continue
        beginning = _NAME_YEAR.fullmatch(word)
        if word in known:
            found.add(known[word])
        elif beginning:
            found.update(key for name, key in known.items() if re.match(re.escape(word) + r"(?!\d)", name))
        else:
            continue
        rest = _blanked(rest, start, start + len(written))
    return found, rest


def _key_candidates(question: str) -> Iterator[tuple[int, str]]:
    for match in _KEY_LIKE.finditer(question):
        yield match.start(), match.group()
        for run in _ASCII_RUN.finditer(match.group()):
            if run.group() != match.group():
                yield match.start() + run.start(), run.group()


def _by_title(question: str, papers: Sequence[Paper]) -> tuple[set[str], str]:
    titles = sorted(_titles(papers), key=lambda title: (-len(title.words), title.key))
    found: set[str] = set()
    rest = question
    for match in _QUOTED.finditer(question):
        quoted = " ".join(word.folded for word in _words(match.group(match.lastindex or 0)))
        best = max(titles, key=lambda title: _likeness(quoted, title.text), default=None)
        if best is not None and _likeness(quoted, best.text) >= _NEAR:
            found.add(best.key)
            rest = _blanked(rest, match.start(), match.end())
    for title in titles:
        span = _title_span(title, rest)
        if span is not None:
            found.add(title.key)
            rest = _blanked(rest, *span)
    return found, rest


def _titles(papers: Sequence[Paper]) -> Iterator[_Title]:
    """The forms of the titles; a form that several papers share names none of them."""
    forms: dict[tuple[str, ...], list[_Title]] = {}
    for paper in papers:
        whole = _without_bracket(paper.title)
        for written in dict.fromkeys([whole, whole.split(":")[0]]):
            words = _title_words(written)
            if words:
                forms.setdefault(words, []).append(_Title(paper.key, words, written.strip()))
    return (same[0] for same in forms.values() if len({title.key for title in same}) == 1)


def _without_bracket(title: str) -> str:
    """The title without square brackets at its end, such as its translation."""
    whole = title.rstrip()
    start = whole.find("[", whole.rfind("]", 0, -1) + 1) if whole.endswith("]") else -1
    return whole[:start].rstrip() if start >= 0 else title


def _words(text: str) -> list[_Word]:
    return [
        _Word(match.group(), folded(match.group()).replace("’", "'"), match.start(), match.end())
        for match in _WORD.finditer(text)
    ]


@lru_cache(maxsize=1 << 15)
def _title_words(title: str) -> tuple[str, ...]:
    """The words of a title; cached, since each question needs those of all papers."""
    return tuple(word.folded for word in _words(title))


def _likeness(one: str, other: str) -> float:
    """Share of equal characters, 0 to 1; 0 immediately when the lengths alone rule out more than `_NEAR`.

    The beginnings of texts longer than any title are compared, since a comparison takes quadratic time.
    """
    one, other = one[:_LONGEST_TITLE], other[:_LONGEST_TITLE]
    total = len(one) + len(other)
    if not total or 2 * min(len(one), len(other)) / total < _NEAR:
        return 0.0
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _title_span(title: _Title, question: str) -> tuple[int, int] | None:
    """The span of a title in the question, if it occurs."""
    words = _words(question)
    size = len(title.words)
    if len(set(title.words) & {word.folded for word in words}) < _SHARED * len(set(title.words)):
        return None
    if size < _LONG_TITLE:
        for first in range(len(words) - size + 1):
            window = words[first : first + size]
            same = tuple(word.folded for word in window) == title.words
            if same and _meant_as_title(title, window, at_start=first == 0):
                return window[0].start, window[-1].end
        return None
    best: tuple[float, int, int] = (0.0, 0, 0)
    for length in (size, size - 1, size + 1):
        for first in range(len(words) - length + 1):
            window = words[first : first + length]
            score = _likeness(" ".join(word.folded for word in window), title.text)
            best = max(best, (score, window[0].start, window[-1].end))
    return best[1:] if best[0] >= _NEAR else None


def _meant_as_title(title: _Title, window: Sequence[_Word], *, at_start: bool) -> bool:
    """True when a few words that are also a title are meant as one."""
    if len(title.words) == 1:
        # A name such as treeheatr or OpenPBTA; "Preprints" is a word like any other.
        odd = title.written == title.written.lower() or re.search(r"\w[A-Z0-9]", title.written)
        return bool(odd) and window[0].written == title.written and title.words[0] not in GENERIC_WORDS
    content = [word for word in title.words if word not in STOP_WORDS]
    if len(content) > 1 and not any(word in GENERIC_WORDS for word in content):
        return True
    return window[0].written[:1].isupper() and not at_start
