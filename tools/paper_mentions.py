"""Finds the papers of a library that a question names: by key, DOI, title, or author and year.

Uses rules only. Mentions are removed from the question, so that the words of a title are not read as names or as words
about sections.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Final

from ..documents import Paper
from ..documents.front_matter import find_doi
from ..text.words import GENERIC_WORDS, STOP_WORDS, read_rules, without_accents

_RULES: Final = read_rules(__file__, "question_rules")
_FORMS: Final = {name: re.compile(rule) for name, rule in _RULES["mentions"].items()}
_AROUND: Final = {
    name: frozenset(words.split()) for name, words in {**_RULES["persons"], **_RULES["mention_words"]}.items()
}
_LONGEST_TITLE = 500  # characters
_LONG_TITLE = 6  # minimum words of a title that is recognised without quotes or capitals
_NEAR = 0.88  # minimum share of equal characters of titles that differ by a typo only
_BEFORE_A_TITLE = 2  # words, such as "paper on"
OtherUse = Callable[[str, str], bool]
_SHARED = 0.6  # minimum share of a title's words in the question before it is compared


@dataclass(frozen=True, slots=True)
class NamedPapers:
    """The keys of the papers a question names, sorted, and the rest of the question.

    `by_title` means that it names them only by unquoted titles.
    """

    keys: tuple[str, ...]
    rest: str
    by_title: bool = False


@dataclass(frozen=True, slots=True)
class _QuestionWord:
    """A word of the question: as written, folded for comparison, and its span."""

    written: str
    folded: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Title:
    """A paper's title, or the part before its colon."""

    key: str
    words: tuple[str, ...]
    written: str

    @property
    def text(self) -> str:
        return " ".join(self.words)


def find_mentions(
    question: str, papers: Sequence[Paper], used_elsewhere: OtherUse = lambda name, key: False
) -> NamedPapers:
    """Find the papers that a question names; an author and a year may name several.

    A title of one word counts only if no other paper uses the word: `used_elsewhere(name, key)`.
    """
    keys: set[str] = set()
    rest = question
    by_title = _FORMS["quoted"].search(question) is None
    title = partial(_by_title, used_elsewhere=used_elsewhere)
    for find in (_by_doi, _by_key, title):
        found, rest = find(rest, papers)
        keys.update(found)
        by_title = by_title and (find is title or not found)
    for group in papers_by_author(rest, papers):
        # "Crawford 2020 ("Incorporating ...")" names one paper, not all of that author and year.
        keys.update(group if not keys & group else set())
        by_title = False
    return NamedPapers(tuple(sorted(keys)), rest, by_title and bool(keys))


def _blank(text: str, start: int, end: int) -> str:
    """Replace a span by spaces, so that other offsets are unchanged."""
    return text[:start] + " " * (end - start) + text[end:]


def _by_doi(question: str, papers: Sequence[Paper]) -> tuple[set[str], str]:
    known = {paper.doi.lower(): paper.key for paper in papers if paper.doi}
    dois = (find_doi(match.group().rstrip("?!'’”]")) for match in _FORMS["doi_like"].finditer(question))
    found = {known[doi] for doi in dois if doi in known}
    return found, _FORMS["doi_like"].sub(lambda match: " " * len(match.group()), question)


def _by_key(question: str, papers: Sequence[Paper]) -> tuple[set[str], str]:
    known = {paper.key.casefold(): paper.key for paper in papers}
    found: set[str] = set()
    rest = question
    candidates = [
        (match.start() + run.start(), run.group())
        for match in _FORMS["key_like"].finditer(question)
        for run in (_FORMS["whole"].fullmatch(match.group()), *_FORMS["ascii_run"].finditer(match.group()))
        if run is not None
    ]
    for start, written in dict.fromkeys(candidates):
        word = re.sub(r"['’]s$", "", written.rstrip(".:")).casefold()
        # "paper" or "2020" may be a key, but counts as a word unless marked as a key.
        marked = question[max(0, start - 1) : start] == "@" or word.startswith("@")
        word = word.lstrip("@")
        if not marked and not (re.search(r"\d", word) and re.search(r"[^\W\d]", word)):
            continue
        beginning = _FORMS["name_year"].fullmatch(word)
        if word in known:
            found.add(known[word])
        elif beginning:
            found.update(key for name, key in known.items() if re.match(re.escape(word) + r"(?!\d)", name))
        else:
            continue
        rest = _blank(rest, start, start + len(written))
    return found, rest


def _by_title(question: str, papers: Sequence[Paper], used_elsewhere: OtherUse) -> tuple[set[str], str]:
    forms: dict[tuple[str, ...], list[_Title]] = {}
    for paper in papers:
        whole = _FORMS["bracketed"].sub("", paper.title)
        for written in dict.fromkeys([whole, whole.split(":")[0]]):
            if words := _title_words(written):
                forms.setdefault(words, []).append(_Title(paper.key, words, written.strip()))
    # A title that several papers share is ambiguous.
    titles = [same[0] for same in forms.values() if len({title.key for title in same}) == 1]
    titles.sort(key=lambda title: (-len(title.words), title.key))
    found: set[str] = set()
    rest = question
    for match in _FORMS["quoted"].finditer(question):
        quoted = " ".join(word.folded for word in _words(match.group(match.lastindex or 0)))
        best = max(titles, key=lambda title: _likeness(quoted, title.text), default=None)
        if best is not None and _likeness(quoted, best.text) >= _NEAR:
            found.add(best.key)
            rest = _blank(rest, match.start(), match.end())
    for title in titles:
        span = _title_span(title, rest)
        if span is not None and not (len(title.words) == 1 and used_elsewhere(title.text, title.key)):
            found.add(title.key)
            rest = _blank(rest, *span)
    return found, rest


def _words(text: str) -> list[_QuestionWord]:
    return [
        _QuestionWord(
            match.group(), without_accents(match.group().casefold()).replace("’", "'"), match.start(), match.end()
        )
        for match in _FORMS["word"].finditer(text)
    ]


@lru_cache(maxsize=1 << 15)
def _title_words(title: str) -> tuple[str, ...]:
    """Split a title into words; cached, since each question needs the words of all titles."""
    return tuple(word.folded for word in _words(title))


def _likeness(one: str, other: str) -> float:
    """Return the share of equal characters, 0 to 1; 0 immediately if the lengths alone rule out `_NEAR`.

    Only the beginnings of long texts are compared, since a comparison takes quadratic time.
    """
    one, other = one[:_LONGEST_TITLE], other[:_LONGEST_TITLE]
    total = len(one) + len(other)
    if not total or 2 * min(len(one), len(other)) / total < _NEAR:
        return 0.0
    return difflib.SequenceMatcher(None, one, other, autojunk=False).ratio()


def _title_span(title: _Title, question: str) -> tuple[int, int] | None:
    words = _words(question)
    size = len(title.words)
    if len(set(title.words) & {word.folded for word in words}) < _SHARED * len(set(title.words)):
        return None
    if size < _LONG_TITLE:
        for first in range(len(words) - size + 1):
            window = words[first : first + size]
            same = tuple(word.folded for word in window) == title.words
            if same and _meant_as_title(title, window, words[:first]):
                return window[0].start, window[-1].end
        return None
    best: tuple[float, int, int] = (0.0, 0, 0)
    for length in (size, size - 1, size + 1):
        for first in range(len(words) - length + 1):
            window = words[first : first + length]
            score = _likeness(" ".join(word.folded for word in window), title.text)
            best = max(best, (score, window[0].start, window[-1].end))
    return best[1:] if best[0] >= _NEAR else None


def _meant_as_title(title: _Title, window: Sequence[_QuestionWord], before: Sequence[_QuestionWord]) -> bool:
    """Whether a few words that equal a title are meant as that title: capitalised like one, or called a paper.

    "Do ensembles help when the sensor moves?" does not name the paper "When the Sensor Moves".
    """
    if len(title.words) == 1:
        # A coined name such as treeheatr or OpenPBTA; "Preprints" is an ordinary word.
        odd = title.written == title.written.lower() or re.search(r"\w[A-Z0-9]", title.written)
        return bool(odd) and window[0].written == title.written and title.words[0] not in GENERIC_WORDS
    if any(word.folded in _AROUND["called_a_paper"] for word in before[-_BEFORE_A_TITLE:]):
        return True
    content = [word.written for word in window if word.folded not in STOP_WORDS]
    in_capitals = len(content) > 1 and all(word[:1].isupper() for word in content)
    shouted = all(word.written.isupper() for word in (*before, *window))
    return not shouted and (in_capitals or (bool(before) and window[0].written[:1].isupper()))


_OTHERS = (["et", "al"], ["and", "colleagues"], ["and", "others"], ["and", "coworkers"])


@dataclass(frozen=True, slots=True)
class _Mention:
    """Authors named together, the years after them, and whether they are certainly people."""

    names: tuple[str, ...]
    years: tuple[int, ...]
    and_others: bool
    person: bool


def papers_by_author(question: str, papers: Sequence[Paper]) -> list[set[str]]:
    """Return for each mention of authors the keys of the papers that it may refer to.

    A name without a year counts only if it refers to a single paper; a name with a year may refer to several.
    """
    authors = {paper.key: _folded_names(paper) for paper in papers}
    tokens = [match.group() for match in _FORMS["token"].finditer(question)]
    mentions, loose_years = _find_mentions(tokens, {name for names in authors.values() for name in names})
    years = {paper.key: paper.year for paper in papers}
    groups: list[set[str]] = []
    for mention in mentions:
        wanted = mention.years or (loose_years if mention.person else ())
        if not wanted and not mention.person:
            continue
        by_all = {key for key in authors if set(mention.names) <= set(authors[key])}
        for year in wanted or (None,):
            found = {key for key in by_all if year is None or years[key] == year}
            # Prefer papers led by the named authors, or written by them alone.
            led = {key for key in found if authors[key][0] == mention.names[0]}
            alone = {key for key in led or found if set(authors[key]) == set(mention.names)}
            group = alone if len(mention.names) > 1 and not mention.and_others and alone else led or found
            if group and (year is not None or len(group) == 1):
                groups.append(group)
    return groups


def find_papers_led_by(name: str, papers: Sequence[Paper]) -> set[str]:
    """Return the keys of the papers with this (folded) family name as first author or in the key."""
    return {paper.key for paper in papers if name in _folded_names(paper)[:1] or name in _key_name(paper)}


def _folded_names(paper: Paper) -> tuple[str, ...]:
    """Return a paper's family names, folded; first the name in its key, which people also use."""
    names = [without_accents(name.casefold()) for name in paper.family_names]
    names = [*(name for name in _key_name(paper) if name not in names), *names]
    return tuple(name for name in names if name)


def _key_name(paper: Paper) -> tuple[str, ...]:
    in_key = _FORMS["key_name"].match(without_accents(paper.key.casefold()))
    return (in_key.group(1),) if in_key else ()


def _find_mentions(tokens: Sequence[str], known: set[str]) -> tuple[list[_Mention], tuple[int, ...]]:
    """Find mentions of authors, and the years that follow none of them."""
    mentions: list[_Mention] = []
    loose: list[int] = []
    lowered = [token.lower() for token in tokens]
    longest = max((len(name.split()) for name in known), default=0)
    index = 0
    while index < len(tokens):
        name, after = _name_at(tokens, index, known, longest)
        if name is None:
            year = _FORMS["year"].fullmatch(tokens[index])
            loose += [int(year[1])] if year and not _in_a_range(lowered, index) else []
            index += 1
            continue
        names, before = [name], lowered[index - 1] if index else ""
        while True:  # the names that follow, separated by "and" or commas
            step = index = after
            while step < len(tokens) and lowered[step] in _AROUND["joins"]:
                step += 1
            name, after = _name_at(tokens, step, known, longest) if step > index else (None, index)
            if name is None:
                break
            names.append(name)
        following, possessive = lowered[index : index + 2], lowered[index - 1].endswith(("'s", "’s", "s'", "s’"))
        and_others = following in _OTHERS
        marked = following[:1] and (
            following[0] in _AROUND["after_a_person"] or (before == "the" and following[0] in _AROUND["of_a_person"])
        )
        person = and_others or possessive or len(names) > 1 or before in _AROUND["before_a_person"] or bool(marked)
        index += 2 if and_others else 0
        years: list[int] = []
        for place, token in enumerate(lowered[index:], index):
            if _FORMS["year"].fullmatch(token):
                years.append(int(token[:4]))
                index = place + 1
            elif token not in _AROUND["between_years"]:
                break
        mentions.append(_Mention(tuple(names), tuple(years), and_others, person))
    return mentions, tuple(loose)


def _in_a_range(lowered: Sequence[str], index: int) -> bool:
    """Whether a year limits a period: "since 2015", "from 2015 to 2020", "between 2015 and 2020"."""
    ends = (lowered[max(0, index - 2) : index], lowered[index + 1 : index + 3][::-1])
    joined = any(len(end) == 2 and end[1] in _AROUND["range"] and _FORMS["year"].fullmatch(end[0]) for end in ends)
    return joined or (index > 0 and lowered[index - 1] in _AROUND["bounds"])


def _name_at(tokens: Sequence[str], index: int, known: set[str], longest: int) -> tuple[str | None, int]:
    """Find the longest author's name that starts at a token, and its end.

    Names start with a capital, or are immediately followed by a year, "et al." or "and colleagues".
    """
    for size in range(min(longest, len(tokens) - index), 0, -1):
        written = list(tokens[index : index + size])
        written[-1] = re.sub(r"['’]s?$", "", written[-1])
        name = without_accents(" ".join(written).casefold())
        if name not in known:
            continue
        following = [token.lower() for token in tokens[index + size : index + size + 2] if token != "("]
        cited = following[:2] in _OTHERS or (following and _FORMS["year"].fullmatch(following[0]))
        if written[-1][:1].isupper() or cited:
            return name, index + size
    return None, index
