"""Ingests papers; only new or changed texts are embedded, and finished papers survive a kill.

All papers are split before `indexing.py` starts, so that the amount of work is known.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..documents.pdf.ocr import Ocr
from ..documents.sandbox import in_thread
from ..documents.types import Paper
from ..stores.library import Library
from ..stores.paper_catalog import removal
from .indexing import Indexing, OnEvent, Summarize, run_to_end, write
from .ingest_events import IngestReport, Planned, Waiting
from .orphaned_files import remove_orphans
from .paper_matching import attach_notes, match_renamed_files
from .plan import make_plan
from .ray_executor import ray_executor
from .ray_jobs import RayRequest
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

    `sources` is the result of reading them, if already done; `summarize` writes the summary of a paper from its text,
    which else is its abstract or first prose. Raises `InputError` before any change if a path or the `.bib` is missing,
    nothing is found, the cluster cannot be used, or the library was created with another embedding model; and
    `RayStoppedError` and any error of the embedding model, with finished papers kept.
    """
    began = time.perf_counter()
    converted = ConvertedFiles(library.home.converted)
    async with ray_executor(ray, library.embedding) as executor:
        if sources is None:
            sources = await in_thread(
                read_sources,
                list(paths),
                bib,
                list(documents),
                converted,
                ocr,
                follow_links=follow_links,
                parse=executor.parse,
            )
        report = await ingest_sources(
            library,
            sources,
            prune=prune,
            summarize=summarize,
            on_event=on_event,
            chunking=chunking,
            executor=executor,
        )
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
        sources = await asyncio.to_thread(attach_notes, sources)
        if rechunk:
            await run_to_end(library.catalog.mark_stale, [source.paper.key for source in sources.found])
        plan = await in_thread(
            make_plan,
            library,
            sources,
            prune=prune,
            rewrite_summaries=summarize is not None,
            chunking=chunking,
            split=executor.split,
        )
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
    """Remove papers from every store, with the files that were uploaded or fetched by identifier, no others.

    Raises `UnknownPaperError` before any change.
    """
    emit = on_event or (lambda _: None)
    async with library.home.writer_lock().held(lambda pid: emit(Waiting(pid))):
        await run_to_end(library.finish_staged)
        papers = [library.paper(key) for key in keys]
        for paper in papers:
            ConvertedFiles(library.home.converted).forget(Path(paper.source))
        await write(library, [removal(key) for key in keys], emit)

    def remove_files() -> None:  # and the jobs of uploads that are empty then
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
