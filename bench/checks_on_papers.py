"""The checks on material not written for them: experiments with a changed digit, sentences of real papers.

Part of `python -m bench checks`, when CITELOOM_SHARED (or ../shared) has the papers.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.checks import source_of
from bench.papers import ROOT
from citeloom.citations.checks.citation_coverage import uncited_sentences
from citeloom.citations.checks.number_parsing import claimed_numbers
from citeloom.citations.checks.number_tracing import trace_numbers
from citeloom.citations.checks.repetition import copied_findings
from citeloom.experiment import Experiment, load_experiment
from citeloom.text.sentences import sentence_spans

_FIELDS = (
    "results",
    "reasoning",
    "summary",
    "hypothesis.description",
    "paper_concept.description",
    "experimental_plan",
)
_CITATION = re.compile(r"\s*\[[^\[\]]*@[^\[\]]*\]")
_ANY_CITATION = re.compile(r"\s*(?:\[[^\[\]]*@[^\[\]]*\]|\[\d[\d, –-]*\])")
_FEWEST_CITATIONS = 20


def measure() -> None:
    """Print the three tables, or a message when there are no papers."""
    shared = Path(os.environ.get("CITELOOM_SHARED", ROOT.parent / "shared"))
    experiments = [load_experiment(path) for path in sorted((shared / "experiments").glob("*.json"))]
    papers = {path.stem: path.read_text(encoding="utf-8") for path in sorted((shared / "corpus/papers").glob("*.md"))}
    if not experiments or not papers:
        print("no real papers: set CITELOOM_SHARED")
        return
    _changed_digits(experiments)
    _copied_sentences(papers)
    _citations_taken_out(papers)


def _changed_digits(experiments: list[Experiment]) -> None:
    """Replace each digit of an experiment's own statements by each other, and print how many changes are noticed."""
    said = false = 0
    changed: Counter[int] = Counter()
    noticed: Counter[int] = Counter()
    for experiment in experiments:
        for text in map(experiment.text_at, _FIELDS):
            traces = trace_numbers(text, (), experiment)
            said += len(traces)
            false += sum(trace.origin is None for trace in traces)
            for start, end, mutant in _mutants(text):
                length = min(4, len(re.sub(r"\D", "", text[start:end]).lstrip("0")) or 1)
                changed[length] += 1
                noticed[length] += any(
                    trace.origin is None and trace.start < end and start < trace.end
                    for trace in trace_numbers(mutant, (), experiment)
                )
    print(f"the experiments' own numbers: {false} of {said} flagged")
    for length in sorted(changed):
        share = noticed[length] / changed[length]
        print(f"| {length}{' or more' if length == 4 else ''} | {changed[length]} | {share:.3f} |")


def _mutants(text: str) -> Iterator[tuple[int, int, str]]:
    for number in claimed_numbers(text):
        for place in range(number.start, number.end):
            for digit in "123456789" if text[place].isdecimal() else "":
                if digit != text[place]:
                    yield number.start, number.end, text[:place] + digit + text[place + 1 :]


def _copied_sentences(papers: dict[str, str]) -> None:
    """Check sentences of each paper, as if a draft's own, against their passage; and papers against each other."""
    dice = random.Random(1)
    caught = made = runs = pairs = 0
    for key, text in papers.items():
        spans = [
            span
            for span in sentence_spans(text[:150_000])
            if 16 <= len(text[slice(*span)].split()) <= 40 and not re.search(r'[|$"“\n]|^[#!>]', text[slice(*span)])
        ]
        for start, end in dice.sample(spans, min(6, len(spans))):
            words = re.sub(r"[*_`]", "", _ANY_CITATION.sub("", text[start:end]))
            if len(words.split()) > 13:
                made += 1
                passage = source_of("E3", text[max(0, start - 600) : end + 600])
                caught += bool(copied_findings(f"We say that {words} [E3]", [passage], ""))
        for other in dice.sample([name for name in papers if name != key], 2):
            pairs += 1
            runs += len(copied_findings(text[3000:30_000], [source_of("E3", papers[other][3000:30_000])], ""))
    print(f"copied sentences: {caught} of {made} noticed; {pairs} pairs of different papers: {runs} runs")


def _citations_taken_out(papers: dict[str, str]) -> None:
    """Check sentences of manuscripts without their citations: those that had a citation, and those that had none."""
    flagged: Counter[bool] = Counter()
    all_: Counter[bool] = Counter()
    for text in papers.values():
        if len(_CITATION.findall(text)) < _FEWEST_CITATIONS:
            continue
        for start, end in sentence_spans(text):
            words = text[start:end]
            if not 40 <= len(words) <= 500 or "|" in words or words.startswith(("#", "[@", "!")):
                continue
            cited = bool(_CITATION.search(words))
            all_[cited] += 1
            flagged[cited] += bool(uncited_sentences(_CITATION.sub("", words), ""))
    print(
        f"sentences that had a citation: {flagged[True]} of {all_[True]} flagged;"
        f" that had none: {flagged[False]} of {all_[False]}"
    )
