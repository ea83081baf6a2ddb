"""Copies a library, or an entire home, to another home in a folder or in PostgreSQL.

Nothing is read or embedded again; papers are copied in batches, each one change of the target, then everything else of
the home, so that unfinished runs resume in the copy and no answered call is paid for again. Existing data is skipped:
an interrupted copy continues. At the end everything is compared.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from langchain_core.runnables import RunnableConfig

from ..errors import InputError
from ..models.journal.journal_database import JOURNAL_TABLES
from ..plurals import counted, some
from ..stores.accounts import ACCOUNT_TABLES
from ..stores.home import CHECKPOINT_WRITES, RUN_TABLES, Home
from ..stores.library import Library
from ..stores.metadata_store import METADATA_TABLES
from ..stores.paper_catalog import Change
from ..stores.store_protocols import read_change
from ..table_columns import TypedTable, strip_nul
from .indexing import batches, run_to_end

if TYPE_CHECKING:
    from ..stores.home import Checkpoints

HOME_TABLES: Final = (*JOURNAL_TABLES, *RUN_TABLES, *METADATA_TABLES, *ACCOUNT_TABLES, CHECKPOINT_WRITES)
_CHUNKS_PER_BATCH: Final = 2_000
_CLOSE: Final = 1e-6  # Chroma normalizes vectors again


class CopyError(InputError):
    """A library cannot be copied to the target, or the copy differs."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """The result of copying a library; `present` papers were already in the target."""

    copied: int
    present: int
    chunks: int
    version: str


async def copy_library(
    source: Library, target: Library, on_paper: Callable[[str], None] = lambda _: None
) -> CopyReport:
    """Copy all papers and check the copy; raises `CopyError` if the target holds other papers, or the copy differs."""
    async with target.home.writer_lock().held():
        return await run_to_end(_copy, source, target, on_paper)


def require_no_foreign_papers(source: Library, target: Library) -> None:
    """Raise `CopyError` if the target holds papers that the source does not."""
    if foreign := sorted(target.records().keys() - source.records().keys()):
        message = f"{target.home.name} holds papers that {source.home.name} does not: {some(foreign)}."
        raise CopyError(message, help="Copy into an empty home.")


def _copy(source: Library, target: Library, on_paper: Callable[[str], None]) -> CopyReport:
    version, records = source.version(), source.records()
    require_no_foreign_papers(source, target)
    target.finish_staged()
    embedding = source.catalog.meta("embedding")
    if embedding is not None:
        target.catalog.set_meta("embedding", embedding)
    missing = [key for key in records if not _is_copied(source, target, key)]
    for keys in batches(missing, source.chunk_count, _CHUNKS_PER_BATCH):
        changes = [build_change(source, key) for key in keys]
        target.catalog.stage(changes)
        target.carry_out(changes)
        for key in keys:
            on_paper(key)
    if source.version() != version:
        raise CopyError(f"{source.home.name} changed during the copy.", help="Run the same command again.")
    if differing := [key for key in records if not _is_copied(source, target, key)]:
        papers = f"{counted(len(differing), 'paper')} {'differs' if len(differing) == 1 else 'differ'}"
        message = f"{target.home.name}: {papers} after the copy ({some(differing)})."
        raise CopyError(message, help="Run the same command again.")
    if target.version() != version:
        message = f"{target.home.name} has the same papers after the copy, but another version of the library."
        raise CopyError(message, help="Run the same command again.")
    return CopyReport(len(missing), len(records) - len(missing), target.chunk_count(), version)


def build_change(library: Library, key: str) -> Change:
    """The change that adds a paper of the library to another library; raises `CopyError` if a part is missing."""
    change, figures = read_change(library.records()[key], library.store), library.figures(key)
    images = {figure.image_hash: library.figure_image(figure) or b"" for figure in figures if figure.image_hash}
    if change is None or not all(images.values()):
        message = f"{library.home.name}: texts, vectors or images of {key} are missing."
        raise CopyError(message, help="Run '{citeloom} doctor --repair' there.")
    return replace(change, sections=tuple(library.catalog.sections(key)), figures=figures, images=images)


def _is_copied(source: Library, target: Library, key: str) -> bool:
    """Whether the target has an identical copy of a paper: sections, figures, texts, words and vectors."""
    if target.records().get(key) != source.records()[key]:
        return False
    try:
        mine, theirs = build_change(source, key), build_change(target, key)
    except CopyError:
        return False
    vectors = ("vectors", "summary_vector", "note_vectors")
    return (
        (mine.chunks, mine.sections, mine.figures) == (theirs.chunks, theirs.sections, theirs.figures)
        and all(np.allclose(getattr(mine, name), getattr(theirs, name), atol=_CLOSE) for name in vectors)
        and source.fulltext.entries([key]) == target.fulltext.entries([key])
    )


_MOST_NOTES: Final = 10_000
_BYTES_PER_COMMIT: Final = 4_000_000
_LEAST_ROW: Final = 8_000  # minimum bytes counted for a row: at most 500 rows per commit
Fingerprints = Mapping[tuple[Any, ...], bytes]


async def copy_home(
    source: Library, target: Library, on_progress: Callable[[str], None] = lambda _: None
) -> tuple[CopyReport, dict[str, int]]:
    """Copy an entire home and check the copy; also returns the number of rows in each table of the target.

    Raises `CopyError` if the target holds anything that the source does not, if a run is in progress, and if the copy
    differs.
    """
    copied = _HomeCopy(source, target, on_progress)
    require_no_foreign_papers(source, target)
    await asyncio.to_thread(copied.require_room)
    papers = await copy_library(source, target, lambda key: on_progress(f"copied {key}"))
    async with source.home.open_checkpoints() as mine, target.home.open_checkpoints() as theirs:
        checkpoints = await copied.copy_checkpoints(mine, theirs)
        rows = {table.name: await asyncio.to_thread(copied.copy_table, table) for table in HOME_TABLES}
        if await _checkpoint_fingerprints(mine) != checkpoints:
            raise copied.changed_error()
        rows["memory"] = await asyncio.to_thread(copied.copy_memory)
    return papers, rows | {"checkpoints": len(checkpoints)}


class _HomeCopy:
    """Copies everything in a home except its library."""

    def __init__(self, source: Library, target: Library, on_progress: Callable[[str], None]) -> None:
        self._names = source.home.name, target.home.name
        self._source = source.home
        self._target = target.home
        self._on_progress = on_progress

    def require_room(self) -> None:
        """Raise `CopyError` if a run is in progress or the target has rows that the source lacks."""
        unfinished = [run.thread_id for run in self._source.runs().heads() if run.status != "finished"]
        if busy := [run for run in unfinished if self._source.run_under_way(run)]:
            raise CopyError(f"{self._names[0]}: {some(busy)} is in progress.", help="Copy once it has finished.")
        for table in HOME_TABLES:
            theirs = self._fingerprints(self._target, table)
            if theirs:
                self._require_known(table.name, theirs, self._fingerprints(self._source, table))

    def copy_table(self, table: TypedTable) -> int:
        """Copy the rows of a table and compare them; returns how many there are."""
        there = self._fingerprints(self._target, table)
        copied = 0
        with closing(self._source.rows(table)) as rows:  # closed in this thread, even if interrupted
            fingerprints = _with_fingerprints(table, rows)
            missing = (row for row, key, fingerprint in fingerprints if there.get(key) != fingerprint)

            def size(row: tuple[Any, ...]) -> int:
                return max(_LEAST_ROW, sum(len(value) for value in row if isinstance(value, (str, bytes))))

            for batch in batches(missing, size, _BYTES_PER_COMMIT):
                self._target.put(table, batch)
                copied += len(batch)
        if copied:
            self._on_progress(f"copied {table.name}: {copied}")
        mine, theirs = self._fingerprints(self._source, table), self._fingerprints(self._target, table)
        if mine != theirs:
            self._require_known(table.name, theirs, mine)
            raise self.changed_error()
        return len(theirs)

    def copy_memory(self) -> int:
        """Copy the author's memory; returns its number of entries."""
        if not self._source.has_memory():
            return 0
        with self._source.open_memory() as mine, self._target.open_memory() as theirs:
            found = mine.search((), limit=_MOST_NOTES)
            for item in found:
                theirs.put(item.namespace, item.key, item.value, index=False)
        return len(found)

    async def copy_checkpoints(self, mine: Checkpoints, theirs: Checkpoints) -> Fingerprints:
        """Copy the checkpoints and compare them; returns a fingerprint of each."""
        wanted, there = await _checkpoint_fingerprints(mine), await _checkpoint_fingerprints(theirs)
        self._require_known("checkpoints", there, wanted)
        for place in sorted(place for place, fingerprint in wanted.items() if there.get(place) != fingerprint):
            found = await mine.aget_tuple(_config(*place))
            if found is not None:
                parent = found.parent_config["configurable"]["checkpoint_id"] if found.parent_config else None
                thread, namespace, _ = place
                config = _config(thread, namespace, parent)
                versions = found.checkpoint["channel_versions"]
                await theirs.aput(config, found.checkpoint, found.metadata, versions)
        if await _checkpoint_fingerprints(theirs) != wanted:
            raise self.changed_error()
        return wanted

    def changed_error(self) -> CopyError:
        return CopyError(f"{self._names[0]} changed during the copy.", help="Run the same command again.")

    def _require_known(self, what: str, theirs: Fingerprints, mine: Fingerprints) -> None:
        if foreign := [key for key in theirs if key not in mine]:
            shown = some(":".join(map(str, key)) for key in foreign)
            message = f"{self._names[1]} holds {what} that {self._names[0]} does not: {shown}."
            raise CopyError(message, help="Copy into an empty home, or only the papers (--papers-only).")

    def _fingerprints(self, home: Home, table: TypedTable) -> Fingerprints:
        return {key: fingerprint for _, key, fingerprint in _with_fingerprints(table, home.rows(table))}


def _with_fingerprints(
    table: TypedTable, rows: Iterable[tuple[Any, ...]]
) -> Iterator[tuple[tuple[Any, ...], Any, bytes]]:
    """Each row with its key and a hash of all of it, the same on every home."""
    for row in rows:
        comparable = tuple(strip_nul(value) if isinstance(value, str) else value for value in row)
        key = tuple(comparable[table.stored.index(column)] for column in table.key)
        yield row, key, hashlib.blake2b(repr(comparable).encode(), digest_size=16).digest()


async def _checkpoint_fingerprints(checkpoints: Checkpoints) -> Fingerprints:
    """A hash of each checkpoint, by thread, namespace and id; pending writes are in a separate table."""
    named = [found.config["configurable"] async for found in checkpoints.alist(None)]
    fingerprints: dict[tuple[str, str, str], bytes] = {}
    for name in named:
        place = name["thread_id"], name["checkpoint_ns"], name["checkpoint_id"]
        found = await checkpoints.aget_tuple(_config(*place))
        content = None if found is None else (found.checkpoint, found.metadata, found.parent_config)
        written = repr(_sort_keys(content)).encode("utf-8", "replace")
        fingerprints[place] = hashlib.blake2b(written, digest_size=16).digest()
    return fingerprints


def _config(thread: str, namespace: str, checkpoint: str | None) -> RunnableConfig:
    named = {} if checkpoint is None else {"checkpoint_id": checkpoint}
    return {"configurable": {"thread_id": thread, "checkpoint_ns": namespace, **named}}


def _sort_keys(value: Any) -> Any:
    """Sort the keys of dictionaries in a value, since PostgreSQL reorders parts of a checkpoint stored as JSON."""
    if isinstance(value, Mapping):
        return sorted((str(key), _sort_keys(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [_sort_keys(item) for item in value]
    return value
