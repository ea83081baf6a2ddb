"""Filling an evidence table: every paper is classified, nothing is read twice, and a person's edits stay."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from citeloom.documents.chunking import Window
from citeloom.evidence_tables.cells import TableCell
from citeloom.evidence_tables.extraction import Decision, TableFiller, column_version
from citeloom.ingestion.ingest import ingest
from citeloom.roles.protocols import (
    CellReading,
    PaperCard,
    Purpose,
    RowReading,
    ScreenedPapers,
    StudyReading,
    TableColumn,
)
from citeloom.stores.evidence_table_register import StoredCell
from citeloom.stores.library import Library
from citeloom.tools.scope import Scope
from citeloom.tools.window_search import WindowLimits
from tests.support.library_fixtures import home, open_library, paper_text, papers

__all__ = ["home", "open_library", "papers"]
GROWTH, COUNT = TableColumn("growth", kind="number"), TableColumn("count", kind="number")
GREW = re.compile(r"grew by (\d+) units")


@dataclass
class Screener:
    """Names all papers but those given, and remembers the cards it was shown."""

    outside: frozenset[str] = frozenset()
    shown: list[str] = field(default_factory=list)

    async def screen(self, purpose: Purpose, cards: Sequence[PaperCard]) -> ScreenedPapers:
        self.shown += [card.key for card in cards]
        return ScreenedPapers({"N1": tuple(card.key for card in cards if card.key not in self.outside)}, {}, len(cards))


@dataclass
class Reader:
    """Reads the first growth value that it is shown, leaves out the papers given to it, and records its requests."""

    outside: frozenset[str] = frozenset()
    value: str = ""
    asked: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)
    shown: str = ""

    async def propose_columns(self, question: str, names: Sequence[str], titles: Sequence[str]) -> Any:
        raise AssertionError("columns are given")

    async def read_row(
        self, question: str, columns: Sequence[TableColumn], windows: Sequence[Window], studies: Sequence[str] = ()
    ) -> RowReading | None:
        key = windows[0].paper.key
        self.asked.append((key, tuple(column.name for column in columns)))
        self.shown += " ".join(chunk.text for window in windows for chunk in window.chunks)
        if key in self.outside:
            return RowReading(False, "it measures nothing")
        for sentence in (item for window in windows for item in window.sentences()):
            if (grew := GREW.search(sentence.text)) is not None:
                span = (sentence.chunk, sentence.start, sentence.end)
                cells = tuple(
                    CellReading(column.name, self.value or grew[1], "", "", "", (span,))
                    for column in columns
                    if column.name != COUNT.name
                )
                return RowReading(True, "it measures growth", (StudyReading("", cells),))
        return RowReading(True, "it measures growth")


@pytest.fixture
async def library(papers: Path, open_library: Any) -> Library:
    made: Library = open_library()
    await ingest(made, [papers])
    return made


def filler(library: Library, reader: Reader, screener: Screener, *columns: TableColumn) -> TableFiller:
    register = library.home.evidence_tables()
    register.save("table-1", "growth", {})
    none: Any = None
    return TableFiller(
        library, register, "table-1", "what grows", columns or (GROWTH,), none, reader, screener, 300, lambda _: None
    )


def cells(fill: TableFiller) -> dict[tuple[str, str], Any]:
    return {(item.key, item.column_name): item.cell for item in fill.register.cells("table-1")}


async def test_every_paper_is_classified_and_each_cell_is_a_slice_of_its_paper(library: Library) -> None:
    fill = filler(library, Reader(), Screener(frozenset({"grace2021"})))
    await fill.fill(Scope())
    decided = {key: item.decision["status"] for key, item in fill.register.papers("table-1").items()}
    assert decided == {"ada2020": "included", "grace2021": "screened out"}
    cell = cells(fill)["ada2020", "growth"]
    (span,) = cell["spans"]
    (chunk,) = library.chunks([span["chunk_id"]])
    quote = chunk.text[span["start"] : span["end"]]
    assert quote == span["quote"] and f"grew by {cell['value']} units" in quote


async def test_a_near_miss_is_left_out_with_its_reason(library: Library) -> None:
    fill = filler(library, Reader(frozenset({"grace2021"})), Screener())
    await fill.fill(Scope())
    decision = Decision(**fill.register.papers("table-1")["grace2021"].decision)
    assert (decision.status, decision.reason) == ("near", "it measures nothing")
    assert {key for key, _ in cells(fill)} == {"ada2020"}


async def test_not_reported_requires_a_second_search_which_is_shown(
    library: Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = WindowLimits(tokens=600, window_tokens=200, paper_share=1.0)
    monkeypatch.setattr("citeloom.evidence_tables.extraction._FIRST", first)
    reader = Reader()
    fill = filler(library, reader, Screener(frozenset({"grace2021"})), GROWTH, COUNT)
    await fill.fill(Scope())
    assert reader.asked == [("ada2020", ("growth", "count")), ("ada2020", ("count",))]
    missing = cells(fill)["ada2020", "count"]
    assert missing["status"] == "not_reported" and missing["searched"]


async def test_an_invented_value_is_rejected_and_not_called_unreported(library: Library) -> None:
    fill = filler(library, Reader(value="777"), Screener())
    await fill.fill(Scope())
    assert {(cell["status"], cell["value"]) for cell in cells(fill).values()} == {("unread", "")}


async def test_the_whole_abstract_is_shown(papers: Path, open_library: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = WindowLimits(tokens=600, window_tokens=200, paper_share=1.0)
    monkeypatch.setattr("citeloom.evidence_tables.extraction._FIRST", first)
    abstract = " ".join(f"Sentence {place} says that weather moves radios in a way of its own." for place in range(60))
    text = paper_text("Hopping radios", "radio").replace(
        "## Introduction", f"## Abstract\n\n{abstract}\n\nTrial registration: NCT00909779.\n\n## Introduction", 1
    )
    assert "NCT00909779" in text
    (papers / "hedy2022.md").write_text(text, encoding="utf-8")
    library = open_library()
    await ingest(library, [papers])
    reader = Reader()
    await filler(library, reader, Screener(frozenset({"ada2020", "grace2021"}))).fill(Scope())
    assert "NCT00909779" in reader.shown


async def test_repeating_asks_nothing_and_a_new_column_asks_only_for_its_cells(library: Library) -> None:
    reader, screener = Reader(), Screener()
    await filler(library, reader, screener).fill(Scope())
    assert sorted(screener.shown) == ["ada2020", "grace2021"]
    reader.asked.clear(), screener.shown.clear()
    await filler(library, reader, screener).fill(Scope())
    assert reader.asked == screener.shown == []
    wider = replace(GROWTH, name="gain")
    await filler(library, reader, screener, GROWTH, wider).fill(Scope())
    assert sorted(reader.asked) == [("ada2020", ("gain",)), ("grace2021", ("gain",))] and screener.shown == []


async def test_an_added_paper_asks_only_for_its_row(library: Library, papers: Path) -> None:
    reader, screener = Reader(), Screener()
    await filler(library, reader, screener).fill(Scope())
    reader.asked.clear(), screener.shown.clear()
    (papers / "hedy2022.md").write_text(paper_text("Hopping radios", "radio"), encoding="utf-8")
    await ingest(library, [papers / "hedy2022.md"])
    await filler(library, reader, screener).fill(Scope())
    assert screener.shown == ["hedy2022"] and reader.asked == [("hedy2022", ("growth",))]


async def test_a_cell_edited_by_a_person_is_kept(library: Library) -> None:
    reader = Reader()
    fill = filler(library, reader, Screener())
    await fill.fill(Scope())
    mine = TableCell("about five", status="edited").as_dict()
    edited = StoredCell("ada2020", "", "growth", column_version(GROWTH), mine, True, 0)
    assert fill.register.edit_cell("table-1", edited).revision == 1
    asked_anew = replace(GROWTH, asks="the growth in the last year")
    await filler(library, reader, Screener(), asked_anew).fill(Scope())
    assert cells(fill)["ada2020", "growth"]["value"] == "about five"
