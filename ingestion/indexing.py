"""Embeds planned papers and queues them for writing in batches.

A write takes about as long for one paper as for thirty, since each store waits for the disk: papers are written one by
one while vectors arrive slowly, by the dozen when fast. A kill loses at most the queue: staged changes survive it.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from ..documents.bibliography import Refusal
from ..documents.image_extraction import read_figures
from ..documents.sandbox import in_thread
from ..documents.types import Paper
from ..models.embeddings.protocol import Vector
from ..stores.library import Library
from ..stores.paper_catalog import Change
from .ingest_events import Begun, Embedded, IngestEvent, Staged, Stored
from .plan import PaperPlan, complete_change
from .reading import IngestExecutor

Summarize = Callable[[Paper, str], Awaitable[str]]
OnEvent = Callable[[IngestEvent], None]
Result = TypeVar("Result")
Item = TypeVar("Item")
_CONCURRENT_GROUPS = 2  # groups of papers embedded at once, so that the last chunks of one leave no core idle
_CONCURRENT_READERS = min(4, os.cpu_count() or 1)  # processes that read images
_QUEUE_SIZE = 32  # papers
NOT_EMBEDDED = "could not be embedded, since its workers crashed; ingest it again"
_CHUNKS_PER_WRITE = 2_000  # chunks: one page of Chroma


class Indexing:
    """Embeds and writes planned papers; the caller holds the writer lock."""

    def __init__(self, library: Library, executor: IngestExecutor, summarize: Summarize | None, emit: OnEvent) -> None:
        self.failed: dict[str, Refusal] = {}  # papers whose texts could not be embedded, by key
        self._library = library
        self._executor = executor
        self._summarize = summarize
        self._emit = emit
        self._readers = asyncio.Semaphore(_CONCURRENT_READERS)

    async def run(self, plans: Sequence[PaperPlan]) -> None:
        """Index all papers; on the first error nothing new is started, and embedded papers are still written."""
        groups = list(batches(plans, lambda plan: len(plan.missing_texts()), self._executor.texts_at_once))
        pending = iter(groups)
        queue: asyncio.Queue[Change | None] = asyncio.Queue(_QUEUE_SIZE)
        failure: BaseExceptionGroup | None = None
        try:
            async with asyncio.TaskGroup() as writing:
                writing.create_task(self._write_batches(queue))
                try:
                    async with asyncio.TaskGroup() as embedding:
                        for _ in range(min(_CONCURRENT_GROUPS, len(groups))):
                            embedding.create_task(self._embed_groups(pending, queue))
                except BaseExceptionGroup as failed:
                    failure = failed
                await queue.put(None)
        except BaseExceptionGroup as failed:
            failure = failed
        if failure is not None:
            error: BaseException = failure
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            raise error from failure

    async def _embed_groups(self, pending: Iterator[Sequence[PaperPlan]], queue: asyncio.Queue[Change | None]) -> None:
        for group in pending:
            for paper in (plan.record.paper for plan in group):
                self._emit(Begun(paper.key, paper.title or Path(paper.source).name))
            plans = await asyncio.gather(*(self._with_images(plan) for plan in group))
            for place, plan in enumerate(plans):
                wanted = self._summarize if plan.wants_summary else None
                if wanted is not None and (summary := (await wanted(plan.record.paper, plan.text)).strip()):
                    plans[place] = replace(plan, record=replace(plan.record, summary=summary, summary_kind="model"))
            for change in await self._embed(plans):
                await queue.put(change)

    async def _write_batches(self, queue: asyncio.Queue[Change | None]) -> None:
        change = await queue.get()
        while change is not None:
            batch, chunks = [], 0
            while change is not None:
                batch.append(change)
                chunks += len(change.chunks)
                if queue.empty() or chunks >= _CHUNKS_PER_WRITE:
                    break
                change = queue.get_nowait()
            await write(self._library, batch, self._emit)
            if change is not None:
                change = await queue.get()

    async def _with_images(self, plan: PaperPlan) -> PaperPlan:
        """The plan with the images of its figures, read again from the file; unchanged images keep descriptions."""
        async with self._readers:
            read = await in_thread(read_figures, plan.file, plan.text, plan.found)
        before = await asyncio.to_thread(self._library.catalog.figures, plan.record.paper.key)
        return plan.with_figures(read, before)

    async def _embed(self, group: Sequence[PaperPlan]) -> list[Change]:
        texts = {name: text for plan in group for name, text in plan.missing_texts().items()}
        new: Mapping[str, Vector] = {}
        if texts:
            new = await self._executor.embed(texts, lambda count: self._emit(Embedded(count)))
            self._emit(Embedded(sum(len(plan.missing_texts()) for plan in group) - len(texts)))  # their common texts
        changes: list[Change] = []
        for plan in group:
            if plan.missing_texts().keys() <= new.keys():
                changes.append(complete_change(plan, new))
            else:
                self.failed[plan.record.paper.key] = Refusal(plan.record.paper.source, NOT_EMBEDDED)
        return changes


def batches(items: Iterable[Item], weight: Callable[[Item], int], enough: int) -> Iterator[list[Item]]:
    """Split items, in order, into batches that weigh at least `enough` (less in the last)."""
    batch: list[Item] = []
    total = 0
    for item in items:
        batch.append(item)
        total += weight(item)
        if total >= enough:
            yield batch
            batch, total = [], 0
    if batch:
        yield batch


async def write(library: Library, changes: Sequence[Change], emit: OnEvent) -> None:
    """Stage changes and apply them, so that after a kill each is either absent or finished on the next open."""
    await run_to_end(library.catalog.stage, changes)
    for change in changes:
        emit(Staged(change.key))
    await run_to_end(library.carry_out, changes)
    for change in changes:
        emit(Stored(change.key, removed=change.record is None))


async def run_to_end(function: Callable[..., Result], *arguments: object) -> Result:
    """Run a blocking call in a thread; if cancelled, wait for it to finish, since the lock must outlive it."""
    task = asyncio.ensure_future(asyncio.to_thread(function, *arguments))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
