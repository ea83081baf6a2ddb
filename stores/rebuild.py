"""Makes the index anew from the papers that the library keeps a record of.

The library keeps each paper's metadata and where its file is, not the file itself. So a paper is read again from
its file, under the key and metadata that it has; its vectors are taken from the store as far as they are there,
and made where they are not. A paper whose file is gone is left as it is while its passages are whole.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection

from citeloom.config import PdfReader
from citeloom.documents.bibliography import Refusal
from citeloom.documents.processes import in_thread, raise_if_stopped
from citeloom.plurals import counted
from citeloom.stores.converted import ConvertedFiles
from citeloom.stores.doctor import Finding, differences, some
from citeloom.stores.indexing import OnEvent
from citeloom.stores.ingest import take_in
from citeloom.stores.library import Library
from citeloom.stores.mending import mend
from citeloom.stores.progress import IngestReport
from citeloom.stores.source import Source
from citeloom.stores.sources import SourceRefusedError, Sources, read_again


async def rebuild(
    library: Library,
    *,
    only: Collection[str] | None = None,
    on_event: OnEvent | None = None,
    chunk_tokens: int = 400,
    chunk_overlap: int = 100,
    pdf_reader: PdfReader = "pdf-oxide",
) -> IngestReport:
    """Index every paper anew, or those with the keys `only`.

    A kill leaves each paper as it was or as it will be, and the next run goes on. Refused are papers whose file is
    gone or cannot be read and whose passages are not whole. Raises `InputError` when the library was made with
    another embedding model or the PDF reader or its Java is not installed, and whatever the embedding raises.
    """
    await mend(library)
    lacking = (await asyncio.to_thread(differences, library)).lacking
    sources = await in_thread(_kept_sources, library, lacking, only, pdf_reader)
    return await take_in(library, sources, anew=True, on_event=on_event, chunking=(chunk_tokens, chunk_overlap))


async def make_whole(
    library: Library,
    *,
    on_event: OnEvent | None = None,
    chunk_tokens: int = 400,
    chunk_overlap: int = 100,
    pdf_reader: PdfReader = "pdf-oxide",
) -> tuple[list[Finding], tuple[Refusal, ...]]:
    """Mend, and index anew the papers that lack something; refused are those whose file is gone or not readable.

    Raises whatever the embedding raises, with what is done kept.
    """
    done = await mend(library)
    lacking = (await asyncio.to_thread(differences, library)).lacking
    if not lacking:
        return done, ()
    report = await rebuild(
        library,
        only=lacking,
        on_event=on_event,
        chunk_tokens=chunk_tokens,
        chunk_overlap=chunk_overlap,
        pdf_reader=pdf_reader,
    )
    if report.updated:
        embedded = f"{counted(report.chunks_embedded, 'chunk')} embedded"
        done.append(Finding("fine", "vectors", f"indexed anew from their files: {some(report.updated)}; {embedded}"))
    return [*done, *await mend(library)], report.refused


def _kept_sources(
    library: Library, lacking: frozenset[str], only: Collection[str] | None, pdf_reader: PdfReader
) -> Sources:
    kept = ConvertedFiles(library.home.converted)
    found: list[Source] = []
    refused: list[Refusal] = []
    warnings: list[str] = []
    for paper in library.papers():
        if only is not None and paper.key not in only:
            continue
        raise_if_stopped()
        try:
            found.append(read_again(paper, kept, pdf_reader))
        except SourceRefusedError as error:
            if paper.key in lacking:
                refused.append(Refusal(paper.source, f"{error}, and passages of {paper.key} are missing; ingest it"))
            else:
                warnings.append(f"{paper.key}: its file {error} ({paper.source}); it is left as it is.")
    return Sources(tuple(found), tuple(refused), tuple(warnings), folders=())
