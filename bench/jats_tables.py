"""Scores tables of JATS papers against tests/acceptance/labels/jats_tables.json: `python -m bench.jats_tables FOLDER`.

FOLDER holds the files of `evaluation_papers.tsv` as KEY.xml. A labelled cell is right if it is in the labelled row of a
Markdown table, in a column whose header has the labelled words; a table has its label if a paragraph begins with it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.papers import ROOT
from citeloom.documents.pandoc import as_markdown
from citeloom.documents.plain_text import plain_text

LABELS = ROOT / "tests" / "acceptance" / "labels" / "jats_tables.json"
_ROW = re.compile(r"(?m)^\|.*\|[ \t]*$")
_BAR = re.compile(r"(?<!\\)\|")


def score_paper(markdown: str, cells: list[dict[str, Any]]) -> Iterator[tuple[bool, bool]]:
    """For each labelled cell, whether it has its row and header, and whether the table has its label."""
    blocks = [block.strip() for block in re.split(r"\n[ \t]*\n", markdown)]
    tables = [[_cells(row) for row in _ROW.findall(block)] for block in blocks]
    for cell in cells:
        columns = [_plain(name) for name in cell["columns"]]
        right = any(
            _plain(cell["row"]) in row[0]
            and any(
                _plain(cell["value"]) in text and all(name in head for name in columns)
                for text, head in zip(row, rows[0], strict=False)
            )
            for rows in tables
            for row in rows[2:]
        )
        label = re.escape(cell["table"])
        yield right, any(re.match(rf"(?:Table: )?\W*{label}\b", block) for block in blocks)


def _cells(row: str) -> list[str]:
    return [_plain(text) for text in _BAR.split(row)[1:-1]]


def _plain(text: str) -> str:
    return "".join(plain_text(text).casefold().split())


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.jats_tables", description=__doc__)
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    labels = json.loads(LABELS.read_text("utf-8"))["cells"]
    right = labelled = 0
    for key in dict.fromkeys(cell["key"] for cell in labels):
        cells = [cell for cell in labels if cell["key"] == key]
        for cell, (found, captioned) in zip(cells, score_paper(as_markdown(folder / f"{key}.xml"), cells), strict=True):
            right, labelled = right + found, labelled + captioned
            if not found:
                print(f"{key}, {cell['table']}: {cell['row']} / {', '.join(cell['columns'])}: {cell['value']}")
    total = len(labels)
    print(f"in their row, below their header: {right} of {total}; in tables with their label: {labelled} of {total}")


if __name__ == "__main__":
    main()
