"""Compares the details of a sentence with its sources, without a model: numbers, units, names, years, quotations.

Sentences are compared word by word only if they share most of their words: then a number, a year, a name, "not", or
"increased" in place of "decreased" is a difference and not another way to say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from decimal import Decimal
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from ..citations.checks.number_parsing import Number, claimed_numbers, given_numbers
from ..citations.checks.number_tracing import trace_numbers
from ..citations.citation_patterns import NamedSource, matched_year, name_patterns, only_dates, split_authors
from ..citations.markers import MARKER, is_quotation, is_verbatim, quoted_spans
from ..documents import Category, Chunk, Paper
from ..experiment import Experiment
from ..roles.protocols import Source
from ..text.words import is_stop, one_line, read_rules, shorten, split_words, stem
from .claim_passages import SAME_MATTER, SAME_WORDS, SHOWN_WORDS, ClaimPassage, NearSentence, content_words
from .claim_records import FaultRecord, fault
from .manuscript import ManuscriptSentence

_RULES: Final = read_rules(__file__, "sentence_rules")
_DIMENSIONS: Final = tuple(_RULES["units"]["dimensions"])
_UNITS: Final = MappingProxyType(
    {
        spelling: (dimension, unit.partition("|")[0])
        for dimension, units in enumerate(_DIMENSIONS)
        for unit in units.split(";")
        for spelling in unit.split("|")
    }
)
_DETAILS: Final = {name: re.compile(rule) for name, rule in _RULES["details"].items()}
FIRST_PERSON: Final = _DETAILS["first_person"]
_LONGEST_SENTENCE: Final = 2_000  # characters in which names are looked for


def whole_chunk(text: str, key: str = "") -> Chunk:
    """A whole text as one passage."""
    return Chunk(f"{key}:00000", key, 0, text, "", "", Category.OTHER, 1, None, 0, len(text), 0)


def whole_source(paper: Paper, text: str, identifier: str) -> Source:
    """A whole paper as one source, to look for details in."""
    return ClaimPassage(whole_chunk(text, paper.key), paper, 0.0).source(identifier)


def number_faults(
    marked: str,
    near: Sequence[Source],
    whole: Sequence[Source],
    experiment: Experiment | None,
    said: NearSentence | None = None,
) -> list[FaultRecord]:
    """Numbers and units of a sentence (`marked`: with markers) that are not in its sources.

    `near` are the passages nearest to the sentence, `whole` the papers, in which a number counts only with its noun. If
    one of their sentences says nearly the same (`said`), only it and its neighbours count. A small count in words
    matches its value anywhere in a source.
    """
    sources = [*near, *whole]
    if not sources and experiment is None:
        return []
    said = said if said is not None and said.share >= SAME_MATTER else None
    traces = {trace.start: trace for trace in trace_numbers(marked, near or whole, experiment or Experiment())}
    texts = tuple(source.text for source in sources)
    nearest = tuple(source.text for source in near)
    found: list[FaultRecord] = []
    for number in claimed_numbers(marked, small_counts=True):
        trace, words = traces.get(number.start), marked[number.start : number.end]
        if trace is not None and trace.origin is not None and trace.origin.path:
            continue
        swapped = said and _other_unit(marked, number, (said.text,), (said.text,))
        swapped = swapped or _other_unit(marked, number, nearest, texts)
        bound = _other_bound(number, texts)
        other = None if said is None else _other_number(marked, number, said)
        same_things = "" if other is not None else _other_count(marked, number, texts, said)
        if swapped:
            bare = words.rstrip("%\\ ")
            message = f"{bare}{swapped[0]}: the source has this value as {bare}{swapped[1]}."
            found.append(fault("unit-differs", message))
        elif bound or same_things:
            found.append(fault("number-differs", f"{words}: the source has {bound or same_things}."))
        elif said and other is not None and not _occurs_alike(marked, number, texts, said):
            found.append(_other_said(marked, number, said, other, "source"))
        elif (
            trace.origin is None and not _occurs_with_noun(marked, number, texts)
            if trace is not None
            else experiment is None
            and not any(number.value == given.value for text in texts for given in given_numbers(text))
        ):
            where = "in the cited paper" if sources else "in the experiment"
            also = " nor in the experiment" if sources and experiment is not None else ""
            found.append(fault("number-not-found", f"{_with_unit(marked, number)} was not found {where}{also}."))
    return found


def own_number_faults(text: str, said: NearSentence) -> Iterator[FaultRecord]:
    """Find numbers that differ from those in the experiment's own sentence (`said`) of nearly the same words."""
    for number in claimed_numbers(text, small_counts=True) if min(said.share, said.back) >= SAME_WORDS else ():
        if (other := _other_number(text, number, said)) is not None:
            yield _other_said(text, number, said, other, "experiment")


def _other_said(text: str, number: Number, said: NearSentence, other: str, whose: str) -> FaultRecord:
    quoted = f'"{shorten(said.text, SHOWN_WORDS)}"'
    has = f"has {other} ({quoted})" if other else f"says {quoted}"
    return fault("number-differs", f"{_with_unit(text, number)}: the {whose} {has}.")


def _other_bound(number: Number, sources: Sequence[str]) -> str:
    """How the sources bound a value ("<0.001") that the text states or bounds differently ("= 0.001"); else empty."""
    same = [
        (given, f"{given.sign}{source[given.start : given.end]}")
        for source in (sources if number.sign else ())
        for given in given_numbers(source)
        if given.value == number.value and given.scale == number.scale
    ]
    return same[0][1] if same and all(given.bounds(number) for given, _ in same) else ""


def _other_count(text: str, number: Number, sources: Sequence[str], said: NearSentence | None) -> str:
    """The number of the same things in a source ("33 cancer types") if no source has this number; else empty."""
    things = _things(text, number)
    if not things or number.hedge or number.scale != "plain" or number.unit < 1:
        return ""
    noun, others = _noun(text, number), dict[str, None]()
    for source in (*sources, said.around if said else ""):
        for given in given_numbers(source):
            if given.value == number.value and (noun == _noun(source, given) or (said and source == said.around)):
                return ""
            near = number.value / 2 <= given.value <= number.value * 2
            if near and (found := _things(source, given)) and list(map(stem, found)) == list(map(stem, things)):
                others[f"{source[given.start : given.end]} {' '.join(found)}"] = None
    return next(iter(others), "")


def _things(text: str, number: Number) -> tuple[str, str] | None:
    """The two words after a number, if they name what it counts."""
    found = _DETAILS["things"].match(text, number.end)
    if found is None or _unit(found[1]) or any(is_stop(word) for word in split_words(f"{found[1]} {found[2]}")):
        return None
    return found[1].casefold(), found[2].casefold()


def _other_number(text: str, number: Number, said: NearSentence) -> str | None:
    """Return the number that the sentence `said` has instead; None if it has the same number, or no other.

    Empty if it is unclear which of its numbers corresponds: none has the same unit and shares words around it.
    """
    near = said.text if said.share >= SAME_WORDS else said.around
    if any(_same_value(number, given) for given in given_numbers(near)):
        return None
    claimed = claimed_numbers(text, small_counts=True)
    others = [
        given
        for given in claimed_numbers(said.text)
        if not any(_same_value(other, given) for other in claimed)
        if given.worded == number.worded or {given.unit, number.unit} == {1}
    ]
    noun = _noun(text, number)
    alike = [given for given in others if noun == _noun(said.text, given)] or (
        others if said.share >= SAME_WORDS and not (number.worded and number.value <= _SMALL_COUNT) else []
    )
    unit, words = _unit_after(text, number)[0], _words_around(text, number)
    if not _is_copy(said):  # the numbers may count different things
        alike = [one for one in alike if len(words & _words_around(said.text, one)) >= _SHARED_WORDS]
        before = _word_before(text, number)
        alike = [one for one in alike if noun == _noun(said.text, one) or before == _word_before(said.text, one)]
    if not alike:
        return None
    rated = [
        (len(words & _words_around(said.text, given)), -abs(given.value - number.value), given)
        for given in alike
        if _unit_after(said.text, given)[0] == unit
    ]
    shared, _, best = max(rated, key=lambda item: item[:2], default=(0, Decimal(0), number))
    return _with_unit(said.text, best) if shared else ""


_SMALL_COUNT: Final = 12
_AROUND: Final = 50  # characters on either side of a number


def _words_around(text: str, number: Number) -> frozenset[str]:
    sides = (text[max(0, number.start - _AROUND) : number.start], text[number.end : number.end + _AROUND])
    before, after = ([word.form for word in split_words(side) if not is_stop(word)] for side in sides)
    return frozenset((*before[-3:], *after[:2]))


def _word_before(text: str, number: Number) -> str:
    words = split_words(text[max(0, number.start - _AROUND) : number.start])
    return next((word.form for word in reversed(words) if not is_stop(word)), "")


def _same_value(number: Number, given: Number) -> bool:
    """Whether a given number is the claimed one, as a share, or rounded to its digits."""
    claimed = (number.value, _percent(number))
    true = (given.value, _percent(given))
    rough = max(number.unit, number.value.copy_abs() * _QUALIFIED if number.hedge else number.unit)
    return any(abs(abs(one) - abs(other)) <= rough / 2 for one, other in zip(claimed, true, strict=True)) and (
        given.unit < number.unit
        or number.hedge != ""
        or number.value.copy_abs() in map(abs, true)
        or _percent(number) == _percent(given)
    )


def _with_unit(text: str, number: Number) -> str:
    behind = _DETAILS["unit_behind"].match(text, number.end)
    unit = behind[0] if behind and _unit(behind[1]) else ""
    return f"{text[number.start : number.end]}{unit}"


def _unit(written: str) -> tuple[int, str] | None:
    plain = written.replace("\u03bc", "\u00b5").replace("\\", "")
    return _UNITS.get(plain) or (_UNITS.get(plain[:-1]) if plain.endswith("s") and len(plain) > 3 else None)


def _unit_after(text: str, number: Number) -> tuple[tuple[int, str] | None, str]:
    if _DETAILS["percent_points"].match(text, number.end):
        return _UNITS["%"], ""
    if text[number.end - 1 : number.end] == "%":
        return _UNITS["%"], "%"
    behind = _DETAILS["unit_behind"].match(text.replace("\u03bc", "\u00b5"), number.end)
    return (_unit(behind[1]), behind[0]) if behind else (None, "")


def _other_unit(text: str, number: Number, near: Sequence[str], sources: Sequence[str]) -> tuple[str, str] | None:
    unit, written = _unit_after(text, number)
    if unit is None:
        return None
    other = ""
    for source in sources:
        for value, unit_there, written_there in _measurements(source):
            if value != number.value or unit_there is None or unit_there[0] != unit[0]:
                continue
            if unit_there[1] == unit[1]:
                return None
            other = other or (written_there if source in near else "")
    return (written, other) if other else None


@lru_cache(maxsize=128)
def _measurements(text: str) -> tuple[tuple[Decimal, tuple[int, str] | None, str], ...]:
    plain = text.replace("\u03bc", "\u00b5")
    return tuple((number.value, *_unit_after(plain, number)) for number in given_numbers(plain))


def _occurs_with_noun(text: str, number: Number, sources: Sequence[str]) -> bool:
    """Whether a source has the number among the same words, or a value too particular to be there by chance."""
    noun, words = _noun(text, number), _words_around(text, number)
    digits = len(str(abs(number.value)).replace(".", "").strip("0"))
    return any(
        (given.value == number.value or _percent(given) == _percent(number))
        and (
            digits >= _PARTICULAR
            or (noun and noun == _noun(source, given))
            or len(words & _words_around(source, given)) >= _SHARED_WORDS
        )
        for source in sources
        for given in given_numbers(source)
    )


def _is_copy(said: NearSentence) -> bool:
    """Whether nearly all words of a claim are in the near sentence, and most of that sentence's words in the claim."""
    return said.share >= SAME_WORDS and said.back >= SAME_MATTER


def _occurs_alike(text: str, number: Number, sources: Sequence[str], said: NearSentence) -> bool:
    """Whether a source has the number: for a copied sentence (`said`) beside the same words, else with its unit."""
    noun, words, unit = _noun(text, number), _words_around(text, number), _unit_after(text, number)[0]
    return any(
        _same_value(number, given)
        and (
            (noun == _noun(source, given) and len(words & _words_around(source, given)) >= _SHARED_WORDS)
            or (unit == _unit_after(source, given)[0] and not _is_copy(said))
        )
        for source in sources
        for given in given_numbers(source)
    )


_SHARED_WORDS: Final = 2
_PARTICULAR: Final = 3  # digits
_QUALIFIED: Final = Decimal("0.12")


def _noun(text: str, number: Number) -> str:
    found = _DETAILS["noun"].match(text, number.end)
    return stem(found[1].casefold()) if found else ""


def _percent(number: Number) -> Decimal:
    return number.value * 100 if number.scale != "percent" and abs(number.value) <= 1 else number.value


def name_faults(
    sentence: ManuscriptSentence, text: str, cited: Sequence[Paper], known: Sequence[Paper], words_of: Sequence[str]
) -> Iterator[FaultRecord]:
    """Find authors and years named with a citation that are not those of the cited work; `known` are all entries.

    A name that is not next to the citation may be one that a cited paper mentions: `words_of` has the texts of all
    cited papers, or none.
    """
    if not cited or not sentence.marks:
        return
    words = text[sentence.start : min(sentence.end, sentence.start + _LONGEST_SENTENCE)]
    _, narrative = name_patterns()
    sources = [NamedSource.of(paper) for paper in cited]
    others = [NamedSource.of(paper) for paper in known]
    for match in narrative.finditer(words):
        start, end = sentence.start + match.start(), sentence.start + match.end()
        if not match["others"] or any(mark.start < end and start < mark.end for mark in sentence.marks):
            continue
        authors = split_authors(match["authors"])
        beside = any(0 <= mark.start - end <= _BESIDE and not mark.narrative for mark in sentence.marks)
        if only_dates(match["authors"], match["others"]):
            continue
        if not beside and (
            not words_of or any(NamedSource((), None, said).reports_on(authors, "") for said in words_of)
        ):
            continue
        named = [source for source in sources if source.family_names]
        if not named or any(source.is_named(authors, True, matched_year(match)) for source in named):
            continue
        hint = " Another entry of the list has this name." if any(o.is_named(authors, True, "") for o in others) else ""
        names = one_line(match[0])
        if beside or not hint:
            yield fault("name-differs", f"{names} is named, but the citation names other authors.{hint}")
    for paper, source in zip(cited, sources, strict=True):
        yield from _author_list_faults(words, paper, source, others)


def _author_list_faults(
    words: str, paper: Paper, source: NamedSource, others: Sequence[NamedSource]
) -> Iterator[FaultRecord]:
    """Find names and years beside a cited paper's first author that belong to neither this paper nor another entry."""
    first = paper.family_names[0] if paper.family_names else ""
    for match in re.finditer(rf"\b{re.escape(first)}\b", words) if len(first) > 1 else ():
        listed = _DETAILS["other_authors"].match(words, match.end())
        names = split_authors(words[match.start() : listed.end() if listed else match.end()])
        end = listed.end() if listed else match.end()
        shown = one_line(words[match.start() : end])
        if not any(other.is_named(names, others=True, year="") for other in (source, *others)):
            authors = ", ".join(paper.family_names)
            yield fault("name-differs", f"{shown} is named, but the authors of {paper.key} are {authors}.")
            continue
        year = _DETAILS["year_after"].match(words, end) or _DETAILS["year_before"].search(words[: match.start()])
        if year and paper.year and not any(other.is_named(names, True, year[1]) for other in (source, *others)):
            yield fault("year-differs", f"{shown} is dated {year[1]}, but {paper.key} is of {paper.year}.")


_BESIDE: Final = 3  # characters


def quote_faults(marked: str, whole: Sequence[Source]) -> list[FaultRecord]:
    """Find quotations in a cited sentence that none of its papers contains verbatim.

    Quoted words after a quotation, its citation and "in" are the title of a section of the paper.
    """
    plain = MARKER.sub("", marked)
    found: list[FaultRecord] = []
    for start, end in quoted_spans(plain):
        words = plain[start:end]
        if not is_quotation(words) or _DETAILS["titled"].search(plain, 0, start):
            continue
        if whole and not any(is_verbatim(words, source.text) for source in whole):
            found.append(fault("quote-differs", f"{shorten(words)} is not in the cited paper word for word."))
    return found


_COMPARED: Final = _RULES["compared"]
_NEGATION, _UNSAID = (frozenset(_COMPARED[name].split()) for name in ("negation", "unsaid"))
_OPPOSITES: Final = frozenset(frozenset(map(stem, pair.split())) for pair in _COMPARED["opposites"])
_BEHIND: Final = 3  # words after a replaced word that both sentences must share


def wording_faults(claim: str, near: NearSentence, key: str, paper: str = "") -> Iterator[FaultRecord]:
    """Find how a claim differs from a sentence of nearly the same words in a paper, apart from its numbers.

    If the sentence has fewer of its words, only the negation of a word that the `paper` negates nowhere counts.
    """
    if near.share < SAME_MATTER:
        return
    same = near.share >= SAME_WORDS
    quoted = f'{key} has "{shorten(near.text, SHOWN_WORDS)}"'
    if polarity_differs(claim, near.text) if same else _negates(claim, near.text, paper or near.chunk.text):
        yield fault("polarity-differs", f"It says the opposite of its source: {quoted}.")
    for one, other, _ in _replaced_words(claim, near.text) if same else ():
        if _DETAILS["year"].fullmatch(one) and _DETAILS["year"].fullmatch(other) and one not in near.around:
            yield fault("year-differs", f"{one}: {quoted}.")
        elif one[:1].isupper() and other[:1].isupper() and one.casefold() not in near.around.casefold():
            yield fault("name-differs", f"{one}: {quoted}.")


def polarity_differs(claim: str, sentence: str) -> bool:
    """Whether one of two sentences of nearly the same words negates what the other says."""
    if _negates(claim, sentence) or _negates(sentence, claim):
        return True
    said = {stem(word) for word in _DETAILS["token"].findall(sentence)}
    return any(
        frozenset((stem(one), stem(other))) in _OPPOSITES and (stem(one) not in said or content_words(behind))
        for one, other, behind in _replaced_words(claim, sentence)
    )


def _negates(one: str, other: str, paper: str = "") -> bool:
    """Whether `one` negates a word that `other` has beside the same word, and neither `other` nor `paper` negates."""
    words, denied = _strip_negations(one)
    plain, places = _strip_negations(other)
    said = {pair for place, pair in enumerate(pairwise(plain)) if not {place, place + 1} & {*places}}
    found = {
        words[place]
        for place in denied
        if place < len(words) and any(pair in said for pair in pairwise(words[max(0, place - 1) : place + 2]))
    }
    for text in (other, *paper.split("\n")) if found else ():
        words, denied = _strip_negations(text)
        found -= {words[place] for place in denied if place < len(words)}
    return bool(found)


def _strip_negations(text: str) -> tuple[list[str], list[int]]:
    """The words of a sentence without negations, and the positions of the negations among them."""
    words: list[str] = []
    places: list[int] = []
    plain = _DETAILS["contracted"].sub(" not ", _DETAILS["not_only"].sub(" ", text[:_LONGEST_SENTENCE]))
    for word in (found.casefold() for found in _DETAILS["token"].findall(plain)):
        if word in _NEGATION:
            places.append(len(words))
        elif word not in _UNSAID:
            words.append(stem(word))
    return words, places


def _replaced_words(claim: str, sentence: str) -> Iterator[tuple[str, str, str]]:
    """Pairs of a word of the claim and the word of the sentence that it replaces, and the words that follow in both."""
    mine, ours = (
        _DETAILS["token"].findall(claim[:_LONGEST_SENTENCE]),
        _DETAILS["token"].findall(sentence[:_LONGEST_SENTENCE]),
    )
    matcher = SequenceMatcher(None, [word.casefold() for word in mine], [word.casefold() for word in ours], False)
    codes = matcher.get_opcodes()
    for (kind, first, last, start, end), follows in zip(codes, [*codes[1:], None], strict=True):
        if kind == "replace" and last - first == end - start <= 2 and first > 0:
            behind = " ".join(mine[follows[1] : follows[2]][:_BEHIND]) if follows else ""
            yield from ((one, other, behind) for one, other in zip(mine[first:last], ours[start:end], strict=True))
