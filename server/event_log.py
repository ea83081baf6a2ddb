"""The events of one job: written once, read by any number of streams, each at its own pace."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class LoggedEvent:
    """One event as it is sent: its id, its name, and its data as JSON."""

    id: str
    name: str
    data: str


class EventLog:
    """Events with ids `EPOCH.NUMBER`; the epoch tells logs of the same job apart, before and after a restart.

    Used from one event loop. A reader that comes back with the id it saw last misses nothing: with an id of an earlier
    epoch it gets `reset`, which says that what it has is void, and then all events.
    """

    def __init__(self, epoch: str) -> None:
        self.epoch = epoch
        self._events: list[tuple[str, str]] = []
        self._changed = asyncio.Event()
        self._closed = False
        self.size = 0  # characters

    def __len__(self) -> int:
        return len(self._events)

    @property
    def closed(self) -> bool:
        """True when no more events will come."""
        return self._closed

    def append(self, name: str, data: Mapping[str, Any]) -> None:
        """Add an event and wake the readers."""
        text = (
            json.dumps(data, ensure_ascii=False).encode("utf-8", "replace").decode()
        )  # half a surrogate pair is no text
        self._events.append((name, text))
        self.size += len(text)
        self._wake()

    def close(self) -> None:
        """End all streams after the last event."""
        self._closed = True
        self._wake()

    def place_after(self, last_id: str | None) -> int | None:
        """The position that follows the event with this id; None when the id is not of this log."""
        if not last_id:
            return 0
        epoch, _, number = last_id.partition(".")
        known = epoch == self.epoch and number.isascii() and number.isdigit() and len(number) < 12
        return int(number) + 1 if known and int(number) < len(self._events) else None

    def exhausted_after(self, last_id: str | None) -> bool:
        """True when a reader that has seen the event with this id would get nothing."""
        return self._closed and self.place_after(last_id) == len(self._events)

    async def read(self, last_id: str | None = None) -> AsyncGenerator[LoggedEvent, None]:
        """The events after `last_id`, as they come, until the log is closed."""
        place = self.place_after(last_id)
        if place is None:
            yield LoggedEvent(f"{self.epoch}.", "reset", "{}")
            place = 0
        while True:
            changed = self._changed
            while place < len(self._events):
                name, data = self._events[place]
                yield LoggedEvent(f"{self.epoch}.{place}", name, data)
                place += 1
            if self._closed:
                return
            if changed is self._changed:
                await changed.wait()

    def _wake(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
