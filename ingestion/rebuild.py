"""Rebuilds the index from the papers in the library.

The library stores each paper's metadata and file path, not the file itself. So a paper is read again from its file,
with its existing key and metadata; vectors are reused from the store, and missing ones are computed. A paper whose
file is gone is left unchanged if its passages are complete.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import replace

from ..documents.bibliography import Refusal
from ..documents.subprocesses import in_thread, raise_if_stopped
from ..documents.zotero_link import zotero_link
from ..plurals import counted
from ..stores.library import Library
from .conversion_cache import ConvertedFiles
from .doctor import Problem, differences, repair, some
from .events import IngestReport
from .indexing import OnEvent
from .ingest import ingest_sources
from .langchain_documents import SourcePaper
from .pdf_subprocess import BUILT_IN, PdfReading
from .sources import SourceRefusedError, Sources, read_again


async def rebuild(
    library: Library,
    *,
    only: Collection[str] | None = None,
    on_event: OnEvent | None = None,
    chunk_tokens: int = 400,
    chunk_overlap: int = 100,
    pdf: PdfReading = BUILT_IN,
) -> IngestReport:
    """Reindex every paper, or those with the keys `only`.

    A kill leaves each paper either old or new, and the next run continues. Papers with missing passages whose file is
    gone or cannot be read are refused. Raises `InputError` if the library was created with another embedding model or
    if the PDF reader or its Java is not installed, and any error of the embedding model.
    """
    await repair(library)
    incomplete = (await asyncio.to_thread(differences, library)).lacking
    sources = await in_thread(_library_sources, library, incomplete, only, pdf)
    return await ingest_sources(
        library, sources, rechunk=True, on_event=on_event, chunking=(chunk_tokens, chunk_overlap)
    )


async def repair_library(
    library: Library,
    *,
    on_event: OnEvent | None = None,
    chunk_tokens: int = 400,
    chunk_overlap: int = 100,
    pdf: PdfReading = BUILT_IN,
) -> tuple[list[Problem], tuple[Refusal, ...]]:
    """Repair the library and reindex incomplete papers; those whose file is gone or unreadable are refused.

    Raises any error of the embedding model, with finished papers kept.
    """
    done = await repair(library)
    incomplete = (await asyncio.to_thread(differences, library)).lacking
    if not incomplete:
        return done, ()
    report = await rebuild(
        library,
        only=incomplete,
        on_event=on_event,
        chunk_tokens=chunk_tokens,
        chunk_overlap=chunk_overlap,
        pdf=pdf,
    )
    if report.updated:
        embedded = f"{counted(report.chunks_embedded, 'chunk')} embedded"
        done.append(Problem("fine", "vectors", f"reindexed from their files: {some(report.updated)}; {embedded}"))
    return [*done, *await repair(library)], report.refused


def _library_sources(
    library: Library, incomplete: frozenset[str], only: Collection[str] | None, pdf: PdfReading
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
            # A note that came from Zotero lies in no file beside the paper.
            note = library.note(paper.key) if zotero_link(paper.bibtex) else ""
            found.append(replace(read_again(paper, kept, pdf), note=note))
        except SourceRefusedError as error:
            if paper.key in incomplete:
                refused.append(Refusal(paper.source, f"{error}, and parts of {paper.key} are missing; ingest it"))
            else:
                warnings.append(f"{paper.key}: its file {error} ({paper.source}); it is left unchanged.")
    return Sources(tuple(found), tuple(refused), tuple(warnings), folders=())
