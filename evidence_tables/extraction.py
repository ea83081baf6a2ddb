"""Fills an evidence table: screens every paper by its card, then reads the cells of those that may belong.

Everything is stored as soon as it is known, so that repeating a call asks only for what is missing: rows of papers that
were added or changed, cells of columns that were added or described anew.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ..documents import Chunk, Paper
from ..documents.chunking import Window
from ..models.concurrency import gather_all
from ..plurals import counted
from ..roles.cell_protocols import CellReader, RowReading, StudyReading, TableColumn
from ..roles.protocols import EvidenceReader, Need, PaperScreener, Purpose
from ..stores.evidence_table_register import EvidenceTableRegister, StoredCell, StoredPaper
from ..stores.library import Library
from ..tools.paper_cards import screen_papers
from ..tools.scope import Scope
from ..tools.window_search import WindowLimits, propose_windows
from .cells import Cell, accept_cells

OnProgress = Callable[[str], None]

_QUESTION: Final = Need("N1", "", ("",))
_FIRST: Final = WindowLimits(tokens=5_000, window_tokens=700, paper_share=1.0)
_AGAIN: Final = WindowLimits(tokens=2_500, window_tokens=500, paper_share=1.0)
_NEAREST: Final = WindowLimits(tokens=1_500, window_tokens=1, hits=3, paper_share=1.0)
_NEAR: Final = 0.5  # score above which a passage is taken to be near the question if no chat model decides
_AT_ONCE: Final = 16  # papers that are read concurrently


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a paper belongs into a table: "included", "near" (read, and left out for a reason), or "screened out"."""

    status: str
    reason: str = ""
    studies: tuple[str, ...] = ("",)

    def as_dict(self) -> dict[str, Any]:
        """The plain form in the register."""
        return {"status": self.status, "reason": self.reason, "studies": list(self.studies)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> Decision:
        """The decision of a stored record."""
        return cls(record["status"], record["reason"], tuple(record["studies"]))


@dataclass(frozen=True, slots=True)
class TableFiller:
    """What filling one table needs. `cells` and `screener` are None without a chat model: then `reader` finds passages.

    Of more than `most` papers in scope, those nearest to the question are screened.
    """

    library: Library
    register: EvidenceTableRegister
    table_id: str
    question: str
    columns: tuple[TableColumn, ...]
    reader: EvidenceReader
    cells: CellReader | None
    screener: PaperScreener | None
    most: int
    on_progress: OnProgress

    async def fill(self, scope: Scope) -> None:
        """Decide on every paper in scope and store the cells of those that belong; raises whatever the roles raise."""
        papers = [paper for paper in await asyncio.to_thread(self.library.papers) if scope.holds(paper)]
        known = await asyncio.to_thread(self.register.papers, self.table_id)
        undecided = [paper for paper in papers if not _is_current(known.get(paper.key), paper)]
        candidates = await self._candidates(undecided)
        outside = [paper for paper in undecided if paper.key not in candidates]
        await asyncio.to_thread(self._save_outside, outside)
        self.on_progress(
            f"{counted(len(papers), 'paper')} screened, {counted(len(candidates), 'new paper')} to be read"
        )
        stored: dict[str, list[StoredCell]] = defaultdict(list)
        for cell in await asyncio.to_thread(self.register.cells, self.table_id):
            stored[cell.key].append(cell)
        included = [
            paper
            for paper in papers
            if paper.key in candidates
            or (paper not in undecided and Decision.from_dict(known[paper.key].decision).status == "included")
        ]
        limit = asyncio.Semaphore(_AT_ONCE)
        await gather_all(
            self._fill_row(paper, None if paper.key in candidates else known[paper.key], stored[paper.key], limit)
            for paper in included
        )

    async def _candidates(self, papers: Sequence[Paper]) -> frozenset[str]:
        """The keys of the papers that may belong: named by a screener from their cards, else near the question."""
        if not papers:
            return frozenset()
        need = replace(_QUESTION, text=self.question, queries=(self.question,))
        purpose = Purpose(self.question, (need,))
        scope = Scope(tuple(paper.key for paper in papers))
        if self.screener is None:
            found = await gather_all(self._nearest(purpose, paper.key) for paper in papers)
            return frozenset(paper.key for paper, score in zip(papers, found, strict=True) if score >= _NEAR)
        named = await screen_papers(self.library, self.screener, purpose, scope, self.most)
        return frozenset(key for keys in named.values() for key in keys)

    async def _nearest(self, purpose: Purpose, key: str) -> float:
        windows = await propose_windows(self.library, purpose.needs, Scope((key,)), _NEAREST)
        return max([item.score for item in await self.reader.read(purpose, windows)], default=0.0)

    def _save_outside(self, papers: Sequence[Paper]) -> None:
        for paper in papers:
            decision = Decision("screened out").as_dict()
            self.register.save_row(self.table_id, StoredPaper(paper.key, paper_version(paper), decision), ())

    async def _fill_row(
        self, paper: Paper, known: StoredPaper | None, stored: Sequence[StoredCell], limit: asyncio.Semaphore
    ) -> None:
        """Read the columns that a paper lacks, and store them; a paper read before keeps its studies."""
        current = {(cell.column_name, cell.column_version) for cell in stored} if known else set()
        edited = {cell.column_name for cell in stored if cell.edited}
        missing = tuple(
            column
            for column in self.columns
            if (column.name, column_version(column)) not in current and (known is None or column.name not in edited)
        )
        if not missing and known is not None:
            return
        studies = Decision.from_dict(known.decision).studies if known else ()
        async with limit:
            if self.cells is None:
                decision, cells = Decision("included", "its passages are near to the question"), {}
                for column in missing:
                    cells["", column.name] = await self._nearest_cell(paper, column)
            else:
                decision, cells = await self._read_row(self.cells, paper, missing, studies)
        if known is not None and decision.status != "included":
            decision = Decision.from_dict(known.decision)  # columns never throw out a paper
        rows = [
            StoredCell(paper.key, study, column.name, column_version(column), cells[study, column.name].as_dict())
            for study in (studies or decision.studies)
            for column in missing
            if (study, column.name) in cells
        ]
        row = StoredPaper(paper.key, paper_version(paper), decision.as_dict())
        await asyncio.to_thread(self.register.save_row, self.table_id, row, rows)
        self.on_progress(f"{paper.key}: {_outcome(decision, cells)}")

    async def _read_row(
        self, cells: CellReader, paper: Paper, columns: Sequence[TableColumn], studies: Sequence[str]
    ) -> tuple[Decision, dict[tuple[str, str], Cell]]:
        windows = await self._windows(paper, columns, _FIRST, self._opening(paper))
        reading = await cells.read_row(self.question, columns, windows, [name for name in studies if name])
        if reading is None:
            unread = {(study, column.name): Cell(status="unread") for study in studies or ("",) for column in columns}
            return Decision("included", "its passages could not be read", tuple(studies) or ("",)), unread
        if not reading.belongs:
            return Decision("near", reading.reason), {}
        names = tuple(studies) or tuple(dict.fromkeys(study.study for study in reading.studies)) or ("",)
        found = _accept(reading, names, columns)
        lacking = [column for column in columns if any((name, column.name) not in found for name in names)]
        read = {chunk.id for window in windows for chunk in window.chunks}
        again = await self._windows(paper, lacking, _AGAIN, (), read) if lacking else []
        if again:
            second = await cells.read_row(self.question, lacking, again, [name for name in names if name])
            if second is not None:
                found = {**_accept(second, names, lacking), **found}
        for name in names:
            for column in lacking:
                searched = tuple(_need(column, self.question).queries)
                found.setdefault((name, column.name), Cell(status="not_reported", searched=searched))
        return Decision("included", reading.reason, names), found

    async def _windows(
        self,
        paper: Paper,
        columns: Sequence[TableColumn],
        limits: WindowLimits,
        opening: Sequence[Chunk],
        known: set[str] | None = None,
    ) -> list[Window]:
        """The windows of a paper for these columns, in the order of the paper, beginning with its `opening`."""
        needs = [replace(_need(column, self.question), id=f"N{place}") for place, column in enumerate(columns, 1)]
        seen = {*(known or ()), *(chunk.id for chunk in opening)}
        found = await propose_windows(self.library, needs, Scope((paper.key,)), limits, known=seen)
        first = [Window(paper, tuple(opening), (opening[0].id,), (0.0,))] if opening else []
        return [*first, *sorted(found, key=lambda window: window.chunks[0].index)]

    def _opening(self, paper: Paper) -> Sequence[Chunk]:
        """The beginning of a paper, which tells best whether it belongs."""
        return self.library.chunks([f"{paper.key}:{0:05d}"])

    async def _nearest_cell(self, paper: Paper, column: TableColumn) -> Cell:
        """The sentence of a paper nearest to a column, not judged."""
        need = _need(column, self.question)
        windows = await propose_windows(self.library, [need], Scope((paper.key,)), _NEAREST)
        found = await self.reader.read(Purpose(f"{self.question} {column.asks or column.name}", (need,)), windows)
        if not found:
            return Cell(status="not_reported", searched=need.queries)
        from ..documents.evidence import EvidenceSpan

        spans = tuple(EvidenceSpan.of(*span) for span in found[0].spans)
        return Cell(value=" ".join(spans[0].quote.split()), status="not_judged", spans=spans)


def paper_version(paper: Paper) -> str:
    """Identifies the text of a paper that was read."""
    return paper.content_hash[:16]


def column_version(column: TableColumn) -> str:
    """Identifies what a column asks for; a change makes its cells be read again."""
    plain = json.dumps([column.asks, column.kind, column.unit, column.options], ensure_ascii=False)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def _is_current(stored: StoredPaper | None, paper: Paper) -> bool:
    return stored is not None and stored.version == paper_version(paper)


def _need(column: TableColumn, question: str) -> Need:
    asked = column.asks or column.name
    return Need("N1", asked, (*column.queries, f"{asked} {'' if column.queries else question}".strip()), "number")


def _accept(reading: RowReading, names: Sequence[str], columns: Sequence[TableColumn]) -> dict[tuple[str, str], Cell]:
    """The cells that their words bear out, by study and column."""
    found: dict[tuple[str, str], Cell] = {}
    for study in reading.studies:
        name = study.study if study.study in names else names[0] if len(names) == 1 else None
        if name is None:
            continue
        for column in columns:
            cell = accept_cells(_of_column(study, column.name), column)
            if cell is not None:
                found[name, column.name] = cell
    return found


def _of_column(study: StudyReading, column: str) -> list[Any]:
    return [cell for cell in study.cells if cell.column == column]


def _outcome(decision: Decision, cells: Mapping[tuple[str, str], Cell]) -> str:
    if decision.status != "included":
        return f"left out: {decision.reason}"
    filled = sum(cell.status not in ("not_reported", "unread") for cell in cells.values())
    return f"{filled} of {counted(len(cells), 'cell')}"
