"""Takes papers into the library: only what is new or changed is embedded; a kill loses nothing that is done.

Everything is cut into chunks first, so that the amount of work is known before it starts. Then papers are
embedded two at a time, so that one's last chunks do not leave a core idle, while finished ones are written.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from citeloom.documents.model import Paper
from citeloom.models.embedding import Vector
from citeloom.stores.catalog import Change
from citeloom.stores.converted import ConvertedFiles
from citeloom.stores.library import Library
from citeloom.stores.lock import WriterLock
from citeloom.stores.notes import attach_notes
from citeloom.stores.plan import IngestPlan, PaperPlan, make_plan, removal, with_vectors
from citeloom.stores.progress import (
    Embedded,
    IngestEvent,
    IngestReport,
    Planned,
    Staged,
    Stored,
    Waiting,
)
from citeloom.stores.renaming import keep_renamed
from citeloom.stores.sources import Sources, read_sources
from citeloom.stores.vector_cache import VectorCache

if TYPE_CHECKING:
    from langchain_core.documents import Document

Summarize = Callable[[Paper, str], Awaitable[str]]
OnEvent = Callable[[IngestEvent], None]
Result = TypeVar("Result")

_AT_ONCE = 2


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

    Raises `InputError` before anything is changed when a path or the `.bib` is missing, nothing is found, or
    the library was made with another embedding model; whatever the embedding raises, with what is done kept.
    """
    began = time.perf_counter()
    converted = ConvertedFiles(library.home.converted)
    sources = await asyncio.to_thread(read_sources, list(paths), bib, list(documents), converted)
    report = await take_in(
        library,
        sources,
        prune=prune,
        cache=cache,
        summarize=summarize,
        on_event=on_event,
        chunking=(chunk_tokens, chunk_overlap),
    )
    return replace(report, seconds=time.perf_counter() - began)


async def take_in(
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
        await _to_end(library.finish_staged)
        sources = await asyncio.to_thread(keep_renamed, sources, library.records())
        sources = await asyncio.to_thread(attach_notes, sources)
        if anew:
            for source in sources.found:
                await _to_end(library.catalog.mark_stale, source.paper.key)
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
            await _write(library, removal(key), tell)
        for record in plan.metadata_only:
            await _to_end(library.catalog.update_metadata, record)
        await _Indexing(library, cache, summarize, tell).run(plan.to_index)
    return plan.report(seconds=time.perf_counter() - began)


async def remove(library: Library, key: str, *, on_event: OnEvent | None = None) -> Paper:
    """Take a paper out of every store; raises `UnknownPaperError`. Its file stays where it is."""
    tell = on_event or _nobody
    async with WriterLock(library.home).held(lambda pid: tell(Waiting(pid))):
        await _to_end(library.finish_staged)
        paper = library.paper(key)
        ConvertedFiles(library.home.converted).forget(Path(paper.source))
        await _write(library, removal(key), tell)
    return paper


def _nobody(event: IngestEvent) -> None:
    """Takes the events that no one asked for."""


class _Indexing:
    """Embeds and writes papers, two at a time; only one is written at once."""

    def __init__(self, library: Library, cache: VectorCache | None, summarize: Summarize | None, tell: OnEvent) -> None:
        self._library = library
        self._cache = cache
        self._summarize = summarize
        self._tell = tell
        self._writing = asyncio.Lock()

    async def run(self, plans: Sequence[PaperPlan]) -> None:
        """Index all; on the first error the others stop and what is written stays."""
        waiting = iter(plans)
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(_AT_ONCE, len(plans))):
                    group.create_task(self._work(waiting))
        except BaseExceptionGroup as failed:
            raise _first(failed) from failed

    async def _work(self, waiting: Iterator[PaperPlan]) -> None:
        for plan in waiting:
            change = await self._embed(await self._summarized(plan))
            async with self._writing:
                await _write(self._library, change, self._tell)

    async def _summarized(self, plan: PaperPlan) -> PaperPlan:
        if self._summarize is None or not plan.wants_summary:
            return plan
        return plan.summarized(await self._summarize(plan.record.paper, plan.text))

    async def _embed(self, plan: PaperPlan) -> Change:
        """The change with all vectors: those that are known, and new ones for the other texts."""
        embedding = self._library.embedding
        texts = plan.missing_texts()
        new: dict[str, Vector] = {}
        if texts:
            rows = await embedding.embed_documents(
                list(texts.values()), lambda count: self._tell(Embedded(plan.record.paper.key, count))
            )
            new = dict(zip(texts, rows, strict=True))
            if self._cache is not None:
                await _to_end(self._cache.put, embedding.name, new)
        return with_vectors(plan, new)


async def _write(library: Library, change: Change, tell: OnEvent) -> None:
    """Stage a change and carry it out, so that a kill at any moment leaves it undone or to be finished."""
    await _to_end(library.catalog.stage, change)
    tell(Staged(change.key))
    await _to_end(library.carry_out, change)
    tell(Stored(change.key, removed=change.record is None))


async def _to_end(function: Callable[..., Result], *arguments: object) -> Result:
    """Run a blocking call on a thread; when cancelled, wait for its end, since the lock must outlive it."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def _first(group: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first error in a group, however deep."""
    error: BaseException = group
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


__all__ = ["IngestPlan", "IngestReport", "ingest", "remove", "take_in"]
