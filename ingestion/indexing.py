"""Embeds planned papers and writes them: what is embedded stands in line, and all that stands there is written at once.

A write costs much the same for one paper as for thirty (each of the stores waits for the disk), so where vectors
come slowly papers are written one by one, and where they come fast by the dozen. A kill loses the line at most:
what is staged is carried out when the library is opened next.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import TypeVar

from ..documents.types import Paper
from ..models.embeddings.protocol import Vector
from ..stores.library import Library
from ..stores.paper_change import Change
from ..stores.vector_cache import VectorCache
from .events import Embedded, IngestEvent, Staged, Stored
from .plan import PaperPlan, with_vectors

Summarize = Callable[[Paper, str], Awaitable[str]]
OnEvent = Callable[[IngestEvent], None]
Result = TypeVar("Result")

_AT_ONCE = 2  # groups of papers that are embedded, so that one's last chunks leave no core idle
_IN_LINE = 32  # papers
_WRITTEN_AT_ONCE = 2_000  # chunks: what Chroma takes in one page


class Indexing:
    """Takes planned papers into a library; the caller holds the writer lock."""

    def __init__(self, library: Library, cache: VectorCache | None, summarize: Summarize | None, tell: OnEvent) -> None:
        self._library = library
        self._cache = cache
        self._summarize = summarize
        self._tell = tell

    async def run(self, plans: Sequence[PaperPlan]) -> None:
        """Index all; on the first error no more is begun, and what is embedded is written."""
        groups = _groups(plans, self._library.embedding.at_once)
        waiting = iter(groups)
        line: asyncio.Queue[Change | None] = asyncio.Queue(_IN_LINE)
        failure: BaseExceptionGroup | None = None
        try:
            async with asyncio.TaskGroup() as writing:
                writing.create_task(self._write_in_turn(line))
                try:
                    async with asyncio.TaskGroup() as embedding:
                        for _ in range(min(_AT_ONCE, len(groups))):
                            embedding.create_task(self._embed_in_turn(waiting, line))
                except BaseExceptionGroup as failed:
                    failure = failed
                await line.put(None)
        except BaseExceptionGroup as failed:
            failure = failed
        if failure is not None:
            raise _first(failure) from failure

    async def _embed_in_turn(self, waiting: Iterator[Sequence[PaperPlan]], line: asyncio.Queue[Change | None]) -> None:
        for group in waiting:
            for change in await self._embed([await self._summarized(plan) for plan in group]):
                await line.put(change)

    async def _write_in_turn(self, line: asyncio.Queue[Change | None]) -> None:
        """Write what stands in line, until the end of it."""
        change = await line.get()
        while change is not None:
            batch, chunks = [], 0
            while change is not None:
                batch.append(change)
                chunks += len(change.chunks)
                if line.empty() or chunks >= _WRITTEN_AT_ONCE:
                    break
                change = line.get_nowait()
            await write(self._library, batch, self._tell)
            if change is not None:
                change = await line.get()

    async def _summarized(self, plan: PaperPlan) -> PaperPlan:
        if self._summarize is None or not plan.wants_summary:
            return plan
        return plan.summarized(await self._summarize(plan.record.paper, plan.text))

    async def _embed(self, group: Sequence[PaperPlan]) -> list[Change]:
        """The changes with all vectors: those that are known, and new ones for the other texts."""
        embedding = self._library.embedding
        texts = {name: text for plan in group for name, text in plan.missing_texts().items()}
        new: dict[str, Vector] = {}
        if texts:
            rows = await embedding.embed_documents(list(texts.values()), lambda count: self._tell(Embedded(count)))
            new = dict(zip(texts, rows, strict=True))
            self._tell(Embedded(sum(len(plan.missing_texts()) for plan in group) - len(texts)))  # those they share
            if self._cache is not None:
                await to_end(self._cache.put, embedding.name, new)
        return [with_vectors(plan, new) for plan in group]


def _groups(plans: Sequence[PaperPlan], texts: int) -> list[list[PaperPlan]]:
    """The plans in their order, each group with so many texts to embed, as long as there are more."""
    groups: list[list[PaperPlan]] = []
    count = texts
    for plan in plans:
        if count >= texts:
            groups.append([])
            count = 0
        groups[-1].append(plan)
        count += len(plan.missing_texts())
    return groups


async def write(library: Library, changes: Sequence[Change], tell: OnEvent) -> None:
    """Stage changes and carry them out, so that a kill at any moment leaves them undone or to be finished."""
    await to_end(library.catalog.stage, changes)
    for change in changes:
        tell(Staged(change.key))
    await to_end(library.carry_out, changes)
    for change in changes:
        tell(Stored(change.key, removed=change.record is None))


async def to_end(function: Callable[..., Result], *arguments: object) -> Result:
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
