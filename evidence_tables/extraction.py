"""Fills an evidence table: screens every paper by its card, then reads the cells of those that may belong.

Results are stored one by one, so that repeating a call asks only for what is missing: rows of new or changed papers,
and cells of new or redescribed columns.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Final

from ..documents import Category, Chunk, Paper, chunk_id
from ..documents.chunking import Window
from ..documents.plain_text import plain_text
from ..documents.types import EvidenceSpan
from ..experiment import Experiment
from ..models.concurrency import gather_all
from ..plurals import counted
from ..roles.protocols import EvidenceReader, Need, Purpose, RowReading, TableColumn
from ..stores.evidence_table_register import EvidenceTableRegister, StoredCell, StoredPaper
from ..stores.library import Library
from ..tools.paper_cards import find_statement, keys_to_screen, screen_papers
from ..tools.scope import Scope
from ..tools.window_search import WindowLimits, propose_windows
from .cells import TableCell, accept_cells, split_columns, statement_rule

if TYPE_CHECKING:
    from ..roles.chat.chat_cell_reader import ChatCellReader
    from ..roles.chat.chat_reader import ChatScreener

OnProgress = Callable[[str], None]

OWN_STUDY: Final = "this study"  # the key of the user's own study
_NAMED: Final = "named"  # the status of a paper that passed screening but has not been read
_UNJUDGED: Final = "-unjudged"  # version suffix of a decision made without a chat model
_FIRST: Final = WindowLimits(tokens=5_000, window_tokens=700, paper_share=1.0)
_AGAIN: Final = WindowLimits(tokens=2_500, window_tokens=500, paper_share=1.0)
_NEAREST: Final = WindowLimits(tokens=1_500, window_tokens=1, hits=3, paper_share=1.0)
_NEAR: Final = 0.7  # score above which a passage counts as near the question without a chat model
_ABSTRACT_CHUNKS: Final = 3
_AT_ONCE: Final = 16  # papers that are read concurrently
_DIGITS: Final = re.compile(r"(?<!\w)\d")  # neither "one another" nor "Neo4j" is a number


@dataclass(frozen=True, slots=True)
class Decision:
    """Whether a paper belongs in a table: "included", "near" (left out for a reason), "screened out", or "named"."""

    status: str
    reason: str = ""
    studies: Sequence[str] = ("",)


@dataclass(frozen=True, slots=True)
class TableFiller:
    """Fills one table. Without a chat model, `cells` and `screener` are None and `reader` finds passages.

    If more than `most` papers are in scope, only those nearest to the question are screened. Papers are screened for
    `needs`, by default for the question; a single paper is not screened. `own` is the user's study (`own_window`),
    which always gets a row.
    """

    library: Library
    register: EvidenceTableRegister
    table_id: str
    question: str
    columns: tuple[TableColumn, ...]
    reader: EvidenceReader
    cells: ChatCellReader | None
    screener: ChatScreener | None
    most: int
    on_progress: OnProgress
    needs: tuple[Need, ...] = ()
    own: Window | None = None

    async def fill(self, scope: Scope) -> None:
        """Decide on every paper in scope and store the cells of those that belong; raises what the roles raise."""
        papers = {paper.key: paper for paper in await asyncio.to_thread(self.library.papers) if scope.holds(paper)}
        known = await asyncio.to_thread(self.register.papers, self.table_id)
        undecided = [
            key
            for key, paper in papers.items()
            if key not in known or not self._holds(known[key].version, paper_version(paper))
        ]
        named = [key for key in papers if key not in undecided and known[key].decision["status"] == _NAMED]
        chosen = self.cells is None and bool(scope.papers)  # the rows are the papers that the user named
        candidates = [*named, *(undecided if chosen else await self._choose_candidates(papers, undecided))]
        if self.own is not None:
            own = papers[OWN_STUDY] = self.own.paper
            if OWN_STUDY not in known or not self._holds(known[OWN_STUDY].version, paper_version(own)):
                candidates.append(OWN_STUDY)
        count = len(papers) - (self.own is not None)
        self.on_progress(f"{counted(count, 'paper')} in scope, {len(candidates)} left to read")
        stored: dict[str, list[StoredCell]] = defaultdict(list)
        for cell in await asyncio.to_thread(self.register.cells, self.table_id):
            stored[cell.key].append(cell)
        limit = asyncio.Semaphore(_AT_ONCE)
        await gather_all(self._fill_row(papers[key], None, stored[key], limit) for key in candidates)
        decided = [key for key in papers if key not in {*undecided, *candidates}]
        await gather_all(self._fill_row(papers[key], known[key], stored[key], limit) for key in decided)

    def _holds(self, stored: str, version: str) -> bool:
        """Whether a stored version is current, and judged if there is a chat model."""
        return stored in ((version,) if self.cells else (version, version + _UNJUDGED))

    def _version_to_store(self, version: str) -> str:
        return version if self.cells else version + _UNJUDGED

    async def _choose_candidates(self, papers: Mapping[str, Paper], undecided: Sequence[str]) -> list[str]:
        """Find undecided papers that may belong, by their cards, else by a passage near the question.

        Stores the decision on each, so that a continued table does not screen it again. Of more than `most` papers,
        only those nearest to the question are decided on.
        """
        if not undecided:
            return []
        asked = self.question if self.cells else split_columns(self.question)[0]
        needs = self.needs or (Need("N1", asked, (asked,)),)
        purpose = Purpose("; ".join(need.text for need in needs), needs)
        near = await keys_to_screen(self.library, purpose, Scope(tuple(papers)), self.most or len(papers))
        undecided = [key for key in near if key in set(undecided)]
        if not undecided or not self.most or len(papers) == 1:
            return undecided
        if self.screener is None:
            scores = await gather_all(self._nearest_score(purpose, key) for key in undecided)
            out = {key: "" for key, score in zip(undecided, scores, strict=True) if score < _NEAR}
        else:
            screened = await screen_papers(self.library, self.screener, purpose, Scope(tuple(undecided)), self.most)
            kept = {*screened.keys, *screened.unread}  # papers that could not be screened are read
            out = {key: screened.near.get(key, "") for key in undecided if key not in kept}
        decisions = {key: Decision("near" if why else "screened out", why) for key, why in out.items()}
        rows = [self._stored_paper(papers[key], decisions.get(key, Decision(_NAMED))) for key in undecided]
        await asyncio.to_thread(self.register.save_decisions, self.table_id, rows)
        return [key for key in undecided if key not in out]

    async def _nearest_score(self, purpose: Purpose, key: str) -> float:
        windows = await propose_windows(self.library, purpose.needs, Scope((key,)), _NEAREST)
        return max([item.score for item in await self.reader.read(purpose, windows)], default=0.0)

    def _stored_paper(self, paper: Paper, decision: Decision) -> StoredPaper:
        return StoredPaper(paper.key, self._version_to_store(paper_version(paper)), asdict(decision))

    async def _fill_row(
        self, paper: Paper, known: StoredPaper | None, stored: Sequence[StoredCell], limit: asyncio.Semaphore
    ) -> None:
        """Read and store the columns that a paper lacks; a paper read before keeps its decision and studies."""
        before = Decision(**known.decision) if known else None
        if before is not None and before.status != "included":
            return
        # The names of studies last: a person's cells refer to them.
        studies = before.studies if before else tuple(dict.fromkeys(cell.study for cell in stored if cell.edited))
        missing = tuple(column for column in self.columns if before is None or self._lacks(column, studies, stored))
        if not missing and before is not None:
            return
        async with limit:
            if self.cells is None:
                decision = Decision("included", "it was named, or has a passage near the question", studies or ("",))
                nearest = {column.name: await self._nearest_cell(paper, column) for column in missing}
                cells = {(study, name): cell for study in decision.studies for name, cell in nearest.items()}
            else:
                decision, cells = await self._read_row(self.cells, paper, missing, studies)
        rows = [
            StoredCell(paper.key, study, column.name, self._version_to_store(column_version(column)), cell.as_dict())
            for column in missing
            for (study, name), cell in cells.items()
            if name == column.name
        ]
        made = before or decision
        await asyncio.to_thread(self.register.save_row, self.table_id, self._stored_paper(paper, made), rows)
        filled = sum(cell.status not in ("not_reported", "unread") for cell in cells.values())
        progress = f"{filled} of {counted(len(cells), 'cell')}"
        self.on_progress(f"{paper.key}: {progress if made.status == 'included' else f'left out: {made.reason}'}")

    def _lacks(self, column: TableColumn, studies: Sequence[str], stored: Sequence[StoredCell]) -> bool:
        """Whether the column's cell of any study is neither current nor edited by a person."""
        version = column_version(column)
        of_column = [cell for cell in stored if cell.column_name == column.name]
        held = {cell.study for cell in of_column if cell.edited or self._holds(cell.column_version, version)}
        return not held.issuperset(studies)

    async def _read_row(
        self, cells: ChatCellReader, paper: Paper, columns: Sequence[TableColumn], studies: Sequence[str]
    ) -> tuple[Decision, dict[tuple[str, str], TableCell]]:
        # The abstract, else the beginning, shows best whether a paper belongs, and often its registration.
        abstract = self.library.catalog.chunk_rows(keys=[paper.key], categories=[Category.ABSTRACT])[:_ABSTRACT_CHUNKS]
        opening = self.library.chunks([row.id for row in abstract] or [chunk_id(paper.key, 0)])
        windows = await self._windows(paper, columns, _FIRST, opening)
        reading = await cells.read_row(self.question, columns, windows, [name for name in studies if name])
        if reading is None:  # its cells stay unread until the table is next completed
            return Decision("included", "its passages could not be read", tuple(studies) or ("",)), {}
        if not reading.belongs and paper.key != OWN_STUDY:
            return Decision("near", reading.reason), {}
        names = tuple(studies) or tuple(dict.fromkeys(study.study for study in reading.studies)) or ("",)
        found = _accept(reading, names, columns)
        lacking = [column for column in columns if any((name, column.name) not in found for name in names)]
        # Passages with refused values may be read again; those with accepted values are not.
        read = {span.chunk_id for cell in found.values() for span in cell.spans} if lacking else set()
        lacks = {column.name for column in lacking}
        refused = [cell for study in reading.studies for cell in study.cells if cell.column in lacks]
        of_refused = {chunk.id for cell in refused for chunk, _, _ in cell.spans}
        read |= {chunk.id for window in windows for chunk in window.chunks} - of_refused
        again = await self._windows(paper, lacking, _AGAIN, (), read) if lacking else []
        readings = [reading]
        if again and (second := await cells.read_row(self.question, lacking, again, [name for name in names if name])):
            readings.append(second)
            found = {**_accept(second, names, lacking), **found}
        given = {(study.study, cell.column) for part in readings for study in part.studies for cell in study.cells}
        for name in names:
            for column in lacking:
                # A value that its words do not support may be reported nevertheless.
                stated = any(of == column.name and (study == name or len(names) == 1) for study, of in given)
                cell = TableCell(status="unread" if stated else "not_reported", searched=_need(column).queries)
                found.setdefault((name, column.name), cell)
        return Decision("included", reading.reason, names), found

    async def _windows(
        self,
        paper: Paper,
        columns: Sequence[TableColumn],
        limits: WindowLimits,
        opening: Sequence[Chunk],
        known: set[str] | None = None,
    ) -> list[Window]:
        """Return a paper's windows for these columns in reading order, after its `opening`."""
        if paper.key == OWN_STUDY:
            return [self.own] if self.own and self.own.chunks[0].id not in (known or ()) else []
        needs = [replace(_need(column), id=f"N{place}") for place, column in enumerate(columns, 1)]
        seen = {*(known or ()), *(chunk.id for chunk in opening)}
        found = await propose_windows(self.library, needs, Scope((paper.key,)), limits, known=seen)
        first = [Window(paper, tuple(opening), (opening[0].id,), (0.0,))] if opening else []
        return [*first, *sorted(found, key=lambda window: window.chunks[0].index)]

    async def _nearest_cell(self, paper: Paper, column: TableColumn) -> TableCell:
        """Return the paper's sentence that states or is nearest to a column, unjudged; one with a digit for numbers."""
        rule = statement_rule(column)
        if rule and (stated := await asyncio.to_thread(find_statement, self.library, paper.key, rule)):
            span = EvidenceSpan.of(*stated)
            return TableCell(value=" ".join(plain_text(span.quote).split()), status="not_judged", spans=(span,))
        need = _need(column)
        windows = await self._windows(paper, [column], _NEAREST, ())
        asked = replace(need, text=f"How many {need.text}?") if column.kind == "number" else need
        found = await self.reader.read(Purpose(asked.text, (asked,)), windows)
        numeric = column.kind in ("number", "p-value", "interval")
        for finding in found:
            spans = tuple(EvidenceSpan.of(*span) for span in finding.spans)
            if not numeric or _DIGITS.search(spans[0].quote):
                return TableCell(value=" ".join(spans[0].quote.split()), status="not_judged", spans=spans)
        return TableCell(status="not_judged", searched=need.queries)


def own_window(experiment: Experiment) -> Window:
    """Convert the user's experiment to a passage of a study: a paragraph for each value, after its path."""
    values = [(path, value) for path, value in experiment.leaves() if isinstance(value, str | int | float)]
    text = "\n\n".join(f"{path}: {value}" for path, value in values if str(value).strip())
    name = chunk_id(OWN_STUDY, 0)
    chunk = Chunk(name, OWN_STUDY, 0, text, "exp.json", "", Category.OTHER, 1, None, 0, len(text), len(text) // 4)
    paper = Paper(OWN_STUDY, "The user's own study", content_hash=hashlib.sha256(text.encode()).hexdigest())
    return Window(paper, (chunk,), (name,), (1.0,))


def paper_version(paper: Paper) -> str:
    """Return an identifier of a paper's text."""
    return paper.content_hash[:16]


def column_version(column: TableColumn) -> str:
    """Return an identifier of what a column asks for; if it changes, its cells are read again."""
    plain = json.dumps([column.asks, column.kind, column.unit, column.options], ensure_ascii=False)
    return hashlib.sha256(plain.encode()).hexdigest()[:16]


def _need(column: TableColumn) -> Need:
    asked = column.asks or column.name
    return Need("N1", asked, column.queries or (asked,), "number")


def _accept(
    reading: RowReading, names: Sequence[str], columns: Sequence[TableColumn]
) -> dict[tuple[str, str], TableCell]:
    """Return the cells that their words support, by study and column."""
    found: dict[tuple[str, str], TableCell] = {}
    for study in reading.studies:
        name = study.study if study.study in names else names[0] if len(names) == 1 else None
        if name is None:
            continue
        for column in columns:
            cell = accept_cells([cell for cell in study.cells if cell.column == column.name], column)
            if cell is not None:
                found[name, column.name] = cell
    return found
