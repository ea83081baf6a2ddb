"""Questions with the kind of their answer and the sentence containing it, labelled before the code was written."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_TABLE = Path(__file__).parent.parent / "acceptance" / "kinds_of_answer.tsv"


@dataclass(frozen=True, slots=True)
class LabelledAnswer:
    """A question whose answer contains `words`, found in one of `papers`; `kind` is "-" when no paper has one."""

    kind: str
    papers: tuple[str, ...]
    words: str
    question: str

    @property
    def has_answer(self) -> bool:
        """True when a sentence of the corpus answers it."""
        return self.kind != "-"

    def is_quoted_in(self, record: dict[str, Any]) -> bool:
        """True when an answer quotes the sentence."""
        return self.has_answer and any(
            citation["key"] in self.papers and self.words in " ".join(citation["quote"].split())
            for citation in record["citations"]
        )


def labelled_answers() -> list[LabelledAnswer]:
    """All of them, in the order of the table."""
    with _TABLE.open(encoding="utf-8", newline="") as file:
        rows = csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return [LabelledAnswer(row["kind"], tuple(row["paper"].split()), row["words"], row["question"]) for row in rows]
