"""Traces the numbers of a section to a JSON path of the experiment or a span of a cited chunk.

0.725 matches 72.5%, 1,234 matches 1234, and a number may be rounded to its shown digits; "more than 9,000" matches
9,074. A number that is found nowhere, or only in a source that its sentence does not cite, is a finding.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from decimal import Decimal
from functools import lru_cache
from typing import Any, Literal

from ...documents.marker_escaping import unescape
from ...experiment import Experiment
from ...roles.protocols import PassageSentence, Source
from ...text.words import STOP_WORDS, stem
from ..markers import sentence_at
from .findings import Finding, shorten_words
from .number_parsing import GAP, Number, Scale, claimed_numbers, given_numbers, pointed_thousands

How = Literal["equal", "rounded", "qualified", "repeated"]

# Fields are searched in this order: measurements, their discussion, plans, code.
_FIELDS = ("metrics", "results", "summary", "reasoning", "execution_result", "hypothesis", "paper_concept")
_LAST = ("experimental_plan", "plots", "experiment_code")
_QUALIFIED = Decimal("0.12")  # tolerance of "nearly" and "more than", as a share of the number
_AROUND = 40  # characters shown on either side of a given number
_REMEMBERED = 1_000  # cached lookups of claims
_COMPARED = 500  # given numbers compared on either side of a claim
_DASH = "[-\u2010-\u2014]"
_WORD_BEHIND = re.compile(rf"(?:{GAP}|{_DASH})?([^\W\d_]{{1,40}})")
_RANGE_BEHIND = re.compile(rf"{GAP}?(?:{_DASH}{{1,3}}|to|and|or){GAP}?[0-9][0-9.,\u00b7]{{0,12}}(?:\\?%)?(?![0-9])")
_SMALLEST_ROUNDED = 10  # "three" is a count, not 2.6 rounded


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a number: a `path` of the experiment, or evidence, with its span (None for JSON numbers)."""

    path: str = ""
    evidence_id: str = ""
    chunk_id: str = ""
    start: int | None = None
    end: int | None = None


@dataclass(frozen=True, slots=True)
class NumberTrace:
    """A number of the text, `text[start:end]`, and its origin; `origin` is None if it was not found.

    `words` are the words around it at its origin. `passages` and `fields` count the shown passages and experiment
    fields that contain the number: a common number may match the first one by chance.
    """

    start: int
    end: int
    origin: Origin | None
    how: How = "equal"
    elsewhere: str = ""  # evidence that contains it but is not cited by the sentence
    words: str = ""
    passages: int = 0
    fields: int = 0

    def as_dict(self, text: str) -> dict[str, Any]:
        """The plain form of the JSON output; `text` is the text that the span refers to."""
        found = {"how": self.how, "words": self.words, "passages": self.passages, "fields": self.fields}
        place = {name: value for name, value in asdict(self.origin).items() if value != ""} if self.origin else {}
        span = {"text": text[self.start : self.end], "start": self.start, "end": self.end}
        return {**span, "found": place | found if place else None}


def trace_numbers(text: str, sources: Sequence[Source], experiment: Experiment) -> list[NumberTrace]:
    """All numbers of a normalised text that count or measure something, in order, with their origin."""
    own = _experiment_index(experiment.model_dump_json())
    cited = {source.evidence.id: _source_index(source) for source in sources}
    traces: list[NumberTrace] = []
    paragraphs = [match.start() for match in re.finditer("\n\n", text)]
    # A number already traced in the paragraph needs no second citation: "That 0.82".
    before: dict[tuple[int, Decimal, Scale], NumberTrace] = {}
    for number in claimed_numbers(text):
        sentence = sentence_at(text, number.start)
        ids = sentence.ids if sentence else ()
        said = (bisect_right(paragraphs, number.start), number.value, number.scale)
        trace = _trace(number, ids, own, cited, before.get(said))
        if trace.origin is None and (thousands := pointed_thousands(text, number)):
            trace = _trace(thousands, ids, own, cited, None)
        if trace.origin is None:
            trace = replace(trace, elsewhere=_source_with(text, number, sources))
        else:
            before.setdefault(said, trace)
        traces.append(trace)
    return traces


def number_findings(
    text: str, sources: Sequence[Source], experiment: Experiment, *, given: str = "experiment"
) -> list[Finding]:
    """Find numbers neither in the experiment (called `given` in messages) nor in a source that their sentence cites."""
    found: list[Finding] = []
    for trace in trace_numbers(text, sources, experiment):
        if trace.origin is None:
            said = f"is neither in the {given} nor in a source that the sentence cites."
            if trace.elsewhere:
                said = f"comes from {trace.elsewhere}, which the sentence does not cite."
            around = shorten_words(text[max(0, trace.start - 40) : trace.end + 25])
            message = f'The number {text[trace.start : trace.end]} ("{around}") {said}'
            ids = tuple(filter(None, [trace.elsewhere]))
            found.append(Finding("number-not-found", message, (trace.start, trace.end), ids))
    return found


@dataclass(frozen=True, slots=True)
class _Given:
    number: Number
    origin: Origin
    ratio_only: bool  # in code a bare 42 is not a percentage
    context: str | tuple[str, int, int]  # the words around it, or the text and span to cut them from

    @property
    def words(self) -> str:
        if isinstance(self.context, str):
            return shorten_words(self.context)
        text, start, end = self.context
        begin, close = max(0, start - _AROUND), min(len(text), end + _AROUND)
        before = text[begin:start].partition(" ")[2] if begin else text[:start]
        after = text[end:close].rpartition(" ")[0] if close < len(text) else text[end:]
        cut = f"{'… ' if begin else ''}{before}{text[start:end]}{after}{' …' if close < len(text) else ''}"
        return " ".join(unescape(cut).split())


class _Index:
    """Given numbers sorted by value, so that a claim is only compared with nearby ones."""

    def __init__(self, given: Sequence[_Given]) -> None:
        self._found = lru_cache(maxsize=_REMEMBERED)(self._search)
        self._paths: dict[Decimal, set[str]] = {}
        for item in given:
            self._paths.setdefault(abs(item.number.value), set()).add(item.origin.path)
        # The first of equal numbers is found.
        first: dict[tuple[object, ...], int] = {}
        for index, item in enumerate(given):
            number = item.number
            first.setdefault((number.value, number.unit, number.scale, number.sign, item.ratio_only), index)
        order = sorted(first.values(), key=lambda index: (abs(float(given[index].number.value)), index))
        self._given = [(given[index], index) for index in order]
        self._sizes = [abs(float(item.number.value)) for item, _ in self._given]

    def count_fields(self, claim: Number) -> int:
        """The number of experiment fields that contain the number matching a claim."""
        found = self.find(claim)
        return len(self._paths[abs(found[0].number.value)]) if found else 0

    def find(self, claim: Number) -> tuple[_Given, How] | None:
        return self._found(replace(claim, start=0, end=0, worded=False))

    def _search(self, claim: Number) -> tuple[_Given, How] | None:
        best: tuple[int, int, _Given, How] | None = None
        for factor, kinds in _readings(claim):
            target = abs(claim.value) / factor
            reach = float(max(claim.unit / factor, target * _QUALIFIED)) if claim.hedge else float(claim.unit / factor)
            low = bisect_left(self._sizes, float(target) - reach * 1.001)
            high = bisect_right(self._sizes, float(target) + reach * 1.001)
            middle = bisect_left(self._sizes, float(target))
            for item, place in self._given[max(low, middle - _COMPARED) : min(high, middle + _COMPARED)]:
                number = item.number
                code = kinds == ("plain",) and factor == 1 and item.ratio_only and claim.scale == "percent"
                if number.scale not in kinds or number.bounds(claim) or code:
                    continue
                if how := _match(claim, number.value * factor, number.unit * factor):
                    rank = (0 if how == "equal" else 1) + (0 if factor != 1 or number.scale == claim.scale else 2)
                    best = min(best or (rank, place, item, how), (rank, place, item, how), key=lambda found: found[:2])
        return (best[2], best[3]) if best else None


def _readings(claim: Number) -> list[tuple[Decimal, tuple[Scale, ...]]]:
    """The factors, by scale, that convert given numbers for comparison with the claim."""
    hundred, one = Decimal(100), Decimal(1)
    as_percent: list[tuple[Decimal, tuple[Scale, ...]]] = [(one, ("percent", "either")), (hundred, ("plain", "either"))]
    if claim.scale == "percent":
        return [*as_percent, (one, ("plain",))]
    return [(one, ("plain", "either")), (1 / hundred, ("percent", "either")), *as_percent * (claim.scale == "either")]


def _match(claim: Number, given: Decimal, unit: Decimal) -> How | None:
    if claim.value < 0 <= given:
        return None
    claimed, true = abs(claim.value), abs(given)
    if claimed == true:
        return "equal"
    counts = claim.scale == "plain" and claim.unit == 1 and claimed < _SMALLEST_ROUNDED
    if unit < claim.unit and abs(claimed - true) <= claim.unit / 2 and (claim.hedge or not counts):
        return "rounded"
    if claim.hedge and not counts:
        trimmed = claimed.normalize()
        last_place = Decimal((0, (1,), trimmed.adjusted() - len(trimmed.as_tuple().digits) + 1))  # 1000 for 9,000
        reach = min(last_place, claimed * _QUALIFIED)
        off = true - claimed
        if {"about": abs(off) <= reach / 2, "above": 0 <= off < reach, "below": 0 <= -off < reach}[claim.hedge]:
            return "qualified"
    return None


def _trace(
    number: Number, ids: Sequence[str], own: _Index, sources: dict[str, _Index], said_before: NumberTrace | None
) -> NumberTrace:
    for index in [*(sources[id] for id in ids if id in sources), own]:
        found = index.find(number)
        if found:
            given, how = found
            passages = sum(source.find(number) is not None for source in sources.values())
            trace = NumberTrace(number.start, number.end, given.origin, how, words=given.words)
            return replace(trace, passages=passages, fields=own.count_fields(number))
    if said_before is not None:
        return replace(said_before, start=number.start, end=number.end, how="repeated")
    return NumberTrace(number.start, number.end, None)


def _source_with(text: str, number: Number, sources: Sequence[Source]) -> str:
    """The first source with the number as written, a count followed by the same noun; empty if there is none."""
    behind = _noun_after(text, number)
    counts = number.scale == "plain" and number.unit >= 1  # "20 patients" are not 20 networks; 90.9% needs no noun
    return next(
        (
            source.evidence.id
            for source in sources
            for given in given_numbers(source.shown)
            if (given.value, given.unit, given.scale) == (number.value, number.unit, number.scale)
            and not given.bounds(number)
            and (not counts or _noun_after(source.shown, given) == behind)
        ),
        "",
    )


def _noun_after(text: str, number: Number) -> str:
    """The singular noun after a number: "patient" for "20 patients" or "20 to 30 patients"; empty if there is none."""
    upper = _RANGE_BEHIND.match(text, number.end)
    found = _WORD_BEHIND.match(text, upper.end() if upper else number.end)
    word = found[1].casefold() if found else ""
    return "" if word in STOP_WORDS else stem(word)


@lru_cache(maxsize=256)
def _source_index(source: Source) -> _Index:
    """The numbers in a source's chunk and in sentences of other chunks shown with it."""
    evidence = source.evidence
    given: list[_Given] = []
    whole = PassageSentence(evidence.chunk_id, 0, len(source.text), source.text)
    for sentence in (whole, *source.beyond):
        # If markup was removed, only the sentence that contains a number is known, not its exact position.
        uncut = len(sentence.text) == sentence.end - sentence.start
        for number in given_numbers(sentence.text):
            span = (number.start, number.end) if uncut else (0, sentence.end - sentence.start)
            start, end = (sentence.start + position for position in span)
            place = Origin("", evidence.id, sentence.chunk_id, start, end)
            given.append(_Given(number, place, False, (sentence.text, number.start, number.end)))
    return _Index(given)


@lru_cache(maxsize=4)  # up to 20 MB each
def _experiment_index(experiment: str) -> _Index:
    return _Index(list(_experiment_numbers(Experiment.model_validate_json(experiment))))


def _experiment_numbers(experiment: Experiment) -> Iterator[_Given]:
    order = [*_FIELDS, "", *_LAST]
    leaves = sorted(
        experiment.leaves(),
        key=lambda leaf: order.index(root) if (root := re.split(r"[.\[]", leaf[0])[0]) in order else len(_FIELDS),
    )
    for path, value in leaves:
        code = path.startswith("experiment_code")
        if isinstance(value, str):
            for number in given_numbers(value):
                place = number.start, number.end
                yield _Given(number, Origin(path, "", "", *place), code, (value, *place))
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            for number in given_numbers(repr(value)):
                yield _Given(number, Origin(path), code, f"{path}: {value!r}")
        elif isinstance(value, list) and not path.startswith("_"):
            size = Number(0, 0, Decimal(len(value)), Decimal(1))
            yield _Given(size, Origin(path), True, f"{path}: a list of {len(value)}")
    # Field names contain numbers too: top_5_accuracy.
    for path, _ in leaves:
        for number in given_numbers(re.sub(r"\[\d+\]", "", path)):
            yield _Given(number, Origin(path), True, f"the name of {path}")
