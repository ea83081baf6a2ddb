"""The patterns by which citations are recognised in any text, in any script that has letters.

`citation_forms` finds what reads like one: `(Smith et al., 2021)`, `[@key]`, `\\cite{key}`, `[12]`, a DOI, a key. When
in doubt, a string counts as a citation. `cited_works.py` parses what it names.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Final, Literal

from ..documents import Paper
from ..documents.paper_names import family_name
from ..text.words import one_line, read_rules, read_words, without_accents
from .checks.unicode_folding import Folded
from .markers import SpanSet

CitationForm = Literal[
    "pandoc", "latex", "author-year", "numeric", "superscript", "footnote", "identifier", "key", "marker"
]

_PARTICLE = (
    r"(?:van|von|der|den|de|del|della|di|da|dos|du|la|le|ter|ten|el|al|bin|ibn|zu|af|y"
    r"|Van|Von|De|Der|Den|Di|Da|Du|La|Le|El|Al)"
)

# Words that begin a sentence or phrase before a name but are never names themselves.
_LEADING = read_words("words_before_names")
# Capitalised words that, alone before a year, give a date and cite nobody.
_DATED = read_words("words_before_years")
# A value follows these, as in "HR 2003, 95% CI 9.9 to 4.05e5".
_STATISTICS = frozenset("AIC AUC BIC CI HR IQR IRR MD OR RR SD SE SMD".split())
_DETACHED = (
    r"(?:n\.d\.|in press|forthcoming|submitted|in prep(?:aration|\.)?|unpublished|to appear"
    r"|pers(?:onal|\.) comm(?:unication|\.)?)"
)
_YEAR = rf"(?:(?:1[5-9]|20)\d\d[a-z]?(?![\w-]*\d)(?!\w)|{_DETACHED})"
_OTHERS = (
    r"(?:(?i:et\.?\s*al(?:ii|ia)?\b\.?)|(?:and|&)\s+(?:colleagues|co-?workers|co-?authors|associates|collaborators|others)\b"
    r"|等人?)"
)


_WORDS = re.compile(r"\w+(?:['\u2019-]\w+)*")  # a dash of several hyphens separates words


@dataclass(frozen=True, slots=True)
class NamedSource:
    """The names by which a sentence may refer to a source it cites: its authors' family names, and its year.

    `words` are the source's own: a review's report of other studies may keep the names that it gives.
    """

    family_names: tuple[str, ...]
    year: int | None
    words: str = ""

    @classmethod
    def of(cls, paper: Paper, words: str = "") -> NamedSource:
        names = paper.family_names or tuple(family_name(author) for author in paper.authors)
        return cls(tuple(_comparable(name) for name in names), paper.year, words)

    def reports_on(self, authors: Sequence[str], year: str) -> bool:
        """Whether the source's own words name these authors, and the year if one is given; a key names the first."""
        said = set(_WORDS.findall(self.words)) if authors else set()
        if len(authors) == 1:
            key = re.compile(rf"{re.escape(_comparable(authors[0]))}[\d_].*")
            keys = (word for word in said if re.search(r"\d{4}", word) and key.fullmatch(word.casefold()))
            if any(year[:4] in word for word in keys):
                return True
        return bool(authors) and all(said.issuperset(_WORDS.findall(name)) for name in (*authors, year))

    def is_named(self, authors: Sequence[str], others: bool, year: str) -> bool:
        """Whether "Lee and Gitter (2022)" names this source: its first author comes first, with its year or none."""
        if not authors or not self.family_names or not _same(authors[0], self.family_names[0]):
            return False
        if year[:4].isdigit() and self.year is not None and int(year[:4]) != self.year:
            return False
        if any(not any(_same(author, name) for name in self.family_names[1:]) for author in authors[1:]):
            return False
        return others or len(authors) <= len(self.family_names)


NamesAt = Callable[[int], Sequence[NamedSource]]


def split_authors(written: str) -> list[str]:
    """The names in "Smith, Jones, and Lee"."""
    parts = re.split(r"(?<!\s)\s*+(?:,|&|;|\band\b|\bund\b)\s*", written)
    # "Smith, J. K." contains one name; "Lee" and "Wu" are names despite being short.
    return [part for part in parts if part and not re.fullmatch(r"(?:[^\W\d_a-zß-ÿ]\.?[\s-]?){1,3}", part)]


def only_dates(written: str, others: str) -> bool:
    """Whether apparent authors are really a word such as "August" or "Figure" before a date, or "HR" before a value."""
    words = re.findall(r"[^\W\d_]+", written)
    if others or not words:
        return False
    return _STATISTICS.issuperset(words) or all(word.casefold() in _DATED or word.casefold() == "and" for word in words)


@cache
def name_patterns() -> tuple[re.Pattern[str], re.Pattern[str]]:
    """Patterns of authors and year in brackets and in sentences; built on first use, which takes milliseconds."""
    # Letters that are not lower case: capitals, and scripts without case.
    ranges: list[list[int]] = []
    for point in range(0x41, 0xFFDD):
        character = chr(point)
        if character.isalpha() and not character.islower() and unicodedata.category(character) != "Lm":
            if ranges and ranges[-1][1] == point - 1:
                ranges[-1][1] = point
            else:
                ranges.append([point, point])
    capital = f"[{''.join(f'{chr(first)}-{chr(last)}' for first, last in ranges)}]"
    leading = "|".join(sorted(re.escape(word.capitalize()) for word in _LEADING))
    word = rf"(?!(?:{leading})\b){capital}(?:[^\W\d_]|['-](?=[^\W\d_]))*"
    initials = rf"(?:{capital}\.[\s-]?){{1,4}}"
    author = (
        rf"(?:{initials}\s?)?(?:{_PARTICLE}\s){{0,3}}{word}(?:\s(?:{initials}|(?:{_PARTICLE}\s){{0,2}}{word})){{0,4}}"
        rf"(?:,\s{initials})?(?:,?\s(?:Jr|Sr|II|III)\b\.?)?"
    )
    between = r"\s*(?:,\s*(?:and\b|&)|,|\band\b|&|\bund\b)\s*"
    authors = rf"(?<![\w'-])(?P<authors>{author}(?:{between}{author}){{0,12}})"
    enclosed = re.compile(
        rf"{authors}(?:\s*+,?\s*+(?P<others>{_OTHERS}))?(?:'s?)?\s*+[,.:]?\s*+[(\[]?(?<![A-Za-z])(?P<year>{_YEAR})"
        rf"(?=\s*(?:$|[,;:.)\]&]|and\b|p\b|pp\b|\())"
    )
    narrative = re.compile(
        rf"{authors}(?:(?:\s*+,?\s*+(?P<others>{_OTHERS})(?:'s?)?(?:\s*+,?\s*+(?:\(\s*(?P<year>{_YEAR})[^()]{{0,40}}\)"
        rf"|\[\s*(?P<year2>{_YEAR})[^\[\]]{{0,40}}\]|(?P<year3>{_YEAR})))?)"
        rf"|(?:'s?)?\s*(?:\(\s*(?P<year4>{_YEAR})(?:[a-z]|\s*[,;:][^()]{{0,40}})?\s*\)"
        rf"|\[\s*(?P<year5>{_YEAR})(?:\s*[,;:][^\[\]]{{0,40}})?\s*\])"
        rf"|'s?\s(?P<year6>{_YEAR})|(?P<pair>\s*,\s*)(?P<year7>{_YEAR})(?=\s*[,.;:)]))"
    )
    return enclosed, narrative


def matched_year(match: re.Match[str]) -> str:
    """The year of a match, empty if it has none."""
    return next((value for name, value in match.groupdict().items() if name.startswith("year") and value), "")


def _same(written: str, name: str) -> bool:
    mine = _comparable(written)
    if not mine:
        return False
    bare = " ".join(word for word in mine.split() if not re.fullmatch(_PARTICLE, word))
    own = " ".join(word for word in name.split() if not re.fullmatch(_PARTICLE, word))
    # "Consortium" for "The BioChatter Consortium", or "Ada Lovelace" for "Lovelace".
    return mine == name or bare == own or f" {mine}".endswith(f" {name}") or f" {name}".endswith(f" {mine}")


def _comparable(name: str) -> str:
    return one_line(re.sub(r"[-'’.{}~]", " ", without_accents(name.casefold())))


_RULES: Final = read_rules(__file__, "citation_patterns")
_FORMS = {name: re.compile("|".join(parts)) for name, parts in _RULES["patterns"].items()}
_FORMS |= {name: re.compile("|".join(parts), re.IGNORECASE) for name, parts in _RULES["in_any_case"].items()}
_LONGEST_NAME = 60
_LONGEST_PREPOSITION = 8
_WHOLE_GROUP = 160  # a longer parenthesis holds more than a citation, and keeps its other words


def citation_forms(
    view: Folded, known_keys: Collection[str] = (), names_at: NamesAt | None = None
) -> Iterator[tuple[CitationForm, int, int]]:
    """What reads like a citation in the folded text: form, start and end, in no order, with overlaps.

    `known_keys` are keys that count wherever they occur; `names_at` are the sources whose authors the sentence at a
    position of the original may name.
    """
    seen = view.text
    for match in _FORMS["pandoc"].finditer(seen):
        yield "pandoc", match.start(), match.start() + len(match[0].rstrip(".,:;?"))
    for match in _FORMS["latex"].finditer(seen):
        yield "latex", *match.span()
    for match in _FORMS["numeric"].finditer(seen):
        if not _is_interval_or_index(view, match):
            yield "numeric", *match.span()
    for match in _FORMS["superscript"].finditer(seen):
        body = (match["caret"] or match["tex"] or match["math"] or match["small"]).strip("{} ")
        base = _FORMS["base"].search(seen, max(0, match.start() - 12), match.start())
        exponent = base and re.fullmatch(r"\d+|[⁰¹²³⁴⁵⁶⁷⁸⁹]+", body)
        isotope = seen[match.end() : match.end() + 1].isalpha()  # ^125^I
        if not (exponent or isotope or seen.endswith("⁻", 0, match.start())):
            yield "superscript", *match.span()
    for match in _FORMS["footnote"].finditer(seen):
        if not view.in_code(view.starts[match.start()]):
            yield "footnote", *match.span()
    for match in _FORMS["identifier"].finditer(seen):
        yield "identifier", match.start(), match.start() + len(match[0].rstrip(".,:;?!'*_"))
    yield from _keys(seen, known_keys)
    yield from _authors(view, names_at)


def _is_interval_or_index(view: Folded, match: re.Match[str]) -> bool:
    seen, body = view.text, match["body"]
    if body is None:
        return False
    numbers = re.findall(r"\d+", body)
    before = seen[max(0, match.start() - 60) : match.start()]
    if len(numbers) == 2 and "0" in numbers and re.fullmatch(r"\d+\s*[,;-]\s*\d+", body):
        return True  # no reference has the number 0
    if len(numbers) == 2 and _FORMS["interval_before"].search(re.split(r"[.;!?]\s", before)[-1]):
        return True
    if view.in_code(view.starts[match.start()]):
        return before[-1:].isalnum() or before.rstrip()[-1:] in {"_", "]", "=", "(", ","}
    return len(numbers) == 1 and _FORMS["indexed"].search(before) is not None


def _keys(seen: str, known_keys: Collection[str]) -> Iterator[tuple[CitationForm, int, int]]:
    for pattern in (_FORMS["key_shape"], _FORMS["alpha_label"]):
        for match in pattern.finditer(seen):
            yield "key", *match.span()
    known = set(known_keys)
    for group in _FORMS["group"].finditer(seen):
        items = [item.strip() for item in re.split(r"[;,]", group[0][1:-1])]
        if any(
            item in known or _FORMS["key_shape"].fullmatch(item) or _FORMS["bracketed_shape"].fullmatch(item)
            for item in items
        ):
            yield "key", *group.span()
    # Keys of the library also count as part of a longer word, and are then extended to the ends of that word.
    lowered = _lower_in_place(seen)
    for literal in _literal_keys(tuple(known_keys)):
        start = lowered.find(literal)
        while start >= 0:
            end = start + len(literal)
            while start > 0 and (seen[start - 1].isalnum() or seen[start - 1] in "_-"):
                start -= 1
            while end < len(seen) and (seen[end].isalnum() or seen[end] in "_-"):
                end += 1
            yield "key", start, end
            start = lowered.find(literal, end)


@lru_cache(maxsize=4)
def _literal_keys(keys: tuple[str, ...]) -> tuple[str, ...]:
    """The keys that are not ordinary words, in lower case; cached, since a run needs them many times."""
    telling = (key for key in keys if len(key) >= 6 and re.search(r"\d", key) and re.search(r"[^\W\d_]", key))
    return tuple(_lower_in_place(key) for key in telling)


def _lower_in_place(text: str) -> str:
    """The text in lower case, except characters that would become longer, so that positions stay the same."""
    lowered = text.lower()
    if len(lowered) == len(text):
        return lowered
    return "".join(one if len(one.lower()) > 1 else one.lower() for one in text)


def _authors(view: Folded, names_at: NamesAt | None) -> Iterator[tuple[CitationForm, int, int]]:
    seen = view.text
    enclosed, narrative = name_patterns()
    passed: list[tuple[int, int]] = []
    for group in _FORMS["group"].finditer(seen):
        for match in enclosed.finditer(group[0][1:-1]):
            if not only_dates(match["authors"], match["others"] or ""):
                inside = (group.start() + 1 + place for place in match.span())
                yield "author-year", *(group.span() if len(group[0]) <= _WHOLE_GROUP else inside)
    for match in narrative.finditer(seen):
        others = match["others"] or ""
        if match["pair"] and not re.search(r"\band\b|&", match["authors"]):
            continue  # "the Cancer Genome Atlas, 2018" dates a release
        if only_dates(match["authors"], others):
            continue
        sources = names_at(view.starts[match.start()]) if names_at else ()
        lists = list(_author_lists(split_authors(match["authors"]), seen, match.start()))
        year = matched_year(match)
        if any(
            source.is_named(authors, bool(others), year) or source.reports_on(authors, year)
            for source in sources
            for authors in lists
        ):
            passed.append(match.span())
        else:
            yield "author-year", match.start(), match.end()
    for match in _FORMS["seen_in"].finditer(seen):
        if not only_dates(match["authors"], ""):
            yield "author-year", match.start("authors"), match.end()
    named = SpanSet(passed)
    for match in _FORMS["others_alone"].finditer(seen):
        name = _FORMS["name_before"].search(seen, max(0, match.start() - _LONGEST_NAME), match.start())
        start = name.start() if name and match[0][:1] in "eE" else match.start()
        if not named.meets(start, match.end()):
            yield "author-year", start, match.end()


def _author_lists(authors: list[str], seen: str, start: int) -> Iterator[list[str]]:
    """The lists of authors that can begin at `start`; in "On LASSO, Sanou et al." the first words are not an author."""
    while len(authors) > 1 and authors[0].isupper() and len(authors[0]) > 2:
        authors = authors[1:]
    yield authors
    if _FORMS["preposition"].search(seen, max(0, start - _LONGEST_PREPOSITION), start):
        yield authors[1:]
