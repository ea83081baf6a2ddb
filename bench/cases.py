"""Scores the current code on the cases of `tests/unit/cases` that need no model: `python -m bench cases`.

The sentences with several markers need a judge: `support_cases` provides them, and `score_support` scores verdicts.
"""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any

from bench.checks import Score
from bench.papers import ROOT
from citeloom.citations.checks.citation_coverage import uncited_sentences, unsupported_findings
from citeloom.citations.checks.number_parsing import Number, claimed_numbers
from citeloom.citations.checks.number_tracing import number_findings
from citeloom.experiment import Experiment
from citeloom.text.sentences import sentence_spans
from tests.support.citation_samples import make_source

CASES = ROOT / "tests/unit/cases"
_SAME = Decimal("0.001")


@dataclass(frozen=True, slots=True)
class JudgedSentence:
    """A judge's verdict on a sentence with several markers: a label, and the markers at fault."""

    label: str
    idle: frozenset[str] = frozenset()
    contradicting: frozenset[str] = frozenset()


def support_cases() -> list[dict[str, Any]]:
    """Sentences with two or three markers, as described in the README.md next to them."""
    return _cases("support_cases.json")


def score_support(judged: Mapping[str, JudgedSentence]) -> dict[str, Score]:
    """Labels, idle markers and contradicting markers, for verdicts by case id."""
    labels, idle, contradicting = [], [], []
    for case in support_cases():
        said = judged.get(case["id"], JudgedSentence("unjudged"))
        labels.append((case["id"], [case["label"]], [said.label]))
        idle.append((case["id"], case["idle"], sorted(said.idle)))
        contradicting.append((case["id"], case["contradicting"], sorted(said.contradicting)))
    return {
        "labels of sentences": _score(labels),
        "idle markers": _score(idle),
        "contradicting markers": _score(contradicting),
    }


def score_counting() -> dict[str, Score]:
    """Number words that must be traced versus those that only count, and whether their values are read correctly."""
    right, missed, false, values, misread = 0, [], [], 0, []
    for case in _cases("counting_cases.json"):
        text = case["text"]
        claimed = claimed_numbers(text)
        for words, value in case["traced"].items():
            here = _inside(claimed, text, words)
            right += bool(here)
            if not here:
                missed.append(f"{words} | {text}")
            if any(abs(_value(number) - Decimal(value)) < _SAME for number in here):
                values += 1
            else:
                misread.append(f"{words} as {', '.join(str(_value(number)) for number in here) or 'nothing'} | {text}")
        false += [f"{words} | {text}" for words in case["free"] if _inside(claimed, text, words)]
    return {
        "numbers in words that must be traced": Score(right, tuple(missed), tuple(false)),
        "their values": Score(values, tuple(misread), ()),
    }


def shown_today(passage: str) -> list[str]:
    """The lines of a passage that a reader is shown, one per sentence, as in `roles/chat/prompt_format.py`."""
    spans = [(start, end) for start, end in sentence_spans(passage) if any(map(str.isalpha, passage[start:end]))]
    return [" ".join(passage[start:end].split()) for start, end in spans]


def score_number_forms() -> tuple[Score, Score]:
    """Claims whose numbers occur in their source in another form, and hints to another source that has them."""
    found, hinted = [], []
    for case in _cases("number_form_cases.json"):
        cited, other = make_source("E1"), replace(make_source("E2"), text=case["source"])
        if "found" in case:
            flagged = number_findings(case["claim"], [replace(other, evidence=cited.evidence)], Experiment())
            found.append((case["id"], ["found"] * case["found"], ["found"] * (not flagged)))
        else:
            (finding, *_) = number_findings(case["claim"], [cited, other], Experiment())
            hinted.append((case["id"], ["hint"] * case["hint"], ["hint"] * ("from E2" in finding.message)))
    return _score(found), _score(hinted)


def score_markup() -> dict[str, Score]:
    """Units that are shown as they should be, by kind of markup and in total; `false` are additional units."""
    found: dict[str, list[tuple[str, list[str], list[str]]]] = {"all": []}
    for case in _cases("markup_cases.json"):
        row = (
            case["id"],
            [_plain(unit) for unit in case["shown"]],
            [_plain(unit) for unit in shown_today(case["passage"])],
        )
        found["all"].append(row)
        found.setdefault(case["kind"], []).append(row)
    return {f"units of passages, {kind}": _score(rows) for kind, rows in found.items()}


def score_citation() -> Score:
    """Sentences of answers and sections that need a citation, among leads, transitions and other own words."""
    data = json.loads((CASES / "citation_cases.json").read_text(encoding="utf-8"))
    rows = []
    for case in data["cases"]:
        text = case["text"]
        if case["of"] == "answer":
            found = [text[slice(*finding.span)] for finding in unsupported_findings(text) if finding.span]
        else:
            found = [sentence.text for sentence in uncited_sentences(text, data["experiment"])]
        rows.append((case["id"], case["uncited"], found))
    return _score(rows)


def whole_passages() -> tuple[int, int]:
    """How many passages are shown exactly as they should be, and how many there are."""
    cases = _cases("markup_cases.json")
    return sum(
        list(map(_plain, shown_today(case["passage"]))) == list(map(_plain, case["shown"])) for case in cases
    ), len(cases)


def noise_shown() -> float:
    """The fraction of shown letters and digits that should have been removed."""
    shown = wanted = 0
    for case in _cases("markup_cases.json"):
        shown += sum(len(_plain(unit)) for unit in shown_today(case["passage"]))
        wanted += sum(len(_plain(unit)) for unit in case["shown"])
    return 1 - wanted / shown


def measure() -> None:
    """Print the table of `docs/benchmarks.md`."""
    forms, hints = score_number_forms()
    scores = {**score_counting(), "numbers in another form": forms, "hints to numbers": hints, **score_markup()}
    scores |= {"sentences that need a citation": score_citation()}
    print("| cases | labelled | precision | recall |\n|---|---|---|---|")
    for name, score in scores.items():
        shares = f"{_share(score.right, score.false)} | {_share(score.right, score.missed)}"
        print(f"| {name} | {score.right + len(score.missed)} | {shares} |")
    whole, count = whole_passages()
    print(
        f"passages shown exactly as they should be: {whole} of {count}; noise among what is shown: {noise_shown():.2f}"
    )
    print(f"sentences with several markers: {len(support_cases())}, to be judged by a model")
    for name, score in score_counting().items():
        for words in score.missed:
            print(f"missed ({name}): {words}")
        for words in score.false:
            print(f"wrong ({name}): {words}")


def _share(right: int, wrong: Sequence[str]) -> str:
    return f"{right / (right + len(wrong)):.3f}" if right or wrong else "-"


def _inside(claimed: Sequence[Number], text: str, words: str) -> list[Number]:
    start = text.index(words)
    return [number for number in claimed if number.start < start + len(words) and start < number.end]


def _value(number: Number) -> Decimal:
    return number.value / 100 if number.scale == "percent" else number.value


def _score(rows: Sequence[tuple[str, Sequence[str], Sequence[str]]]) -> Score:
    right, missed, false = 0, [], []
    for name, expected, found in rows:
        left = list(found)
        for unit in expected:
            if unit in left:
                left.remove(unit)
                right += 1
            else:
                missed.append(f"{name}: {unit}")
        false += [f"{name}: {unit}" for unit in left]
    return Score(right, tuple(missed), tuple(false))


def _plain(text: str) -> str:
    return "".join(filter(str.isalnum, unicodedata.normalize("NFKC", text).casefold()))


def _cases(name: str) -> list[dict[str, Any]]:
    cases: list[dict[str, Any]] = json.loads((CASES / name).read_text(encoding="utf-8"))["cases"]
    return cases
