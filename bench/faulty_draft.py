"""The draft with 25 planted faults of `tests/unit/cases` against the sample papers: `python -m bench.faulty_draft`.

A fault is found when its sentence breaks one of the rules, or has one of the labels, that a reader would name for it;
any other remark on a sentence, apart from notes, is a false alarm. Without a chat model the faults that only a judge
can see are counted apart.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bench.papers import ROOT
from citeloom import Settings, check_text, ingest, open_library

CASES = ROOT / "tests/unit/cases"
SAMPLES = ROOT / "examples/library"


@dataclass(frozen=True, slots=True)
class DraftScore:
    """Faults found, faults missed, missed faults that only a judge can see, and false alarms with their rules."""

    found: list[str]
    missed: list[str]
    left_to_judge: list[str]
    false: list[str]


def score_draft(library: Any, *, judged: bool = False) -> DraftScore:
    """Check the draft against a library that holds the sample papers."""
    faults = json.loads((CASES / "faulty_draft.json").read_text(encoding="utf-8"))["faults"]
    checked = check_text(library, CASES / "faulty_draft.md", bib=SAMPLES / "library.bib")
    score = DraftScore([], [], [], [])
    planted: dict[int, dict[str, Any]] = {}
    for fault in faults:
        (sentence,) = (item for item in checked["sentences"] if fault["words"] in item["claim"])
        planted[sentence["position"]] = fault
    for sentence in checked["sentences"]:
        label = [sentence["label"]] if sentence["kind"] == "cited" else []
        said = label + [item["rule"] for item in sentence["faults"]]
        loud = [item["rule"] for item in sentence["faults"] if item["severity"] != "note"]
        loud += [name for name in label if name in ("contradicted", "overstated", "not_found")]
        here = planted.get(sentence["position"])
        if here is None:
            score.false.extend(f"{rule}: {sentence['claim']}" for rule in loud)
        elif set(said) & set(here["as"]):
            score.found.append(here["id"])
        elif here["judged"] and not judged:
            score.left_to_judge.append(here["id"])
        else:
            score.missed.append(f"{here['id']} {loud or ''}".strip())
    return score


def main() -> None:
    with TemporaryDirectory() as folder, open_library(Path(folder) / "home", settings=Settings()) as library:
        ingest(library, sorted(SAMPLES.glob("*.md")), bib=SAMPLES / "library.bib")
        score = score_draft(library)
    for name in DraftScore.__slots__:
        print(f"{name.replace('_', ' ')}: {len(getattr(score, name))}")
        for line in getattr(score, name):
            print(f"  {line}")


if __name__ == "__main__":
    main()
