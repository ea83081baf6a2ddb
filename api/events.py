"""Progress events of runs (`docs/events.md`), for callbacks and as a stream."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from typing import Any

from ..graph.run_events import (
    Event as Event,
    EventRecorder as EventRecorder,
    FindingEvent as FindingEvent,
    OnEvent as OnEvent,
    ProgressEvent as ProgressEvent,
)
from ..runs.run_requests import OnNotice as OnNotice


async def stream_events(work: Callable[[OnEvent], Awaitable[Mapping[str, Any]]]) -> AsyncGenerator[Event, None]:
    """Yields the events that `work` emits, and finally `done` with its result; raises what `work` raises.

    Closing the stream early cancels `work` and waits for it to end.
    """
    events: asyncio.Queue[Event | None] = asyncio.Queue()
    recorder = EventRecorder(events.put_nowait)

    async def run() -> None:
        try:
            recorder.done(await work(recorder))
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
