"""Parses the numbers of a text as values: 72.5%, 1,234, 2.3 × 10^-7, 1.25 million, twelve.

In a sentence with a citation, small counts in words ("two datasets") are left to the judge unless they are
measurements: with a unit, as a share or ratio ("two thirds", "twofold"), or of a total ("twelve of the forty").

Digits that neither count nor measure are ignored: years and dates, section, figure and version numbers, names such as
p53 or GPT-4, list numbering. A number has a precision (`unit`, the place of its last digit) and a qualifier
("more than"), which decide what it may be rounded from.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from decimal import Decimal, localcontext
from functools import lru_cache

from ...text.sentences import sentence_spans
from .number_value import Hedge, Number
from .number_words import counts, measures, shares, words

_GAP = "[ \u00a0\u2009\u202f]"
_MINUS = "\\-\u2010\u2011\u2212\u2013"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_DIGITS = rf"(?:[0-9]{{1,3}}(?:(?:,|{_GAP}|')[0-9]{{3}})+(?![0-9])(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?|\.[0-9]+)"
_POWER = (
    rf"(?:\^{_GAP}?(?:\{{(?P<tex>[+{_MINUS}]?[0-9]{{1,4}})\}}|(?P<caret>[+{_MINUS}]?[0-9]{{1,4}})\^?)"
    rf"|\*\*(?P<stars>[+{_MINUS}]?[0-9]{{1,4}})"
    rf"|<sup>(?P<sup>[+{_MINUS}]?[0-9]{{1,4}})</sup>|(?P<small>[⁻⁺]?[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,4}}))"
)
# A raised decimal point, as in some journals; before a power of ten it is a product.
_RAISED_POINT = re.compile(
    rf"(?<![\w.·∙⋅])([{_MINUS}]?[0-9]{{1,9}})[·∙⋅](?=[0-9])(?!10(?:\^|\*\*|<sup>|[⁻⁺⁰¹²³⁴⁵⁶⁷⁸⁹]))"
)
_NUMBER = re.compile(
    rf"(?P<sign>(?<![\w.)\]%{_MINUS}])(?!(?<=[0-9%]{_GAP})\u2013)[{_MINUS}](?=[0-9.]))?"
    rf"(?<![\w^])(?<!\^[{{(])(?<![0-9]\.)(?P<digits>{_DIGITS})"
    rf"(?:(?P<e>[eE][+-]?[0-9]{{1,4}}(?![\w]))"
    rf"|(?:{_GAP}*(?:[×x·*]|\\times|\\cdot){_GAP}*10{_POWER})"
    rf"|(?P<scale>{_GAP}?(?:hundred|thousand|million|billion|trillion)\b|[kKMB](?![\w]))|)"
    rf"(?P<percent>{_GAP}?(?:\\?%|per{_GAP}?cent(?:age{_GAP}points?)?\b|percentage{_GAP}points?\b))?"
)
_TEN_TO = re.compile(rf"(?<![\w.^])10{_POWER}")
_TIMES = re.compile(rf"[0-9]{_GAP}*(?:[×x·*]|\\times|\\cdot){_GAP}*$")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "K": 3, "M": 6, "B": 9}

# Words before a number that only names something.
_LABEL = (
    r"(?:sections?|secs?\.|(?<!§)§++|figures?|figs?\.?|tables?|tabs?\.|equations?|eqs?\.?|chapters?|appendi(?:x|ces)|steps?|tasks?"
    r"|experiments?|algorithms?|box(?:es)?|panels?|phases?|type|chromosome|stages?|grades?|layers?|versions?|release"
    r"|python|note|lemma|theorem|definition|proposition|hypothesis|groups?|clusters?|class|days?|lines?|pages?|pp?\."
    r"|no\.|part|round|scenario|condition|question|aim|category|file|supplement(?:ary)?)"
)
_LABELLED = re.compile(
    rf"(?<![\w]){_LABEL}(?:{_GAP}|~|\n)*\(?[A-Z]?[0-9]+(?:\.[0-9]+)*[a-zA-Z]?\)?(?![0-9%])"
    rf"(?:{_GAP}*(?:(?:,|[{_MINUS}]|and|or|to|&){_GAP}*)+\(?[A-Z]?[0-9]+(?:\.[0-9]+)*[a-z]?\)?(?![0-9%\w.,]?[0-9%]))*",
    re.IGNORECASE,
)
_MONTH = (
    r"(?:Jan(?:uary|\.)?|Feb(?:ruary|\.)?|Mar(?:ch|\.)?|Apr(?:il|\.)?|May|June?|July?|Aug(?:ust|\.)?|Sept?(?:ember|\.)?"
    r"|Oct(?:ober|\.)?|Nov(?:ember|\.)?|Dec(?:ember|\.)?)"
)
_NAMED = re.compile(
    rf"[0-9]{{1,2}}(?:st|nd|rd|th)?{_GAP}(?:of{_GAP})?{_MONTH}(?!\w)(?:,?{_GAP}[0-9]{{4}})?"
    rf"|(?<!\w){_MONTH}{_GAP}[0-9]{{1,2}}(?:st|nd|rd|th)?(?!\w)(?:,{_GAP}[0-9]{{4}})?"
    rf"|[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}|(?<!\w)v?[0-9]+(?:\.[0-9]+){{2,}}"  # dates, versions
    rf"|(?<!\w)(?![Tt]op-)[A-Z][\w.]{{0,30}}(?:[{_MINUS}][\w.]{{1,30}}){{0,3}}[{_MINUS}*][0-9]{{1,5}}"  # GPT-4
    r"(?:\.[0-9]{1,3})?"
    rf"(?:[{_MINUS}]?[A-Za-z]\w{{0,20}})?(?![\w%])"
    rf"|(?<![\w.])[0-9]+(?:[DdSs]|st|nd|rd|th|')(?!\w)"  # 3D, 16S, 4th, 5'
    r"|(?<!\w)[a-z]\w{0,20}(?:-[\w.]{1,20}){1,4}-[0-9]{2,8}(?![\w%])"  # gpt-4-0125
    r"|(?<!\w)(?:1[5-9]|20)[0-9]0s(?!\w)|~[0-9]{1,3}~"  # 1990s, subscripts
    r"|(?<=\])\([^()\s]{0,300}\)|\bhttps?://[^\s<>)\]]{1,300}|\b10\.[0-9]{4,9}/[^\s<>)\]]{1,200}"  # addresses
    r"|(?m:^[ \t]*(?:```|~~~))(?s:.{0,20000}?)(?:\n[ \t]*(?:```|~~~)|\Z)"
)
_NUMBERING = re.compile(r"(?m)^[ \t]*(?:#{1,6}[ \t]*)?\(?[0-9]{1,3}(?:\.[0-9]{1,3})*[.)](?=[ \t])")
_YEAR = re.compile(r"(?:1[5-9]|20)[0-9]{2}|2100")
_DATING = re.compile(
    r"(?:\b(?:in|since|by|until|till|during|before|after|from|between|to|and|years?|early|late|mid|circa)|[(,/–-])\s*$",
    re.IGNORECASE,
)
_COUNTED = re.compile(
    r"\s+(?:of\b|(?!(?:was|is|has|does|shows|suggests|finds|reports|gives|its|this|as|across|versus|thus|plus)\b)[a-z-]+s\b)"
)
_EQUALS = re.compile(r"[=<>≤≥]\s*$")

_HEDGES: tuple[tuple[Hedge, re.Pattern[str]], ...] = (
    (
        "above",
        re.compile(r"(?:\b(?:more than|over|above|at least|exceed(?:s|ed|ing)?|greater than)|[>≥])\s*$", re.I),
    ),
    (
        "below",
        re.compile(
            r"(?:\b(?:less than|fewer than|lower than|under|below|at most|up to|nearly|almost|close to)|[<≤])\s*$", re.I
        ),
    ),
    ("about", re.compile(r"(?:\b(?:about|around|roughly|approximately|approx\.|some|circa|ca\.)|[~≈∼])\s*$", re.I)),
)
_HEDGE_SIGNS = frozenset(".>≥<≤~≈∼")  # besides letters, the characters that such words end with
_JOINED = re.compile(rf"{_GAP}*(?:(?:,|[{_MINUS}]|to|and|or|vs\.?|versus){_GAP}*)+")

# 515 of 1,234 and 3/4, which a share in words may stand for; from 4.1 (tonnes) to 8.2, which may be "doubled".
_SLASHED = re.compile(
    r"(?<![\w./])([0-9]{1,6}|[0-9]{1,3},[0-9]{3})\s?(?:/|of\s(?:the\s|all\s)?)\s?([1-9][0-9]{0,5}|[1-9][0-9]{0,2},[0-9]{3})"
    r"(?![\w./]*[0-9])"
)
_CHANGED = re.compile(
    r"\bfrom\s([0-9]{1,9}(?:\.[0-9]{1,9})?)(?:\s?[^\s\d]{1,12}){0,3}?\sto\s([0-9]{1,9}(?:\.[0-9]{1,9})?)"
)
_EXACT = Decimal((0, (1,), -28))
_MARKED = re.compile(r"\[E[1-9][0-9]{0,5}\]")
_LONGEST = 40  # digits; longer numbers are not measurements


def claimed_numbers(text: str) -> list[Number]:
    """The numbers of a draft that count or measure something, in order."""
    text = _RAISED_POINT.sub(r"\1.", text)  # keeps the length
    named = _covering(_names(text))
    found = [
        number
        for number in _scan(text)
        if not named(number.end - 1) and not named(number.start) and not _is_year(text, number)
    ]
    cited = _covering(_cited_sentences(text))
    of_sources = [number for number in shares(text) if cited(number.start)]
    shared = _covering((number.start, number.end) for number in of_sources)
    found += of_sources
    found += [
        number
        for number in words(text)
        if not shared(number.start) and counts(text, number) and (measures(text, number) or not cited(number.start))
    ]
    found.sort(key=lambda number: number.start)
    return [
        replace(number, hedge=hedge) if (hedge := _hedge(text, number)) else number
        for number in _sharing_percent(text, found)
    ]


def given_numbers(text: str) -> list[Number]:
    """The numbers of a source or an experiment that a draft may repeat, including years and parts joined by `_`."""
    text = _RAISED_POINT.sub(r"\1.", text.replace("_", " "))
    named = _covering(_names(text))
    found = [number for number in _scan(text) if not named(number.start) and not named(number.end - 1)]
    # "10 000" is one number or two.
    found += [
        part
        for number in found
        if re.search(_GAP, text[number.start : number.end])
        for part in _scan(text, number.start, number.end, whole=False)
    ]
    found += [*words(text), *_ratios(text), *shares(text)]
    return _sharing_percent(text, sorted(found, key=lambda number: (number.start, -number.end)))


def _scan(text: str, start: int = 0, end: int | None = None, *, whole: bool = True) -> Iterator[Number]:
    if not whole:
        for part in re.finditer(r"[0-9]+(?:\.[0-9]+)?", text[start:end]):
            yield _number(start + part.start(), start + part.end(), part[0], 0)
        return
    powers = [
        match for match in _TEN_TO.finditer(text) if not _TIMES.search(text, max(0, match.start() - 12), match.start())
    ]
    power = _covering(match.span() for match in powers)
    for match in powers:
        exponent = _exponent(match)
        if exponent is not None:
            yield Number(*match.span(), Decimal((0, (1,), exponent)), Decimal((0, (1,), exponent)))
    for match in _NUMBER.finditer(text):
        if power(match.start("digits")):
            continue
        digits = re.sub(rf"{_GAP}|[,']", "", match["digits"])
        exponent = int(match["e"][1:]) if match["e"] else _exponent(match)
        scale = _SCALES[match["scale"].strip()] if match["scale"] else 0
        end_ = match.end()
        if len(digits) <= _LONGEST and abs(exponent or 0) < 1000:
            found = _number(match.start(), end_, digits, (exponent or 0) + scale)
            found = replace(found, value=-found.value) if match["sign"] else found
            yield replace(found, scale="percent") if match["percent"] else found


def _number(start: int, end: int, digits: str, exponent: int) -> Number:
    return Number(start, end, *_value(digits, exponent))


@lru_cache(maxsize=4096)
def _value(digits: str, exponent: int) -> tuple[Decimal, Decimal]:
    """The value of digits and the place of the last one; cached, since logs repeat their numbers."""
    with localcontext() as exact:
        exact.prec = 60
        value = Decimal(digits if not digits.startswith(".") else f"0{digits}").scaleb(exponent)
    return value, Decimal((0, (1,), exponent - len(digits.partition(".")[2])))


def _exponent(match: re.Match[str]) -> int | None:
    for name in ("tex", "caret", "stars", "sup", "small"):
        if match[name]:
            return int(re.sub(f"[{_MINUS}]", "-", match[name].translate(_SUPERSCRIPTS)))
    return None


def _ratios(text: str) -> Iterator[Number]:
    """The values of ratios such as 3/4 and 412 of 515, and of a change from 4.1 to 8.2 in both directions."""
    for match in _SLASHED.finditer(text):
        value = Decimal(match[1].replace(",", "")) / Decimal(match[2].replace(",", ""))
        if value < 1:
            yield Number(*match.span(), value, _EXACT)
    for match in _CHANGED.finditer(text):
        before, after = Decimal(match[1]), Decimal(match[2])
        if before and after:
            yield Number(*match.span(), after / before, _EXACT)


def _names(text: str) -> Iterator[tuple[int, int]]:
    for pattern in (_LABELLED, _NAMED, _NUMBERING):
        yield from (match.span() for match in pattern.finditer(text))


def _covering(spans: Iterable[tuple[int, int]]) -> Callable[[int], bool]:
    """A function that tells whether a position lies in one of the spans."""
    joined: list[list[int]] = []
    for start, end in sorted(spans):
        if joined and start <= joined[-1][1]:
            joined[-1][1] = max(joined[-1][1], end)
        else:
            joined.append([start, end])
    starts = [start for start, _ in joined]

    def covers(position: int) -> bool:
        index = bisect_right(starts, position) - 1
        return index >= 0 and position < joined[index][1]

    return covers


def _is_year(text: str, number: Number) -> bool:
    if not _YEAR.fullmatch(text[number.start : number.end]):
        return False
    before, after = text[max(0, number.start - 12) : number.start], text[number.end : number.end + 30]
    if _EQUALS.search(before):
        return False
    return bool(_DATING.search(before)) or not _COUNTED.match(after)


def _cited_sentences(text: str) -> Iterator[tuple[int, int]]:
    """The spans of sentences with a marker; skips sentence splitting if the text has none."""
    if _MARKED.search(text):
        yield from (span for span in sentence_spans(text) if _MARKED.search(text, *span))


def _hedge(text: str, number: Number) -> Hedge:
    before = text[max(0, number.start - 24) : number.start]
    last = before.rstrip()[-1:]
    if not last.isalpha() and last not in _HEDGE_SIGNS:
        return ""
    return next((hedge for hedge, pattern in _HEDGES if pattern.search(before)), "")


def _sharing_percent(text: str, numbers: list[Number]) -> list[Number]:
    """Apply a final percent sign to preceding numbers: "70 to 72.5%", "91.2, 89.7 and 93.1%"."""
    shared = list(numbers)
    for index in range(len(shared) - 2, -1, -1):
        here, after = shared[index], shared[index + 1]
        if here.scale == "plain" and after.scale != "plain" and _JOINED.fullmatch(text[here.end : after.start]):
            shared[index] = replace(here, scale="either")
    return shared
