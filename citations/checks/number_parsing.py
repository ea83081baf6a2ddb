"""Parses the numbers of a text as values: 72.5%, 1,234, 2.3 × 10^-7, 1.25 million, twelve, two thirds, twofold.

In a sentence with a citation, small counts in words ("two datasets") are left to the judge unless they measure: with a
unit, as a share or ratio, or of a total. Digits that neither count nor measure are ignored: years, dates, labels, names
such as p53, list numbering. A number's precision (`unit`) and qualifier ("more than") determine what it may round.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import Final, Literal

from ...text.sentences import sentence_spans
from ...text.words import read_rules
from ..markers import MARKER, SpanSet

Scale = Literal["plain", "percent", "either"]
Hedge = Literal["", "about", "above", "below"]


@dataclass(frozen=True, slots=True)
class Number:
    """The number at `start:end` of a text; `unit` is the value of its last digit's place (0.01 for 0.72)."""

    start: int
    end: int
    value: Decimal
    unit: Decimal
    scale: Scale = "plain"
    hedge: Hedge = ""
    worded: bool = False
    sign: Literal["", "=", "<", ">"] = ""  # the relation sign before it

    def bounds(self, claim: Number) -> bool:
        """Whether this only bounds a value ("<0.001") that the claim states, or bounds, otherwise ("= 0.001")."""
        return claim.sign != "" and self.sign in ("<", ">") and self.sign != claim.sign


GAP = "[ \u00a0\u2009\u202f]"
_TEENS = "ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety"
_VALUES = {
    word: number for number, word in enumerate(f"zero one two three four five six seven eight nine {_TEENS}".split())
}
_VALUES |= {word: 10 * number for number, word in enumerate(_TENS.split(), 2)}
_RULES: Final = read_rules(__file__, "number_rules")
_TALK, _HALF, _MEASURED, _LABELLED, _DATING = (
    re.compile(_RULES[name], re.IGNORECASE) for name in ("talk", "half", "measured", "labelled", "dating")
)
_WORDED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _RULES["worded"].items()}
_NAMED = re.compile("|".join(_RULES["named"]))
_COUNTED = re.compile(_RULES["counted"])
_HEDGES: Mapping[Hedge, re.Pattern[str]] = {
    hedge: re.compile(_RULES["hedges"][hedge], re.IGNORECASE) for hedge in ("above", "below", "about")
}
_DIGITS = {name: re.compile(pattern) for name, pattern in _RULES["digits"].items()}
_ORDINALS = "half third fourth fifth sixth seventh eighth ninth tenth".split()
_PARTS = {"halve": 2, "quarter": 4, **{word: number for number, word in enumerate(_ORDINALS, 2)}}
_MULTIPLES = {"halved": "0.5", "doubled": "2", "twice": "2", "tripled": "3", "quadrupled": "4"}
_ROUGH = Decimal("0.05")  # a third may be 31% to 35%
_ROUGHLY_TIMES = Decimal("0.5")  # twofold may be 1.75 to 2.25
_LARGEST_COUNT = 12


def spelt_numbers(text: str) -> Iterator[Number]:
    """Numbers in words: "twelve", "twenty-five", "one hundred and four"."""
    done = 0
    for match in _WORDED["word"].finditer(text):
        if match.start() < done:
            continue
        value, end, exponent = _spelt(text, match)
        percent = _DIGITS["percent"].match(text, end)
        done = percent.end() if percent else end
        kind: Scale = "percent" if percent else "plain"
        yield Number(match.start(), done, value, Decimal((0, (1,), exponent)), kind, worded=True)


def _spelt(text: str, match: re.Match[str]) -> tuple[Decimal, int, int]:
    """The value of the number that starts with this match, its end, and the place of its last digit."""
    value, end, exponent = _spelt_value(match), match.end(), 0
    total = Decimal(0)
    while scale := _DIGITS["bare_scale"].match(text, end):
        total, end, exponent = total + Decimal(value).scaleb(_SCALES[scale[1]]), scale.end(), _SCALES[scale[1]]
        following = _DIGITS["and_more"].match(text, end)
        more = _WORDED["word"].match(text, following.end()) if following and exponent <= _SCALES["thousand"] else None
        if more is None or _WORDED["fraction"].match(text, more.end()):
            return total, end, exponent
        value, end, exponent = _spelt_value(more), more.end(), 0
    return total + value, end, exponent


def _spelt_value(match: re.Match[str]) -> int:
    return _VALUES[(match["tens"] or match["word"]).casefold()] + _VALUES.get((match["ones"] or "").casefold(), 0)


def shares(text: str) -> Iterator[Number]:
    """Shares and ratios in words: two thirds, half of, one in five, twofold, doubled, twice as."""
    for match in _WORDED["share"].finditer(text):
        count, whole = match["count"].casefold(), match["whole"].casefold()
        if count not in ("a", "an") or whole.startswith(("hal", "quarter")) or _DIGITS["of"].match(text, match.end()):
            parts = Decimal(_VALUES.get(count, 1))
            yield Number(*match.span(), parts / _PARTS[whole.removesuffix("s")], _ROUGH, worded=True)
    for match in _HALF.finditer(text):
        yield Number(*match.span(), Decimal("0.5"), _ROUGH, worded=True)
    for match in _WORDED["one_in"].finditer(text):
        first, second = (_VALUES[match[name].casefold()] for name in ("of", "all"))
        if 0 < first < second:
            yield Number(*match.span(), Decimal(first) / second, _ROUGH, worded=True)
    for match in _WORDED["fold"].finditer(text):
        if _DIGITS["has_parts"].search(text, max(0, match.start() - 8), match.start()) and _DIGITS["ends"].match(
            text, match.end()
        ):
            continue
        yield Number(*match.span(), Decimal(_VALUES[match["by"].casefold()]), _ROUGHLY_TIMES, worded=True)
    for match in _WORDED["times"].finditer(text):
        times = Decimal(_MULTIPLES[match[0].casefold()])
        yield Number(*match.span(), times, _ROUGHLY_TIMES if times > 1 else _ROUGH, worded=True)


def counts(text: str, number: Number) -> bool:
    """Whether a number in words counts things in the experiment or a source, not the text's own points."""
    before, after = text[max(0, number.start - 12) : number.start], text[number.end : number.end + 60]
    if _WORDED["fraction"].match(after) or _WORDED["compound"].match(after):
        return False
    if number.value == 1:
        return bool(_WORDED["one_counts"].match(after))
    if number.value == 2 and _WORDED["known_two"].search(before):
        return False
    return not _TALK.match(after)


def measures(text: str, number: Number) -> bool:
    """Whether a number in words is more than a small count, which the judge checks in a cited sentence."""
    before, after = text[max(0, number.start - 24) : number.start], text[number.end : number.end + 40]
    return (
        number.value > _LARGEST_COUNT
        or number.scale == "percent"
        or bool(_MEASURED.match(after) or _WORDED["of_a_total"].match(after) or _WORDED["total"].search(before))
    )


_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12, "k": 3, "K": 3, "M": 6, "B": 9}

_HEDGE_SIGNS = frozenset(".>≥<≤~≈∼")  # characters other than letters that end a qualifier
_EXACT = Decimal((0, (1,), -28))
_LONGEST = 40  # digits; longer numbers are not measurements


def claimed_numbers(text: str, *, small_counts: bool = False) -> list[Number]:
    """The numbers that count or measure, in order; with `small_counts`, also those in words of cited sentences."""
    text = _DIGITS["raised_point"].sub(r"\1.", text)  # keeps the length
    found = [number for number in _unlabelled(text) if not _is_year(text, number)]
    # Sentences are split only if the text has markers.
    spans = sentence_spans(text) if MARKER.search(text) else []
    cited = SpanSet(span for span in spans if MARKER.search(text, *span))
    of_sources = [number for number in shares(text) if cited.holds(number.start)]
    shared = SpanSet((number.start, number.end) for number in of_sources)
    found += of_sources
    found += [
        number
        for number in spelt_numbers(text)
        if not shared.holds(number.start)
        and counts(text, number)
        and (small_counts or measures(text, number) or not cited.holds(number.start))
    ]
    found.sort(key=lambda number: number.start)
    return [
        replace(number, hedge=hedge) if (hedge := _hedge(text, number)) else number
        for number in _with_signs(text, _sharing_percent(text, found))
    ]


@lru_cache(maxsize=256)
def given_numbers(text: str) -> tuple[Number, ...]:
    """The numbers of a source or an experiment that a draft may repeat, including years and parts joined by `_`."""
    text = _DIGITS["raised_point"].sub(r"\1.", text.replace("_", " "))
    found = list(_unlabelled(text))
    # "10 000" is one number or two.
    found += [
        Number(*match.span(), *_value(match[0], 0))
        for number in found
        if re.search(GAP, text[number.start : number.end])
        for match in re.compile(r"[0-9]+(?:\.[0-9]+)?").finditer(text, number.start, number.end)
    ]
    found += [thousands for number in found if (thousands := pointed_thousands(text, number))]
    # "375m reads" are metres or millions.
    found += [
        replace(number, value=number.value * 1_000_000, unit=number.unit * 1_000_000)
        for number in found
        if _DIGITS["millions"].match(text, number.end)
    ]
    found += [*spelt_numbers(text), *_ratios(text), *shares(text)]
    ordered = sorted(found, key=lambda number: (number.start, -number.end))
    return tuple(_with_signs(text, _sharing_percent(text, ordered)))


def pointed_thousands(text: str, number: Number) -> Number | None:
    """The number if its point separates thousands ("40.000 people"); None if that is unlikely."""
    pointed = _DIGITS["pointed_thousands"].fullmatch(text, number.start, number.end)
    return replace(number, value=number.value * 1000, unit=Decimal(1)) if pointed else None


def _unlabelled(text: str) -> Iterator[Number]:
    named = SpanSet(
        match.span() for pattern in (_LABELLED, _NAMED, _DIGITS["numbering"]) for match in pattern.finditer(text)
    )
    yield from (number for number in _scan(text) if not (named.holds(number.start) or named.holds(number.end - 1)))


def _scan(text: str) -> Iterator[Number]:
    powers = [
        match
        for match in _DIGITS["ten_to"].finditer(text)
        if not _DIGITS["times"].search(text, max(0, match.start() - 12), match.start())
    ]
    power = SpanSet(match.span() for match in powers)
    for match in powers:
        exponent = _exponent(match)
        if exponent is not None:
            yield Number(*match.span(), Decimal((0, (1,), exponent)), Decimal((0, (1,), exponent)))
    for match in _DIGITS["number"].finditer(text):
        if power.holds(match.start("digits")):
            continue
        digits = re.sub(rf"{GAP}|[,']", "", match["digits"])
        exponent = int(match["e"][1:]) if match["e"] else _exponent(match)
        scale = _SCALES[match["scale"].strip()] if match["scale"] else 0
        if len(digits) <= _LONGEST and abs(exponent or 0) < 1000:
            value, unit = _value(digits, (exponent or 0) + scale)
            kind: Scale = "percent" if match["percent"] else "plain"
            yield Number(*match.span(), -value if match["sign"] else value, unit, kind)


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
            return int(_DIGITS["minus"].sub("-", match[name].translate(_SUPERSCRIPTS)))
    return None


def _ratios(text: str) -> Iterator[Number]:
    """The values of ratios such as 3/4 and 412 of 515, and of a change from 4.1 to 8.2 in both directions."""
    for match in _DIGITS["slashed"].finditer(text):
        value = Decimal(match[1].replace(",", "")) / Decimal(match[2].replace(",", ""))
        if value < 1:
            yield Number(*match.span(), value, _EXACT)
    for match in _DIGITS["changed"].finditer(text):
        before, after = Decimal(match[1]), Decimal(match[2])
        if before and after:
            yield Number(*match.span(), after / before, _EXACT)


def _is_year(text: str, number: Number) -> bool:
    if not _DIGITS["year"].fullmatch(text[number.start : number.end]):
        return False
    before, after = text[max(0, number.start - 12) : number.start], text[number.end : number.end + 30]
    if _DIGITS["equals"].search(before):
        return False
    return bool(_DATING.search(before)) or not _COUNTED.match(after)


def _hedge(text: str, number: Number) -> Hedge:
    before = text[max(0, number.start - 24) : number.start]
    last = before.rstrip()[-1:]
    if not last.isalpha() and last not in _HEDGE_SIGNS:
        return ""
    return next((hedge for hedge, pattern in _HEDGES.items() if pattern.search(before)), "")


_SIGNS: dict[str, Literal["=", "<", ">"]] = {
    "=": "=",
    **dict.fromkeys("<\u2264\u2a7d", "<"),
    **dict.fromkeys(">\u2265\u2a7e", ">"),
}


def _with_signs(text: str, numbers: list[Number]) -> list[Number]:
    """Set the relation sign before each number, if there is one; the end of a tag does not count."""
    for place, number in enumerate(numbers):
        sign = _DIGITS["sign"].search(text, max(0, number.start - 6), number.start)
        if sign and not (sign[1] == ">" and _DIGITS["tag"].search(text, max(0, sign.start() - 24), sign.start())):
            numbers[place] = replace(number, sign=_SIGNS[sign[1]])
    return numbers


def _sharing_percent(text: str, numbers: list[Number]) -> list[Number]:
    """Apply a final percent sign to preceding numbers: "70 to 72.5%", "91.2, 89.7 and 93.1%"."""
    for index in range(len(numbers) - 2, -1, -1):
        here, after = numbers[index], numbers[index + 1]
        if (
            here.scale == "plain"
            and after.scale != "plain"
            and _DIGITS["joined"].fullmatch(text[here.end : after.start])
        ):
            numbers[index] = replace(here, scale="either")
    return numbers
