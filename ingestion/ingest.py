"""Takes papers into the library: only what is new or changed is embedded; a kill loses nothing that is done.

Everything is cut into chunks first, so that the amount of work is known before it starts; `indexing.py` does it.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ..config import PdfReader
from ..documents.subprocesses import in_thread
from ..documents.types import Paper
from ..stores.library import Library
from ..stores.lock import WriterLock
from ..stores.paper_change import removal
from ..stores.vector_cache import VectorCache
from .conversion_cache import ConvertedFiles
from .events import IngestEvent, IngestReport, Planned, Waiting
from .indexing import Indexing, OnEvent, Summarize, to_end, write
from .notes import attach_notes
from .plan import IngestPlan, make_plan
from .renamed_files import match_renamed
from .sources import Sources, read_sources

if TYPE_CHECKING:
    from langchain_core.documents import Document


async def ingest(
    library: Library,
    paths: Sequence[Path],
    *,
    bib: Path | None = None,
    documents: Sequence[Document] = (),
    prune: bool = False,
    cache: VectorCache | None = None,
    summarize: Summarize | None = None,
    on_event: OnEvent | None = None,
    chunk_tokens: int = 400,
    chunk_overlap: int = 100,
    pdf_reader: PdfReader = "pdf-oxide",
    follow_links: bool = False,
) -> IngestReport:
    """Take in all papers under `paths`; what is there already and unchanged costs nothing.

    Args:
        library: the open library.
        paths: papers (`sources.ENDINGS`), and folders that are searched for them.
        bib: the BibTeX file; None takes the only one inside a given folder.
        documents: papers as LangChain documents, known by `key` or `source` in their metadata.
        prune: remove papers whose file is gone from a given folder.
        cache: vectors kept from other libraries.
        summarize: writes the summary of a paper from its text; None takes the abstract, else the first prose.
        on_event: told of each step, on the thread of the event loop.
        chunk_tokens: tokens that a chunk aims at.
        chunk_overlap: tokens that neighbouring chunks share.
        pdf_reader: what reads PDFs.
        follow_links: take in also what links inside a folder lead to outside of it.

    Raises `InputError` before anything is changed when a path or the `.bib` is missing, nothing is found, the
    PDF reader or its Java is not installed, or the library was made with another embedding model; whatever the
    embedding raises, with what is done kept.
    """
    began = time.perf_counter()
    converted = ConvertedFiles(library.home.converted)
    sources = await in_thread(
        read_sources, list(paths), bib, list(documents), converted, pdf_reader, follow_links=follow_links
    )
    report = await ingest_sources(
        library,
        sources,
        prune=prune,
        cache=cache,
        summarize=summarize,
        on_event=on_event,
        chunking=(chunk_tokens, chunk_overlap),
    )
    return replace(report, seconds=time.perf_counter() - began)


async def ingest_sources(
    library: Library,
    sources: Sources,
    *,
    prune: bool = False,
    anew: bool = False,
    cache: VectorCache | None = None,
    summarize: Summarize | None = None,
    on_event: OnEvent | None = None,
    chunking: tuple[int, int],
) -> IngestReport:
    """Bring the library to what the sources say; with `anew` also papers that have not changed are cut again."""
    tell = on_event or _nobody
    began = time.perf_counter()
    async with WriterLock(library.home).held(lambda pid: tell(Waiting(pid))):
        library.require_same_embedding()
        await to_end(library.finish_staged)
        sources = await asyncio.to_thread(match_renamed, sources, library.records())
        sources = await asyncio.to_thread(attach_notes, sources)
        if anew:
            await to_end(library.catalog.mark_stale, [source.paper.key for source in sources.found])
        plan = await asyncio.to_thread(
            make_plan,
            library,
            sources,
            prune=prune,
            cache=cache,
            rewrite_summaries=summarize is not None,
            chunking=chunking,
        )
        tell(Planned(plan.files, len(plan.to_index), plan.chunks_to_embed, plan.texts_to_embed))
        if plan.to_index:
            library.catalog.set_meta("embedding", library.embedding.name)
        converted = ConvertedFiles(library.home.converted)
        for key in plan.to_remove:
            converted.forget(Path(library.paper(key).source))
        if plan.to_remove:
            await write(library, [removal(key) for key in plan.to_remove], tell)
        if plan.metadata_only:
            await to_end(library.catalog.update_metadata, plan.metadata_only)
        await Indexing(library, cache, summarize, tell).run(plan.to_index)
    return plan.report(seconds=time.perf_counter() - began)


async def remove(library: Library, key: str, *, on_event: OnEvent | None = None) -> Paper:
    """Take a paper out of every store; raises `UnknownPaperError`. Its file stays where it is."""
    tell = on_event or _nobody
    async with WriterLock(library.home).held(lambda pid: tell(Waiting(pid))):
        await to_end(library.finish_staged)
        paper = library.paper(key)
        ConvertedFiles(library.home.converted).forget(Path(paper.source))
        await write(library, [removal(key)], tell)
    return paper


def _nobody(event: IngestEvent) -> None:
    """Takes the events that no one asked for."""


__all__ = ["IngestPlan", "IngestReport", "ingest", "ingest_sources", "remove"]
