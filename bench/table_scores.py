"""Scores tables against tests/acceptance/labels/inventory_questions.json: `python -m bench.table_scores FOLDER`.

FOLDER holds the output of `citeloom table QUESTION --columns ... --json` for labelled questions, a file each. Values
are compared by their numbers, else by their words; `--doubtful` prints each cell that is not right by this, to be read.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.papers import ROOT
from citeloom.citations.checks.number_parsing import given_numbers
from citeloom.documents.plain_text import plain_text
from citeloom.evidence_tables.table_files import format_cell
from citeloom.text.words import is_stop, split_words, stem

LABELS = ROOT / "tests" / "acceptance" / "labels" / "inventory_questions.json"
_SAME = 0.6  # least share of the label's words


@dataclass
class TableScore:
    """What one table found for a labelled question; `doubtful` has lines on cells to read."""

    counts: Counter[str] = field(default_factory=Counter)
    doubtful: list[str] = field(default_factory=list)

    def line(self, name: str) -> str:
        """A row of the printed table."""
        return f"| {name} | " + " | ".join(f"{_share(self.counts, *pair)}" for pair in _FIGURES.values()) + " |"


# Each figure: the counts of its numerator and denominator.
_FIGURES = {
    "recall of papers": ("found", "relevant"),
    "precision of inclusion": ("found", "included"),
    "values right": ("right", "cells"),
    "words right": ("words", "filled"),
    "false not reported": ("missed", "reported"),
    "filled though not reported": ("invented", "unreported"),
}


def score_table(table: Mapping[str, Any], label: Mapping[str, Any]) -> TableScore:
    """Compare the JSON of a table with the label of its question; the rows of one paper count together."""
    score = TableScore()
    relevant, included = set(label["relevant"]), {row["key"] for row in table["rows"]}
    score.counts.update(relevant=len(relevant), included=len(included), found=len(relevant & included))
    for key in sorted(relevant & included):
        rows = [row["cells"] for row in table["rows"] if row["key"] == key]
        for column, wanted in label["cells"][key].items():
            given = [row[name] for row in rows for name in row if name.casefold() == column.casefold()]
            _score_cell(score, f"{key}, {column}", given, wanted)
    return score


def _score_cell(score: TableScore, place: str, given: list[Mapping[str, Any]], wanted: Mapping[str, Any]) -> None:
    filled = [cell for cell in given if cell["value"]]
    counts = score.counts
    counts["cells"] += 1
    if wanted["status"] == "not reported":
        counts.update(unreported=1, right=not filled, invented=bool(filled))
        if filled:
            score.doubtful.append(f"{place}: not reported, but: {format_cell(filled[0])}")
        return
    counts["reported"] += 1
    counts["missed"] += not filled
    text = " ".join(format_cell(cell) for cell in filled)
    quotes = " ".join(_quotes(filled))
    statements = wanted.get("values", [wanted])  # several if the paper contradicts itself: a cell shows each
    right = all(_says(text, item["value"]) for item in statements)
    words = all(_says(quotes, item["words"]) or _says(quotes, item["value"]) for item in statements)
    counts.update(right=right, filled=bool(filled), words=bool(filled) and words)
    if not right or not words:
        score.doubtful.append(
            f"{place}: wanted {[item['value'] for item in statements]!r}, got {text!r} from {quotes!r}"
        )


def _quotes(cells: list[Mapping[str, Any]]) -> Iterator[str]:
    for cell in cells:
        yield cell["quote"]
        yield from _quotes(cell["alternatives"])


def _says(text: str, wanted: str) -> bool:
    """Whether a text has all numbers of `wanted`, or most of its words if `wanted` has no number."""
    numbers = {number.value for number in given_numbers(plain_text(wanted))}
    if numbers:
        return numbers <= {number.value for number in given_numbers(plain_text(text))}
    asked, said = _stems(wanted), _stems(text)
    return not asked or len(asked & said) >= _SAME * len(asked)


def _stems(text: str) -> frozenset[str]:
    return frozenset(stem(word.surface) for word in split_words(plain_text(text)) if not is_stop(word))


def _share(counts: Counter[str], part: str, whole: str) -> str:
    return f"{counts[part]} of {counts[whole]} ({counts[part] / counts[whole]:.2f})" if counts[whole] else "-"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.table_scores", description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--doubtful", action="store_true", help="print the cells to read")
    given = parser.parse_args()
    labels = {item["question"]: item for item in json.loads(LABELS.read_text("utf-8"))["questions"]}
    print("| question | " + " | ".join(_FIGURES) + " |\n|" + "---|" * (len(_FIGURES) + 1))
    whole = TableScore()
    for file in sorted(given.folder.glob("*.json")):
        table = json.loads(file.read_text("utf-8"))
        if table["question"] not in labels:
            print(f"{file.name}: its question is none of the labels'")
            continue
        label = labels[table["question"]]
        score = score_table(table, label)
        print(score.line(label["id"]))
        whole.counts += score.counts
        whole.doubtful += [f"{label['id']}: {line}" for line in score.doubtful]
    print(whole.line("all"))
    if given.doubtful:
        print("\n".join(["", *whole.doubtful]))


if __name__ == "__main__":
    main()
