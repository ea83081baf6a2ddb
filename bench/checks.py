"""Precision and recall of the checks after writing, on cases labelled by hand before the checks were written.

`python -m bench checks`. A hit counts when it matches the label to the character.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.papers import ROOT
from citeloom.citations.checks.citation_coverage import uncited_sentences
from citeloom.citations.checks.fabricated_citations import find_fabricated
from citeloom.citations.checks.injection import find_suspicions
from citeloom.citations.checks.number_tracing import trace_numbers
from citeloom.citations.checks.repetition import copied_findings
from citeloom.citations.citation_patterns import NamedSource
from citeloom.citations.markers import sentences
from citeloom.documents import Category, Chunk, Evidence, Paper
from citeloom.experiment import Experiment
from citeloom.roles.protocols import Source

CASES = ROOT / "tests/unit/citations"
FABRICATED_TABLES = ("foreign_cases.tsv", "foreign_held_out.tsv")
_CITED = {"E3": NamedSource(("himmelstein", "lizee"), 2017), "E4": NamedSource(("lee", "gitter"), 2022)}
_KEYS = ("himmelstein2017systematic", "lee2022ten", "Zotero_Key-7")


@dataclass(frozen=True, slots=True)
class Score:
    """How many of the labelled words were found, with the misses and the false hits."""

    right: int
    missed: tuple[str, ...]
    false: tuple[str, ...]

    @property
    def precision(self) -> float:
        return self.right / (self.right + len(self.false))

    @property
    def recall(self) -> float:
        return self.right / (self.right + len(self.missed))


def score_numbers() -> Score:
    """Numbers that occur nowhere."""
    data, sources = _case_file("number_cases.json", "sources")
    experiment = Experiment.model_validate(data["experiment"])

    def flagged(text: str) -> list[str]:
        return [text[trace.start : trace.end] for trace in trace_numbers(text, sources, experiment) if not trace.origin]

    return _score([(case["text"], case["untraced"]) for case in data["cases"]], flagged)


def score_origins() -> Score:
    """The origins of found numbers: `number = path`, the one reported when there are several."""
    data, sources = _case_file("number_cases.json", "sources")
    experiment = Experiment.model_validate(data["experiment"])
    right, missed = 0, []
    for case in data["cases"]:
        text = case["text"]
        found = {
            text[trace.start : trace.end]: trace.origin.path or trace.origin.evidence_id
            for trace in trace_numbers(text, sources, experiment)
            if trace.origin
        }
        for number, origins in case["traced"].items():
            if found.get(number) in origins:
                right += 1
            else:
                missed.append(f"{number}: {found.get(number)} | {text}")
    return Score(right, tuple(missed), ())


def score_copied() -> Score:
    """Text copied from a source."""
    data, sources = _case_file("copied_cases.json", "passages")

    def found(text: str) -> list[str]:
        return [text[slice(*run.span)] for run in copied_findings(text, sources, data["experiment"]) if run.span]

    return _score([(case["text"], case["copied"]) for case in data["cases"]], found)


def score_uncited() -> Score:
    """Sentences that need a citation."""
    data = _json("uncited_cases.json")

    def found(text: str) -> list[str]:
        return [sentence.text for sentence in uncited_sentences(text, data["experiment"])]

    return _score([(case["text"], case["uncited"]) for case in data["cases"]], found)


def score_instructions() -> Score:
    """Words that instruct a model: a hit counts when it overlaps the label."""
    right, missed, false = 0, [], []
    for case in _json("instruction_cases.json")["cases"]:
        text = case["text"]
        spans = [(item.start, item.end) for item in find_suspicions(text)]
        labelled = [(text.index(words), text.index(words) + len(words)) for words in case["suspicious"]]
        for start, end in labelled:
            if any(left < end and start < right_end for left, right_end in spans):
                right += 1
            else:
                missed.append(f"{text[start:end]} | {text}")
        if not labelled:
            false += [f"{text[start:end]} | {text}" for start, end in spans]
    return Score(right, tuple(missed), tuple(false))


def score_fabricated(table: str) -> Score:
    """Fabricated citations in one of `FABRICATED_TABLES`."""
    allowed: dict[str, str] = {}
    cases: list[tuple[str, list[str]]] = []
    for row in _rows(table):
        text = _plain(row["text"])
        allowed[text] = row["allowed"]
        cases.append((text, [_plain(span) for span in row["spans"].split(" || ") if span]))

    def found(text: str) -> list[str]:
        cited = sentences(text)

        def names_at(position: int) -> list[NamedSource]:
            here = [sentence for sentence in cited if sentence.start <= position < sentence.end]
            return [_CITED[id] for sentence in here for id in sentence.ids if id in _CITED]

        finds = find_fabricated(text, known_keys=_KEYS, allowed_text=allowed[text], names_at=names_at)
        return [text[item.start : item.end] for item in finds]

    return _score(cases, found)


def measure() -> None:
    """Print the table of `docs/benchmarks.md`, and all misses and false hits."""
    scores = {
        "numbers found nowhere": score_numbers(),
        "origins of numbers": score_origins(),
        "copied runs": score_copied(),
        "sentences in need of a citation": score_uncited(),
        "orders in sources": score_instructions(),
        **{f"fabricated citations, {name}": score_fabricated(name) for name in FABRICATED_TABLES},
    }
    print("| check | labelled | precision | recall |\n|---|---|---|---|")
    for name, score in scores.items():
        print(f"| {name} | {score.right + len(score.missed)} | {score.precision:.3f} | {score.recall:.3f} |")
    for name, score in scores.items():
        for words in score.missed:
            print(f"missed ({name}): {words}")
        for words in score.false:
            print(f"wrong ({name}): {words}")


def _score(cases: Sequence[tuple[str, Sequence[str]]], find: Callable[[str], list[str]]) -> Score:
    right, missed, false = 0, [], []
    for text, expected in cases:
        found = find(text)
        for words in expected:
            if words in found:
                found.remove(words)
                right += 1
            else:
                missed.append(f"{words} | {text}")
        false += [f"{words} | {text}" for words in found]
    return Score(right, tuple(missed), tuple(false))


def _case_file(name: str, texts: str) -> tuple[dict[str, Any], list[Source]]:
    data = _json(name)
    return data, [source_of(identifier, text) for identifier, text in data[texts].items()]


def source_of(identifier: str, text: str) -> Source:
    """A source whose chunk is `text`, with a marker."""
    key = f"paper{identifier}"
    chunk = Chunk(f"{key}:00004", key, 4, text, "Results", "", Category.EVALUATION, 1, None, 0, len(text), 99)
    scores = {"vector_score": 0.7, "llm_score": 0.8, "combined_score": 0.76}
    evidence = Evidence.of(chunk, id=identifier, summary="", start=0, end=9, source_query="", **scores)
    return Source(evidence, Paper(key, "On degree", (), 2017), text)


def _json(name: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((CASES / name).read_text(encoding="utf-8"))
    return data


def _rows(name: str) -> Iterator[dict[str, str]]:
    with Path(CASES / name).open(encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)


def _plain(cell: str) -> str:
    return re.sub(r"\\u([0-9a-f]{4})", lambda match: chr(int(match[1], 16)), cell)
