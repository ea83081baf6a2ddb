"""Ingests papers; only new or changed texts are embedded, and finished papers survive a kill.

All papers are split before `indexing.py` starts, so that the amount of work is known. This module also finds files in a
home that belong to no paper or run: `doctor` lists them, and finished jobs delete those of uploads.
"""

from __future__ import annotations

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ..documents.pdf.ocr import Ocr
from ..documents.sandbox import in_thread
from ..documents.types import NOTE_ENDING, Paper
from ..stores.library import Library
from ..stores.paper_catalog import removal
from ..stores.uploads import Uploads
from .indexing import Indexing, OnEvent, Summarize, run_to_end, write
from .ingest_events import IngestReport, Planned, Waiting
from .paper_matching import attach_notes, leave_out_copies, match_renamed_files
from .plan import make_plan
from .ray_executor import RayRequest, ray_executor
from .reading import Chunking, ConvertedFiles, IngestExecutor, local_executor
from .sources import Sources, read_sources

if TYPE_CHECKING:
    from langchain_core.documents import Document


async def ingest(
    library: Library,
    paths: Sequence[Path],
    *,
    bib: Path | None = None,
    documents: Sequence[Document] = (),
    sources: Sources | None = None,
    prune: bool = False,
    summarize: Summarize | None = None,
    on_event: OnEvent | None = None,
    chunking: Chunking = (400, 100),
    ocr: Ocr | None = None,
    follow_links: bool = False,
    ray: RayRequest | None = None,
) -> IngestReport:
    """Ingest all papers under `paths` and in `documents`, see `aingest`; unchanged papers cost nothing.

    `sources` is the result of reading them, if already done. `summarize` writes a paper's summary from its text; by
    default the summary is the abstract or first prose. Raises `InputError` before any change if a path or the `.bib` is
    missing, nothing is found, the cluster cannot be used, or the library was created with another embedding model;
    raises `RayStoppedError` and any error of the embedding model later, keeping finished papers.
    """
    began = time.perf_counter()
    converted = ConvertedFiles(library.home.converted)
    async with ray_executor(ray, library.embedding) as executor:
        if sources is None:
            read = partial(read_sources, follow_links=follow_links, parse=executor.parse)
            sources = await in_thread(read, list(paths), bib, list(documents), converted, ocr)
        update = partial(ingest_sources, prune=prune, summarize=summarize, on_event=on_event, chunking=chunking)
        report = await update(library, sources, executor=executor)
    return replace(report, seconds=time.perf_counter() - began)


async def ingest_sources(
    library: Library,
    sources: Sources,
    *,
    prune: bool = False,
    rechunk: bool = False,
    summarize: Summarize | None = None,
    on_event: OnEvent | None = None,
    chunking: Chunking,
    executor: IngestExecutor | None = None,
) -> IngestReport:
    """Update the library to match the sources; with `rechunk`, unchanged papers are chunked again too."""
    emit = on_event or (lambda _: None)
    executor = executor or local_executor(library.embedding)
    began = time.perf_counter()
    async with library.home.writer_lock().held(lambda pid: emit(Waiting(pid))):
        library.require_same_embedding()
        await run_to_end(library.finish_staged)
        sources = await asyncio.to_thread(match_renamed_files, sources, library.records())
        sources = await asyncio.to_thread(leave_out_copies, sources, library.records())
        sources = await asyncio.to_thread(attach_notes, sources)
        if rechunk:
            await run_to_end(library.catalog.mark_stale, [source.paper.key for source in sources.found])
        make = partial(make_plan, prune=prune, rewrite_summaries=summarize is not None, chunking=chunking)
        plan = await in_thread(make, library, sources, split=executor.split)
        texts = sum(len(paper.missing_texts()) for paper in plan.to_index)
        emit(Planned(plan.files, len(plan.to_index), plan.report.chunks_embedded, texts))
        if plan.to_index:
            library.catalog.set_meta("embedding", library.embedding.name)
        converted = ConvertedFiles(library.home.converted)
        for key in plan.report.removed:
            converted.forget(Path(library.paper(key).source))
        if plan.report.removed:
            await write(library, [removal(key) for key in plan.report.removed], emit)
        if plan.metadata_only:
            await run_to_end(library.catalog.update_metadata, plan.metadata_only)
        indexing = Indexing(library, executor, summarize, emit)
        await indexing.run(plan.to_index)
    return replace(plan.without(indexing.failed).report, seconds=time.perf_counter() - began)


async def remove_all(library: Library, keys: Sequence[str], *, on_event: OnEvent | None = None) -> list[Paper]:
    """Remove papers from every store, and delete their files only if uploaded or fetched by identifier.

    Raises `UnknownPaperError` before any change.
    """
    emit = on_event or (lambda _: None)
    async with library.home.writer_lock().held(lambda pid: emit(Waiting(pid))):
        await run_to_end(library.finish_staged)
        papers = [library.paper(key) for key in keys]
        for paper in papers:
            ConvertedFiles(library.home.converted).forget(Path(paper.source))
        await write(library, [removal(key) for key in keys], emit)

    def remove_files() -> None:  # and the jobs of uploads that this empties
        home = library.home
        uploads = home.uploads()
        places = [uploads.place_of(paper.source) for paper in papers if paper.source]
        for own in (Path(paper.source) for paper in papers):
            if own.parent == library.home.added.resolve():
                own.unlink(missing_ok=True)
        if among := {place[0] for place in places if place is not None} - uploads.unfinished():
            remove_orphans(library, uploads, among)
            for upload in among - uploads.files(among).keys():
                home.forget_job(upload)

    await asyncio.to_thread(remove_files)
    return papers


Files = dict[str, dict[str, int]]  # bytes by upload and name
_HOUR: Final = 3600.0  # seconds; a newer file may belong to a paper that is being added


def orphaned_files(library: Library) -> dict[str, tuple[int, Callable[[], object]]]:
    """Unreferenced files that no job is about to use, by name, with size and a function that deletes each; blocks.

    These are uploaded papers and plots, converted texts, and papers added by identifier.
    """
    home = library.home
    uploads, plots = home.uploads(), home.plots()
    idle, before = set(plots.idle()), time.time() - _HOUR
    unused = plots.files(idle - home.runs().plot_sets()) if idle else {}
    sources = [Path(paper.source) for paper in library.papers() if paper.source]
    places = [place for source in sources if (place := uploads.place_of(str(source)))]
    here = [*sources, *(uploads.folder(upload) / name for upload, name in places)]
    used = {*sources, *map(ConvertedFiles(home.converted).entry, here)}
    orphans: dict[str, tuple[int, Callable[[], object]]] = {}
    for upload, files in find_orphans(library, uploads, uploads.idle()).items():
        remove = partial(remove_orphans, library, uploads, [upload])
        orphans |= {f"{upload}/{name}": (size, remove) for name, size in files.items()}
    for upload, files in unused.items():
        orphans |= {f"{upload}/{name}": (size, partial(plots.remove, upload, [name])) for name, size in files.items()}
    for file in (*home.converted.glob("*"), *home.added.resolve().glob("*")):
        if file not in used and file.suffix != ".bib" and (status := file.stat()).st_mtime < before:
            orphans[f"{file.parent.name}/{file.name}"] = status.st_size, partial(file.unlink, missing_ok=True)
    return orphans


def find_orphans(library: Library, uploads: Uploads, among: Collection[str]) -> Files:
    """The files of these uploads that belong to no paper; blocks.

    Select the uploads first: an upload whose job ends meanwhile will already have its papers.
    """
    stored = uploads.files(among)
    owned: defaultdict[str, set[str]] = defaultdict(set)  # files of papers and notes, by upload
    for key, record in library.records().items():
        place = uploads.place_of(record.paper.source)
        if place is None or place[0] not in stored:
            continue
        upload, name = place
        owned[upload].add(name)
        if record.note is not None:
            notes = (f"{stem}{NOTE_ENDING}".lower() for stem in (key, Path(name).stem))
            named = {other.lower(): other for other in stored[upload]}
            owned[upload] |= set([named[note] for note in notes if note in named][:1])
    for upload, files in stored.items():
        stored[upload] = {name: size for name, size in files.items() if name not in owned[upload]}
    return {upload: files for upload, files in stored.items() if files}


def remove_orphans(library: Library, uploads: Uploads, among: Collection[str]) -> Files:
    """Delete orphans with their converted texts, and the remains of uploads without files; blocks."""
    orphans = find_orphans(library, uploads, among)
    converted = ConvertedFiles(library.home.converted)
    for upload in {*orphans, *(set(among) - uploads.files(among).keys())}:
        uploads.remove(upload, orphans.get(upload, ()))
        for name in orphans.get(upload, ()):
            converted.forget(uploads.folder(upload) / name)
    return orphans
