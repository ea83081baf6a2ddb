"""Compares the stores, repairs inconsistencies, and rebuilds the index from the papers' files.

A paper is read again from its file, with its key and metadata; stored vectors are reused, missing ones computed. A
paper whose file is gone is left unchanged if its passages are complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Literal, get_args

from ..documents import chunk_id, split_chunk_id
from ..documents.bibliography import Refusal
from ..documents.paper_names import item_path
from ..documents.pdf.ocr import Ocr
from ..documents.safe_files import FileRefusedError
from ..documents.sandbox import in_thread, raise_if_stopped
from ..plurals import counted, megabytes, some
from ..stores.library import Library
from ..stores.store_protocols import FullTextError, VectorKind, VectorStoreError
from .describing import figure_counts
from .indexing import OnEvent
from .ingest import ingest_sources, orphaned_files
from .ingest_events import IngestReport
from .reading import Chunking, ConvertedFiles
from .sources import SourcePaper, Sources, read_again

Level = Literal["fine", "notice", "problem"]
_REPAIR = "Run 'doctor --repair'."
_REINDEX = "Run 'doctor --repair': they are reindexed from the papers' files."


@dataclass(frozen=True, slots=True)
class DoctorFinding:
    """The result of one check; `remedy` is empty if nothing has to be done."""

    level: Level
    topic: str
    message: str
    remedy: str = ""


_fine, _notice, _problem = (partial(DoctorFinding, level) for level in get_args(Level))


def examine(library: Library) -> list[DoctorFinding]:
    """Check home, embedding, counts, lock, unfinished work and every store, without changing anything."""
    made_by = library.catalog.meta("embedding") or f"{library.embedding.name} (nothing embedded yet)"
    held = f"{counted(len(library.papers()), 'paper')}, {counted(library.chunk_count(), 'chunk')}"
    findings = [
        _fine("home", str(library.home.name)),
        _fine("embedding", made_by),
        _fine("library", f"{held}, version {library.version()}"),
        *((_fine if good else _problem)(topic, message) for good, topic, message in library.stores.state()),
    ]
    unfinished = library.catalog.unfinished()
    if (holder := library.home.writer_lock().holder()) is not None:
        findings.append(_notice("lock", f"process {holder} is writing the library", "Wait for it to end."))
        if unfinished:
            findings.append(_notice("unfinished", f"being indexed: {some(unfinished)}", "Wait for it to end."))
    elif unfinished:
        message = f"not fully indexed: {some(unfinished)}"
        findings.append(_problem("unfinished", message, "Run 'doctor --repair', or ingest."))
    readable = vectors_finding(library)
    if readable.level == "problem":
        findings.append(readable)
    else:
        found, _, orphans = differences(library)
        faults = [_problem(topic, f"{what}: {some(sorted(keys))}", _REINDEX) for topic, what, keys in found if keys]
        if orphans:
            message = f"{counted(len(orphans), 'record')} without a paper: {some(sorted(orphans))}"
            faults.append(_problem("vectors", message, _REPAIR))
        findings += faults or [_fine("vectors", "catalog and vector store agree")]
    findings += [fulltext_finding(library), figures_finding(library)]
    if orphaned := orphaned_files(library):
        held = f"{_describe_orphans(orphaned)}: {some(sorted(orphaned))}"
        findings.append(_notice("files", held, "'doctor --repair' deletes them."))
    if gone := [paper.key for paper in library.papers() if paper.source and not Path(paper.source).is_file()]:
        findings.append(
            _notice("files", f"files are missing for: {some(gone)}", "Remove them, or ingest with --prune.")
        )
    return findings


def _describe_orphans(files: Mapping[str, tuple[int, object]]) -> str:
    size = megabytes(sum(size for size, _ in files.values()))
    return f"{counted(len(files), 'file')} that belong to no paper or run, {size}"


def vectors_finding(library: Library) -> DoctorFinding:
    """Check that every vector can be read; the index may be lost while the records still exist."""
    try:
        library.store.read_through()
    except VectorStoreError as error:
        return _problem("vectors", error.message.rstrip("."), _REINDEX)
    return _fine("vectors", "every vector can be read")


def fulltext_finding(library: Library) -> DoctorFinding:
    """Check that the full-text index holds exactly the stored chunks."""
    unfinished = set(library.catalog.unfinished())
    listed = {row.id: row.text_hash for row in library.catalog.chunk_rows()}
    try:
        stored = library.store.stored_ids()
        listed = {identifier: text for identifier, text in listed.items() if identifier in stored}
        entries = library.fulltext.entries() if library.records() else {}
    except VectorStoreError:
        return _notice("full text", "cannot be checked while the vector store cannot be read", _REPAIR)
    except FullTextError as error:
        return _problem("full text", error.message.rstrip("."), _REPAIR)
    kept = {identifier: text for identifier, text in entries.items() if _key(identifier) not in unfinished}
    if kept == listed:
        return _fine("full text", "catalog and full-text index agree")
    differing = {_key(identifier) for identifier, _ in kept.items() ^ listed.items()}
    return _problem("full text", f"differs for: {some(sorted(differing))}", _REPAIR)


def figures_finding(library: Library) -> DoctorFinding:
    """Count figures and tables, and name the papers whose figures were never read."""
    if unread := [key for key, record in library.records().items() if not record.figures_version]:
        message = f"figures and tables were never read for: {some(unread)}"
        return _notice("figures", message, "Ingest their files again; what is unchanged is not embedded again.")
    kinds = [figure.kind for _, figures in library.catalog.figures_by_paper() for figure in figures]
    held = f"{counted(kinds.count('figure'), 'figure')} and {counted(kinds.count('table'), 'table')}"
    images, described = figure_counts(library)
    if not images:
        return _fine("figures", held)
    remedy = "" if described == images else "With CITELOOM_VISION_MODEL, 'papers describe' describes the others."
    return _fine("figures", f"{held}; {described} of {counted(images, 'image')} described by a vision model", remedy)


Faults = Sequence[tuple[str, str, Collection[str]]]


def differences(library: Library) -> tuple[Faults, Mapping[VectorKind, Collection[str]], set[str]]:
    """Compare the ids of catalog and vector store; raises `VectorStoreError`.

    Returns the papers that must be reindexed, by topic and problem; the vectors without a paper, by kind; and the
    descriptive names of all records without a paper.
    """
    records = library.records()
    listed: dict[VectorKind, set[str]] = {
        "content": {row.id for row in library.catalog.chunk_rows()},
        "summaries": set(records),
        "notes": {chunk_id(key, place) for key, each in records.items() for place in range(each.passage_count)},
    }
    stored = {kind: library.store.stored_ids(kind) for kind in listed}
    miscounted = library.catalog.miscounted()
    # Not orphans: records already written by a staged change, or of papers with an incomplete catalog entry.
    in_progress = {*library.catalog.unfinished(), *miscounted}
    orphans: dict[VectorKind, set[str]] = {
        kind: {name for name in stored[kind] - ids if _key(name, kind) not in in_progress}
        for kind, ids in listed.items()
    }
    missing = {_key(name, kind) for kind, ids in listed.items() for name in ids - stored[kind]}
    faults = (
        ("counts", "chunks listed in the catalog differ from their count, or sections are missing, for", miscounted),
        ("vectors", "chunks, summaries or notes have no vector for", missing),
        ("figures", "images are missing or damaged for", library.catalog.incomplete_figures()),
    )
    names = orphans["content"] | orphans["summaries"] | {f"note {name}" for name in orphans["notes"]}
    names |= {f"catalog {key}" for key in library.catalog.strays()}
    names |= {f"image {name}" for name in library.catalog.stray_images()}
    return faults, orphans, names


def incomplete_papers(library: Library) -> frozenset[str]:
    """The papers that must be reindexed; raises `VectorStoreError`."""
    return frozenset(key for _, _, keys in differences(library)[0] for key in keys)


def _key(name: str, kind: VectorKind = "content") -> str:
    try:
        return name if kind == "summaries" else split_chunk_id(name)[0]
    except ValueError:
        return name


async def repair(library: Library) -> list[DoctorFinding]:
    """Repair everything that needs no embedding, and mark the papers that must be reindexed.

    Moves an unreadable vector store aside, applies staged changes, rebuilds a differing full-text index, and deletes
    records without a paper and files of the home that nothing refers to.
    """
    async with library.home.writer_lock().held():
        return await asyncio.to_thread(_repair_stores, library)


def _repair_stores(library: Library) -> list[DoctorFinding]:
    done: list[tuple[str, str]] = []  # topic and message
    if vectors_finding(library).level == "problem":
        aside = library.store.set_aside()
        done.append(("vectors", f"moved to {aside}, since they could not be read; started a new store"))
    if finished := library.finish_staged():
        done.append(("unfinished", f"finished: {some(finished)}"))
    if restored := library.stores.restore():
        done.append(("restored", f"written again from what is stored: {some(restored)}"))
    faults, vectors, orphans = differences(library)
    if orphans:
        for kind, names in vectors.items():
            library.store.delete(sorted(names), kind)
        library.catalog.drop_strays()
        done.append(("vectors", f"dropped {counted(len(orphans), 'record')} without a paper"))
    if orphaned := orphaned_files(library):
        for remove in dict.fromkeys(remove for _, remove in orphaned.values()):  # once for the files of an upload
            remove()
        done.append(("files", f"deleted {_describe_orphans(orphaned)}"))
    if incomplete := {key for _, _, keys in faults for key in keys}:
        library.catalog.mark_stale(incomplete)
    if fulltext_finding(library).level == "problem":
        library.rebuild_fulltext()
        done.append(("full text", "rebuilt from the stored chunks"))
    return [_fine(topic, message) for topic, message in done]


async def rebuild(
    library: Library,
    *,
    only: Collection[str] | None = None,
    on_event: OnEvent | None = None,
    chunking: Chunking = (400, 100),
    ocr: Ocr | None = None,
) -> IngestReport:
    """Reindex every paper, or those with the keys `only`.

    A kill leaves each paper either old or new, and the next run continues. Incomplete papers whose file is gone or
    unreadable are refused. Raises `InputError` if the library was created with another embedding model, and any error
    of the embedding model.
    """
    await repair(library)
    incomplete = await asyncio.to_thread(incomplete_papers, library)
    sources = await in_thread(_library_sources, library, incomplete, only, ocr)
    return await ingest_sources(library, sources, rechunk=True, on_event=on_event, chunking=chunking)


async def repair_library(
    library: Library, *, on_event: OnEvent | None = None, chunking: Chunking = (400, 100), ocr: Ocr | None = None
) -> tuple[list[DoctorFinding], tuple[Refusal, ...]]:
    """Repair the library and reindex incomplete papers; those whose file is gone or unreadable are refused.

    Raises any error of the embedding model, with finished papers kept.
    """
    done = await repair(library)
    incomplete = await asyncio.to_thread(incomplete_papers, library)
    if not incomplete:
        return done, ()
    report = await rebuild(library, only=incomplete, on_event=on_event, chunking=chunking, ocr=ocr)
    if report.updated:
        embedded = f"{counted(report.chunks_embedded, 'chunk')} embedded"
        done.append(_fine("vectors", f"reindexed from their files: {some(report.updated)}; {embedded}"))
    return [*done, *await repair(library)], report.refused


def _library_sources(
    library: Library, incomplete: frozenset[str], only: Collection[str] | None, ocr: Ocr | None
) -> Sources:
    kept = ConvertedFiles(library.home.converted)
    found: list[SourcePaper] = []
    refused: list[Refusal] = []
    warnings: list[str] = []
    for paper in library.papers():
        if only is not None and paper.key not in only:
            continue
        raise_if_stopped()
        try:
            # A note from Zotero has no file next to the paper.
            note = library.note(paper.key) if item_path(paper.bibtex) else ""
            found.append(replace(read_again(paper, kept, ocr), note=note))
        except FileRefusedError as error:
            if paper.key in incomplete:
                refused.append(Refusal(paper.source, f"{error}, and parts of {paper.key} are missing; ingest it"))
            else:
                warnings.append(f"{paper.key}: its file {error} ({paper.source}); it is left unchanged.")
    return Sources(tuple(found), tuple(refused), tuple(warnings), folders=())
