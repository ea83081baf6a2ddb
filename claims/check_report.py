"""What a check says to a reader: labels in words, problems by sentence, and the one-file report."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from markupsafe import Markup

from ..citations.export.evidence_report import content_hash, packaged_template, report_template
from ..citations.markers import SpanSet
from ..citations.quotations import quoted_spans
from ..plurals import counted
from ..text.words import read_rules, shorten
from .claim_records import (
    CheckResult,
    ClaimLabel,
    FaultSeverity,
    PlaceRecord,
    RemarkedText,
    SentenceRecord,
)

_WORDINGS: Final = read_rules(__file__, "check_wordings")
LABELS: Final[Mapping[ClaimLabel, str]] = _WORDINGS["labels"]
# The labels that need attention: how serious each is, and what it says of a sentence.
WRONG_LABELS: Final[Mapping[ClaimLabel, tuple[FaultSeverity, str]]] = _WORDINGS["wrong_labels"]
_CAREFUL: Final[Mapping[str, str]] = _WORDINGS["careful"]
_STRONG: Final = re.compile(
    rf"(?<![\\\w-])(?:{'|'.join(sorted(_CAREFUL, key=len, reverse=True))})(?![\w-])", re.IGNORECASE
)
_ORDER: Final[tuple[FaultSeverity, ...]] = ("error", "warning", "note")
_QUOTED: Final = 240  # characters


def careful_words(text: str) -> list[tuple[int, int, str]]:
    """The spans of words that a text could say more carefully, with what to say instead, but for quotations."""
    quoted = SpanSet(quoted_spans(text))
    found: list[tuple[int, int, str]] = []
    for strong in _STRONG.finditer(text):
        softer = _CAREFUL.get(strong[0].lower())  # none for "w\u0131ll", which the pattern takes for "will"
        if softer and not quoted.holds(strong.start()):
            found.append((*strong.span(), softer.capitalize() if strong[0][0].isupper() else softer))
    return found


def problems(sentence: SentenceRecord) -> list[tuple[str, FaultSeverity, str]]:
    """The problems of a sentence, most serious first: rule, severity, and what is wrong in one line."""
    found = [(fault["rule"], fault["severity"], fault["message"]) for fault in sentence["faults"]]
    label = sentence["label"]
    if sentence["kind"] == "cited" and label in WRONG_LABELS:
        reason = f": {sentence['reason']}" if sentence["reason"] else "."
        found.append((rule_of(label), WRONG_LABELS[label][0], f"{LABELS[label]}{reason}"))
    return sorted(found, key=lambda item: _ORDER.index(item[1]))


def rule_of(label: ClaimLabel) -> str:
    """The name of a label among the rules of faults."""
    return f"claim-{label.replace('_', '-')}"


def severity_of(sentence: SentenceRecord) -> FaultSeverity | None:
    """How serious the worst problem of a sentence is; None if it has none."""
    return next((severity for _, severity, _ in problems(sentence)), None)


def needs_attention(result: CheckResult) -> bool:
    """Whether anything is wrong, or very likely so: the check ends with exit code 4."""
    faults = [fault["severity"] for entry in result["references"] for fault in entry["faults"]]
    found = {*faults, *(severity_of(sentence) for sentence in result["sentences"])}
    return bool(found & {"error", "warning"})


def problem_lines(sentence: SentenceRecord) -> list[str]:
    """The problems of a sentence, most serious first, the deciding words, and the papers of the library that say it."""
    shown = [line for _, _, line in problems(sentence)]
    if not shown:
        return []
    for source in sentence["sources"]:
        for passage in source["passages"][:1]:
            if passage["does"] in ("contradicts", "supports"):
                shown.append(f'{passage["key"]}{_page(passage["page"])}: "{shorten(passage["shown"], _QUOTED)}"')
        if source["cites"]:
            shown.append(f"{source['written']} relies on {', '.join(source['cites'])}.")
    for passage in sentence["elsewhere"][:2]:
        does = "says it" if passage["does"] == "supports" else "is near"
        shown.append(f'{passage["key"]}{_page(passage["page"])} {does}: "{shorten(passage["shown"], _QUOTED)}"')
    return shown


def _page(page: int | None) -> str:
    return "" if page is None else f", p. {page}"


def shown_place(place: PlaceRecord) -> str:
    """Where a sentence is, in a few words."""
    if place["line"] is not None:
        return f"{place['file']}, line {place['line']}"
    if place["page"] is not None:
        return f"page {place['page']}"
    return f"paragraph {(place['paragraph'] or 0) + 1}"


def check_report(result: CheckResult) -> str:
    """The one-file report: each sentence beside its passages, with filters and keys."""
    style = packaged_template("evidence.css") + packaged_template("check.css")
    script = packaged_template("check.js")
    sentences = result["sentences"]
    severities = {sentence["position"]: severity_of(sentence) for sentence in sentences}
    groups = [
        {"section": section, "sentences": list(run)}
        for section, run in groupby(sentences, lambda item: item["section"])
    ]
    cited = sum(sentence["kind"] == "cited" for sentence in sentences)
    opened = {position for position, severity in severities.items() if severity is not None}
    wrong = {position for position, severity in severities.items() if severity in ("error", "warning")}
    filters = [
        ("only-wrong", "Wrong or doubtful", len(wrong)),
        ("only-open", "All remarks", len(opened)),
        ("only-all", "All sentences", len(sentences)),
        ("only-cited", "With citations", cited),
        ("only-uncited", "Without citations", len(sentences) - cited),
    ]
    return report_template("check.html").render(
        result=result,
        name=Path(result["file"]).name,
        style=Markup(style),
        script=Markup(script),
        style_hash=content_hash(style),
        script_hash=content_hash(script),
        labels=LABELS,
        kinds=_WORDINGS["kinds"],
        wrong=[label for label, (severity, _) in WRONG_LABELS.items() if severity in ("error", "warning")],
        figures=list(_figures(result)),
        filters=filters,
        chosen=next((name for name, _, number in filters if number), "only-all"),
        groups=groups,
        places={sentence["position"]: shown_place(sentence["place"]) for sentence in sentences},
        open=opened,
        faulty=wrong,
    )


def _figures(result: CheckResult) -> Iterator[tuple[str, int]]:
    yield "sentence" if len(result["sentences"]) == 1 else "sentences", len(result["sentences"])
    for label, name in LABELS.items():
        number = result["counts"]["labels"].get(label, 0)
        if number:
            yield name.lower(), number
    needing = result["counts"]["kinds"].get("needs", 0)
    if needing:
        yield "without a citation that they need", needing
    faults = [{found["rule"] for found in sentence["faults"]} for sentence in result["sentences"]]
    for name, rules in _WORDINGS["totals"].items():
        if number := sum(not found.isdisjoint(rules.split()) for found in faults):
            yield name, number


def summary_lines(result: CheckResult) -> Sequence[str]:
    """The figures of a check in words."""
    cited = [f"{number} {name}" for name, number in _figures(result)][1:]
    entries = sum(any(item["severity"] != "note" for item in entry["faults"]) for entry in result["references"])
    lines = [f"{counted(len(result['sentences']), 'sentence')}: {', '.join(cited) or 'none cites anything'}."]
    if entries:
        lines.append(
            f"{counted(entries, 'entry', 'entries')} of the reference list {'is' if entries == 1 else 'are'} at fault."
        )
    return lines


def remarked_sentences(result: CheckResult) -> list[tuple[SentenceRecord, list[str]]]:
    """The sentences with problems, and the remarks on each."""
    return [(sentence, lines) for sentence in result["sentences"] if (lines := problem_lines(sentence))]


def remarks_of(result: CheckResult) -> RemarkedText:
    """What needs attention in a text, without the rest."""
    return {
        "summary": list(summary_lines(result)),
        "sentences": [
            {"sentence": one["claim"], "line": one["place"]["line"], "label": one["label"], "remarks": lines}
            for one, lines in remarked_sentences(result)
        ],
        "references": [
            f"{entry['key']}: {found['message']}"
            for entry in result["references"]
            for found in entry["faults"]
            if entry["cited"]
        ],
        "warnings": result["warnings"],
        "complete": result["complete"],
        "usage": result["usage"],
    }
