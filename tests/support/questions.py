"""Thirty questions on the real papers, labelled by hand before the code that answers them was written."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

_TABLE = Path(__file__).parent.parent / "acceptance" / "questions.tsv"


@dataclass(frozen=True, slots=True)
class LabelledQuestion:
    """A question; an answer should cite at least one of `expected`, and nothing when the track is "none"."""

    track: Literal["one_paper", "survey", "none"]
    expected: tuple[str, ...]
    question: str


def labelled_questions() -> list[LabelledQuestion]:
    """All thirty, in the order of the table."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [
            LabelledQuestion(
                cast(Literal["one_paper", "survey", "none"], row["track"]),
                tuple(row["expected"].split()),
                row["question"],
            )
            for row in rows
        ]
