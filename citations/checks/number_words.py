"""Parses numbers in words (twelve, one hundred and four, two thirds, twofold) and decides which are claims.

A plain count need not occur in a source: whether "two datasets" is right is for the judge of the sentence. A
measurement must: with a unit, as a share or ratio, or of a total.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal

from .number_value import Number

_GAP = "[ \u00a0\u2009\u202f]"
_SMALL = "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split()
_TEENS = [*_SMALL, "seventeen", "eighteen", "nineteen"]
_TENS = "twenty thirty forty fifty sixty seventy eighty ninety".split()
_VALUES = {
    **{word: number for number, word in enumerate(_TEENS)},
    **{word: 10 * number for number, word in enumerate(_TENS, 2)},
}
_WORD = re.compile(
    rf"(?<![\w-])(?P<tens>{'|'.join(_TENS)})[-\s](?P<ones>{'|'.join(_SMALL[1:10])})\b"
    rf"|(?<![\w-])(?P<word>{'|'.join(sorted(_VALUES, key=len, reverse=True))})\b",
    re.IGNORECASE,
)
_SCALES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_BARE_SCALE = re.compile(rf"{_GAP}(hundred|thousand|million|billion|trillion)\b")
_FRACTION = re.compile(r"[-\s](?:half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|tenths?)\b", re.IGNORECASE)
_COMPOUND = re.compile(r"-(?!(?:fold|class|year|month|week|day|hour|layer)s?\b)\w", re.IGNORECASE)
_TALK = re.compile(
    r"(?:\s+[a-z-]+){0,2}?\s+(?:reasons?|explanations?|limitations?|findings?|observations?|aspects?|points?|ways?"
    r"|questions?|directions?|implications?|caveats?|considerations?|lines|kinds?|sides|respects|issues?|challenges?"
    r"|conclusions?|lessons?|things|interpretations?|possibilities|contributions?)\b",
    re.IGNORECASE,
)
_KNOWN_TWO = re.compile(r"\b(?:the|these|those|both|our|its|such|all|other)\s+$", re.IGNORECASE)
_ONE_COUNTS = re.compile(
    rf"\s(?:(?:of|in|out\sof)\s(?:the\s|these\s|those\s)?|to\s|or\s)(?:[0-9]|(?:{'|'.join(_VALUES)})\b)", re.IGNORECASE
)
_PERCENT = re.compile(rf"{_GAP}per{_GAP}?cent(?:age{_GAP}points?)?\b")
_AND_MORE = re.compile(r"\s(?:and\s)?")
_PARTS = {
    **{"half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "sixth": 6, "seventh": 7},
    **{"eighth": 8, "ninth": 9, "tenth": 10},
}
_SHARE = re.compile(
    rf"(?<![\w-])(?P<count>an?|{'|'.join(_SMALL[1:10])})[-\s]"
    r"(?P<whole>half|halves|thirds?|quarters?|fourths?|fifths?|sixths?|sevenths?|eighths?|ninths?|tenths?)\b(?!-)",
    re.IGNORECASE,
)
_OF = re.compile(r"\s+of\b")
_HALF = re.compile(
    r"(?<![\w-])(?<!first )(?<!second )(?<!latter )(?<!former )(?<!other )(?<!upper )(?<!lower )(?<!a )(?<!one )"
    r"(?:half(?=\s(?:of|as|the|that|those|these|its|their|all)\b)|(?<=by )half\b(?!-))",
    re.IGNORECASE,
)
_ONE_IN = re.compile(
    rf"(?<![\w-])(?P<of>{'|'.join(_TEENS[1:])})\s(?:out\sof|in)\s(?:every\s)?"
    rf"(?P<all>{'|'.join((*_TEENS[2:], *_TENS))})\b"
    r"(?!\s(?:hundred|thousand))(?!-)",
    re.IGNORECASE,
)
_FOLD = re.compile(
    rf"(?<![\w-])(?P<by>{'|'.join((*_TEENS[2:], *_TENS))})-?fold\b",
    re.IGNORECASE,
)
# "The answer is twofold:" announces two parts.
_HAS_PARTS = re.compile(r"\b(?:is|are)\s$")
_ENDS = re.compile(r"\s*[:,;.]")
_MULTIPLES = {"doubled": Decimal(2), "tripled": Decimal(3), "quadrupled": Decimal(4), "halved": Decimal("0.5")}
_MULTIPLES["twice"] = Decimal(2)
_TIMES_IN_WORDS = re.compile(r"\b(?:doubled|tripled|quadrupled|halved|twice(?=\s(?:as|the|that)\b))\b", re.IGNORECASE)
_ROUGH = Decimal("0.05")  # a third may be 31% to 35%
_ROUGHLY_TIMES = Decimal("0.5")  # twofold may be 1.75 to 2.25
# Units: a small number in words before one of these is a measurement.
_MEASURED = re.compile(
    r"[\s-](?:(?:kilo|centi|milli|micro|nano|mega|giga)?(?:met(?:re|er)s?|grams?|lit(?:re|er)s?|seconds?|watts?|volts?|hertz|bytes?)"
    r"|minutes?|hours?|days?|nights?|weeks?|months?|years?|decades?|centur(?:y|ies)|degrees?|tonnes?|tons?|miles?|feet|inch(?:es)?"
    r"|hectares?|dollars?|euros?|pounds?|bits?|cores?|epochs?|orders?\sof\smagnitude|standard\s(?:deviations?|errors?)"
    r"|(?:percentage\s)?points?|times\s(?:as|more|less|higher|lower|larger|smaller|greater|longer|shorter|faster|slower|the)"
    r"|folds?|%)\b",
    re.IGNORECASE,
)
_OF_A_TOTAL = re.compile(
    rf"\s(?:out\s)?of\s(?:the\s|these\s|those\s|all\s)?(?:[0-9]|(?:{'|'.join(_VALUES)})\b)", re.IGNORECASE
)
_TOTAL = re.compile(
    rf"(?:[0-9]|\b(?:{'|'.join(_VALUES)}))\s(?:out\s)?of\s(?:the\s|these\s|those\s|all\s)?$", re.IGNORECASE
)
_LARGEST_COUNT = 12


def words(text: str) -> Iterator[Number]:
    """Numbers in words: "twelve", "twenty-five", "one hundred and four"."""
    done = 0
    for match in _WORD.finditer(text):
        if match.start() < done:
            continue
        value, end, exponent = _spelt(text, match)
        percent = _PERCENT.match(text, end)
        done = percent.end() if percent else end
        found = Number(match.start(), done, value, Decimal((0, (1,), exponent)), worded=True)
        yield replace(found, scale="percent") if percent else found


def _spelt(text: str, match: re.Match[str]) -> tuple[Decimal, int, int]:
    """The value of the number that starts with this match, its end, and the place of its last digit."""
    value, end, exponent = _value(match), match.end(), 0
    total = Decimal(0)
    while scale := _BARE_SCALE.match(text, end):
        total, end, exponent = total + Decimal(value).scaleb(_SCALES[scale[1]]), scale.end(), _SCALES[scale[1]]
        following = _AND_MORE.match(text, end)
        more = _WORD.match(text, following.end()) if following and exponent <= _SCALES["thousand"] else None
        if more is None or _FRACTION.match(text, more.end()):
            return total, end, exponent
        value, end, exponent = _value(more), more.end(), 0
    return total + value, end, exponent


def _value(match: re.Match[str]) -> int:
    return _VALUES[(match["tens"] or match["word"]).casefold()] + _VALUES.get((match["ones"] or "").casefold(), 0)


def shares(text: str) -> Iterator[Number]:
    """Shares and ratios in words: two thirds, half of, one in five, twofold, doubled, twice as."""
    for match in _SHARE.finditer(text):
        count, whole = match["count"].casefold(), match["whole"].casefold()
        if count not in ("a", "an") or whole.startswith(("hal", "quarter")) or _OF.match(text, match.end()):
            parts = Decimal(_VALUES.get(count, 1))
            yield Number(*match.span(), parts / _PARTS[whole.removesuffix("s")], _ROUGH, worded=True)
    for match in _HALF.finditer(text):
        yield Number(*match.span(), Decimal("0.5"), _ROUGH, worded=True)
    for match in _ONE_IN.finditer(text):
        first, second = (_VALUES[match[name].casefold()] for name in ("of", "all"))
        if 0 < first < second:
            yield Number(*match.span(), Decimal(first) / second, _ROUGH, worded=True)
    for match in _FOLD.finditer(text):
        if _HAS_PARTS.search(text, max(0, match.start() - 8), match.start()) and _ENDS.match(text, match.end()):
            continue
        yield Number(*match.span(), Decimal(_VALUES[match["by"].casefold()]), _ROUGHLY_TIMES, worded=True)
    for match in _TIMES_IN_WORDS.finditer(text):
        word = match[0].casefold()
        rough = _ROUGH if word == "halved" else _ROUGHLY_TIMES
        yield Number(*match.span(), _MULTIPLES[word], rough, worded=True)


def counts(text: str, number: Number) -> bool:
    """Whether a number in words counts things in the experiment or a source, not the text's own points."""
    before, after = text[max(0, number.start - 12) : number.start], text[number.end : number.end + 60]
    if _FRACTION.match(after) or _COMPOUND.match(after):
        return False
    if number.value == 1:
        return bool(_ONE_COUNTS.match(after))
    if number.value == 2 and _KNOWN_TWO.search(before):
        return False
    return not _TALK.match(after)


def measures(text: str, number: Number) -> bool:
    """Whether a number in words is more than a small count, which in a cited sentence ("two datasets") the judge
    checks against the passages."""
    before, after = text[max(0, number.start - 24) : number.start], text[number.end : number.end + 40]
    return (
        number.value > _LARGEST_COUNT
        or number.scale == "percent"
        or bool(_MEASURED.match(after) or _OF_A_TOTAL.match(after) or _TOTAL.search(before))
    )
