"""Copies a library to another home, in a folder or in PostgreSQL, without reading a file or embedding a text again.

Papers are copied in batches, each as one change of the target; what is there already is skipped, so a copy that was
interrupted continues where it stopped. At the end every chunk and vector is compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from ..documents import chunk_id
from ..errors import InputError
from ..plurals import counted
from ..stores.backends import backend_of
from ..stores.library import Library
from ..stores.paper_change import Change
from .doctor import some
from .indexing import to_end

_CHUNKS_PER_BATCH: Final = 2_000
_CLOSE: Final = 1e-6  # Chroma normalizes vectors again


class CopyError(InputError):
    """A library cannot be copied there, or the copy differs."""


@dataclass(frozen=True, slots=True)
class CopyReport:
    """What was copied; `present` papers were there already."""

    copied: int
    present: int
    chunks: int
    version: str


async def copy_library(
    source: Library, target: Library, on_paper: Callable[[str], None] = lambda _: None
) -> CopyReport:
    """Copy all papers and check the copy; raises `CopyError` if the target holds other papers, or the copy differs."""
    async with backend_of(target.home).writer_lock().held():
        return await to_end(_copy, source, target, on_paper)


def require_no_foreign_papers(source: Library, target: Library) -> None:
    """Raise `CopyError` if the target holds papers that the source does not."""
    if foreign := sorted(target.records().keys() - source.records().keys()):
        raise CopyError(
            f"{target.home.name}: holds papers that {source.home.name} does not: {some(foreign)}.",
            help="Copy into an empty home.",
        )


def _copy(source: Library, target: Library, on_paper: Callable[[str], None]) -> CopyReport:
    version, records = source.version(), source.records()
    require_no_foreign_papers(source, target)
    target.finish_staged()
    embedding = source.catalog.meta("embedding")
    if embedding is not None:
        target.catalog.set_meta("embedding", embedding)
    missing = [key for key in records if not _is_there(source, target, key)]
    for keys in _batches(source, missing):
        changes = [change_of(source, key) for key in keys]
        target.catalog.stage(changes)
        target.carry_out(changes)
        for key in keys:
            on_paper(key)
    _verify(source, target, version)
    return CopyReport(len(missing), len(records) - len(missing), target.chunk_count(), version)


def change_of(library: Library, key: str) -> Change:
    """The change that would add a paper of the library to another one; raises `CopyError` if a part is missing."""
    record = library.records()[key]
    ids = [chunk_id(key, index) for index in range(record.chunk_count)]
    stored = library.store.get_chunks(ids, vectors=True)
    summaries = library.store.summary_vectors([key])
    places = [chunk_id(key, place) for place in range(len(record.note.spans))] if record.note else []
    notes = library.store.note_vectors(places)
    figures = library.figures(key)
    images = {figure.image_hash: library.figure_image(figure) or b"" for figure in figures if figure.image_hash}
    if len(stored) < len(ids) or key not in summaries or len(notes) < len(places) or not all(images.values()):
        raise CopyError(
            f"{library.home.name}: texts, vectors or images of {key} are missing.",
            help="Run '{citeloom} doctor --repair' there.",
        )
    rows = [stored[name].vector for name in ids]
    return Change(
        key=key,
        record=record,
        sections=tuple(library.catalog.sections(key)),
        chunks=tuple(stored[name].chunk for name in ids),
        vectors=np.stack([row for row in rows if row is not None]) if rows else np.zeros((0, 0), np.float32),
        summary_vector=summaries[key],
        note_vectors=np.stack([notes[place] for place in places]) if places else np.zeros((0, 0), np.float32),
        figures=figures,
        images=images,
    )


def _is_there(source: Library, target: Library, key: str) -> bool:
    return target.records().get(key) == source.records()[key] and not _differs(source, target, key)


def _differs(source: Library, target: Library, key: str) -> bool:
    """Whether sections, figures, texts, words or vectors of a paper differ."""
    ids = [chunk_id(key, index) for index in range(source.chunk_count(key))]
    mine, theirs = source.store.get_chunks(ids, vectors=True), target.store.get_chunks(ids, vectors=True)
    return (
        source.catalog.sections(key) != target.catalog.sections(key)
        or source.figures(key) != target.figures(key)
        or any(figure.image_hash and target.figure_image(figure) is None for figure in target.figures(key))
        or {name: stored.chunk for name, stored in mine.items()}
        != {name: stored.chunk for name, stored in theirs.items()}
        or source.fulltext.entries([key]) != target.fulltext.entries([key])
        or not all(_close(mine[name].vector, theirs[name].vector) for name in ids)
        or not _close(*(each.store.summary_vectors([key]).get(key) for each in (source, target)))
    )


def _close(one: object, other: object) -> bool:
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.allclose(one, other, atol=_CLOSE)


def _batches(library: Library, keys: Sequence[str]) -> Iterator[list[str]]:
    batch: list[str] = []
    chunks = 0
    for key in keys:
        batch.append(key)
        chunks += library.chunk_count(key)
        if chunks >= _CHUNKS_PER_BATCH:
            yield batch
            batch, chunks = [], 0
    if batch:
        yield batch


def _verify(source: Library, target: Library, version: str) -> None:
    if source.version() != version:
        raise CopyError(f"{source.home.name}: changed during the copy.", help="Run the same command again.")
    differing = [key for key in source.records() if not _is_there(source, target, key)]
    if differing or target.version() != version:
        papers = counted(len(differing), "paper")
        raise CopyError(
            f"{target.home.name}: {papers} differ after the copy ({some(differing)}).",
            help="Run the same command again.",
        )
