"""Recall and precision of figures and tables, against those counted by hand in `tests/acceptance/labels`.

A caption is found if a figure of its kind is on its page and its caption begins with the same words; a table without a
caption, if a table without one is on its page. A cell is found if its words, those of its row and of its column are in
the chunks of its table.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from bench.papers import PDFS, ROOT, available_pdfs
from citeloom.documents.chunking import chunk_paper
from citeloom.documents.figure_search import find_figures
from citeloom.documents.figures import PaperFigure
from citeloom.documents.image_extraction import ReadFigures, read_figures
from citeloom.documents.markdown import ParsedPaper
from citeloom.documents.types import Chunk
from citeloom.ingestion.reading import read_pdf_apart

LABELS: Final = ROOT / "tests" / "acceptance" / "labels" / "figures_and_tables.json"
_SAME: Final = 40  # letters and digits at the beginning that two captions must share
_KINDS: Final = ("figure", "table")


@dataclass(slots=True)
class Score:
    """Counts of one paper or of all: labelled, found and correct floats by kind, cells, and images of figures."""

    labelled: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    correct: Counter[str] = field(default_factory=Counter)
    cells: int = 0
    cells_found: int = 0
    images: int = 0
    missed: list[str] = field(default_factory=list)

    def recall(self, kind: str) -> float:
        """The share of the labelled floats of a kind that were found."""
        return self.correct[kind] / (self.labelled[kind] or 1)

    def precision(self, kind: str) -> float:
        """The share of the found floats of a kind that are labelled."""
        return self.correct[kind] / (self.found[kind] or 1)

    def add(self, other: Score) -> None:
        """Add the counts of another paper."""
        self.labelled += other.labelled
        self.found += other.found
        self.correct += other.correct
        self.cells += other.cells
        self.cells_found += other.cells_found
        self.images += other.images
        self.missed += other.missed


def score_pdfs(folder: Path = PDFS, labels: Path = LABELS, *, images: bool = True) -> dict[str, Score]:
    """The score of each labelled PDF in a folder that has it, without images if they are not to be drawn."""
    scores: dict[str, Score] = {}
    for name, label in labelled_pdfs(labels).items():
        path = folder / f"{name}.pdf"
        if not path.is_file():
            continue
        paper = read_pdf_apart(path)
        found = find_figures(paper)
        read = read_figures(path, paper.text, found) if images else ReadFigures(tuple(each.figure for each in found))
        scores[name] = score_paper(name, paper, read.figures, label["floats"])
    return scores


def labelled_pdfs(labels: Path = LABELS) -> dict[str, dict[str, Any]]:
    """The labels of each PDF, by its name without `.pdf`."""
    labelled: dict[str, dict[str, Any]] = json.loads(labels.read_text(encoding="utf-8"))["pdfs"]
    return labelled


def score_paper(
    name: str, paper: ParsedPaper, figures: Sequence[PaperFigure], floats: Sequence[Mapping[str, Any]]
) -> Score:
    """Compare the figures found in a paper with the labels of its floats."""
    score = Score()
    score.found.update(figure.kind for figure in figures)
    left = [replace(figure, caption=_words(paper, figure)) for figure in figures]
    chunks = chunk_paper(name, paper, lambda texts: [len(text) // 4 for text in texts])
    for item in floats:
        if item["kind"] not in _KINDS:
            continue
        score.labelled[item["kind"]] += 1
        cells = item.get("cells", [])
        score.cells += len(cells)
        match = next((figure for figure in left if _same(figure, item)), None)
        if match is None:
            score.missed.append(f"{name} p. {item['page']} {item['label'] or item['kind'] + ' without a label'}")
            continue
        left.remove(match)
        score.correct[item["kind"]] += 1
        score.images += match.kind == "figure" and match.image_hash is not None
        lost = [cell for cell in cells if not _holds(_text_of(match, chunks), cell)]
        score.cells_found += len(cells) - len(lost)
        score.missed += [f"{name} {match.name}: cell {cell['row']} / {cell['column']}" for cell in lost]
    score.missed += [f"{name} p. {figure.page} {figure.name}: not a float: {figure.caption[:50]}" for figure in left]
    return score


def _same(figure: PaperFigure, item: Mapping[str, Any]) -> bool:
    if figure.kind != item["kind"] or figure.page != item["page"]:
        return False
    found, labelled = _plain(figure.caption), _plain(item["label"] + item["caption"])
    if not labelled or not found:
        return labelled == found
    return found[:_SAME] == labelled[:_SAME][: len(found)]


def _words(paper: ParsedPaper, figure: PaperFigure) -> str:
    """The caption as printed in the paper, with its label and citations."""
    return paper.text[figure.start : figure.end] if figure.start is not None else ""


def _text_of(figure: PaperFigure, chunks: Sequence[Chunk]) -> str:
    """The chunks of a table, from its caption to its last row."""
    if figure.span is None:
        return ""
    start, end = figure.span
    return _plain(" ".join(chunk.text for chunk in chunks if chunk.start < end and chunk.end > start))


def _holds(text: str, cell: Mapping[str, str]) -> bool:
    return all(_plain(words) in text for words in (cell["row"], cell["text"], *cell["column"].split(" / ")))


def _plain(text: str) -> str:
    """Letters and digits, in one case and without ligatures."""
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKD", text).casefold())


def lines(scores: Mapping[str, Score]) -> Iterator[str]:
    """A table of the scores in markdown."""
    whole = Score()
    yield "| paper | figures: recall | precision | with an image | tables: recall | precision | cells in their table |"
    yield "|---|---|---|---|---|---|---|"
    for name, score in scores.items():
        whole.add(score)
        yield _line(name, score)
    yield _line("all", whole)
    yield ""
    yield from (f"- {missed}" for missed in whole.missed)


def _line(name: str, score: Score) -> str:
    kinds = [
        f"{score.correct[kind]}/{score.labelled[kind]} | {score.correct[kind]}/{score.found[kind]}" for kind in _KINDS
    ]
    return f"| {name} | {kinds[0]} | {score.images} | {kinds[1]} | {score.cells_found}/{score.cells} |"


def measure() -> None:
    """Print the scores of the PDFs, if they are there."""
    if available_pdfs("figures", labelled_pdfs()):
        print("\n".join(lines(score_pdfs())))
