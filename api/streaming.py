"""Streams runs as events: async generators that end with `done`.

`astream_section`, `astream_paper` and `astream_research` take the arguments of the calls they are named after;
`events_of` makes a stream of any call that reports events to a callback.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Unpack

from ..experiment import Experiment, SectionKind
from ..graph.events import Event, EventRecorder, OnEvent
from ..graph.session import Session
from .arguments import library_first
from .questions import ResearchOptions, aresearch
from .running import RunOptions
from .writing import awrite_paper, awrite_section

__all__ = ["astream_paper", "astream_research", "astream_section"]


@library_first
def astream_section(
    library: Session,
    kind: SectionKind,
    experiment: Experiment | dict[str, Any] | Path | str,
    **options: Unpack[RunOptions],
) -> AsyncGenerator[Event, None]:
    """Write or resume a section as a stream of events; takes the options of `awrite_section`.

    Closing the stream early pauses the run; the same call resumes it. While read, raises what
    `awrite_section` raises.
    """
    return events_of(lambda emit: awrite_section(library, kind, experiment, **options, on_event=emit))


@library_first
def astream_paper(
    library: Session, experiment: Experiment | dict[str, Any] | Path | str, **options: Unpack[RunOptions]
) -> AsyncGenerator[Event, None]:
    """Write or resume a paper as a stream of events; takes the options of `awrite_paper`.

    The drafts of its sections come one after the other in the order of writing, each behind its step "writing". Closing
    the stream early pauses the run. While read, raises what `awrite_paper` raises.
    """
    return events_of(lambda emit: awrite_paper(library, experiment, **options, on_event=emit))


@library_first
def astream_research(
    library: Session, question: str, **options: Unpack[ResearchOptions]
) -> AsyncGenerator[Event, None]:
    """Answer a question, or resume it, as a stream of events; takes the options of `aresearch`.

    Closing the stream early pauses the run; the same call resumes it. While read, raises what
    `aresearch` raises.
    """
    return events_of(lambda emit: aresearch(library, question, **options, on_event=emit))


async def events_of(work: Callable[[OnEvent], Awaitable[Mapping[str, Any]]]) -> AsyncGenerator[Event, None]:
    """The events that `work` emits, and finally `done` with what it returns; raises what `work` raises.

    When the stream is closed early `work` is cancelled, and has ended when the closing is over.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    telling = EventRecorder(events.put_nowait)

    async def run() -> None:
        try:
            telling.done(await work(telling))
        finally:
            events.put_nowait(None)

    running = asyncio.ensure_future(run())
    try:
        while (event := await events.get()) is not None:
            yield event
        await running
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
