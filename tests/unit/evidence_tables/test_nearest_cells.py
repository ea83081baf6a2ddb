"""Cells without a chat model: the nearest sentence, and for numbers the nearest with a number."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from citeloom.documents import Category, Chunk, Paper
from citeloom.documents.chunking import Window
from citeloom.evidence_tables.extraction import TableFiller
from citeloom.roles.protocols import ColumnKind, PassageFinding, Purpose, TableColumn

PAPER = Paper("a2020", "A title", (), 2020)
PLAIN = "Methods tell whether two nodes are related to one another"
NAME = "Neo4j queries networks whose nodes have types"
NUMBER = "The network contains 47,031 nodes of 11 types"


class Reader:
    """Finds these sentences, in this order."""

    def __init__(self, *sentences: str) -> None:
        self.sentences, self.asked = sentences, ""

    async def read(self, purpose: Purpose, windows: Sequence[Window]) -> list[PassageFinding]:
        self.asked = purpose.text
        chunks = [Chunk(f"a:{n:05}", "a2020", n, text, "", "", Category.OTHER, 1, None, 0, len(text), 9)
                  for n, text in enumerate(self.sentences)]  # fmt: skip
        return [PassageFinding(PAPER, c.text, 0.5, "N1", ((c, 0, len(c.text)),), 0.5) for c in chunks]


class Filler(TableFiller):
    async def _windows(self, *given: Any) -> list[Window]:
        return []


@pytest.mark.parametrize(
    ("kind", "sentences", "value"),
    [
        ("number", (PLAIN, NAME, NUMBER), NUMBER),
        ("number", (PLAIN, NAME), ""),
        ("text", (PLAIN, NUMBER), PLAIN),
    ],
)
def test_a_numeric_column_shows_only_sentences_with_a_number(
    kind: ColumnKind, sentences: tuple[str, ...], value: str
) -> None:
    reader = Reader(*sentences)
    rest = cast(Any, None)
    filler = Filler(rest, rest, "t", "q", (), reader, None, None, 9, print)
    cell = asyncio.run(filler._nearest_cell(PAPER, TableColumn("nodes", "nodes", kind)))
    assert cell.value == value and bool(cell.searched) == (not value)
    assert reader.asked == ("How many nodes?" if kind == "number" else "nodes")
