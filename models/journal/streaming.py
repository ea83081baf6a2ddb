"""Streams model output to subscribers, all of which end up with the text of the journaled answer.

Streamed text is provisional: if the connection breaks, the call is retried and the text streamed so far is void. Equal
calls in flight are coalesced, and all callers receive the same stream.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Protocol


class TextListener(Protocol):
    """Receives a text piece by piece, in the event loop of its call; must not raise."""

    def piece(self, text: str) -> None:
        """Append this piece to the text."""

    def restart(self) -> None:
        """Discard the text received so far: it starts again."""


class StreamSubscription:
    """A subscription to one answer, from its own call or an identical one already in flight."""

    def __init__(self, listener: TextListener, stream: _Stream) -> None:
        self._listener = listener
        self._stream = stream
        self._loop = asyncio.get_running_loop()
        self._received: list[str] = []
        self._finished = False

    def begin(self) -> None:
        """Start an answer; for all subscribers, text of an earlier try becomes void."""
        with self._stream.guard:
            stale, self._stream.pieces = bool(self._stream.pieces), []
            readers = list(self._stream.readers)
        for reader in readers if stale else ():
            reader._dispatch(self, reader._reset)

    def say(self, text: str) -> None:
        """Send a piece to all subscribers of this answer."""
        if not text:
            return
        with self._stream.guard:
            self._stream.pieces.append(text)
            readers = list(self._stream.readers)
        for reader in readers:
            reader._dispatch(self, reader._receive, text)

    def finish(self, text: str) -> None:
        """Deliver the rest of the final `text`, or all of it if something else was received."""
        received = "".join(self._received)
        if not text.startswith(received):
            self._reset()
            received = ""
        self._receive(text[len(received) :])
        self._finished = True

    def _dispatch(self, by: StreamSubscription, deliver: Callable[..., None], *texts: str) -> None:
        if by is self:
            deliver(*texts)
            return
        with suppress(RuntimeError):  # the loop is closed and nobody listens any more
            self._loop.call_soon_threadsafe(deliver, *texts)

    def _receive(self, text: str) -> None:
        if text and not self._finished:
            self._received.append(text)
            self._listener.piece(text)

    def _reset(self) -> None:
        if self._received and not self._finished:
            self._received = []
            self._listener.restart()


@dataclass(slots=True)
class _Stream:
    """The text streamed so far of one answer, and its subscribers."""

    guard: threading.Lock
    pieces: list[str] = field(default_factory=list)
    readers: list[StreamSubscription] = field(default_factory=list)


class Streams:
    """The answers being streamed; may be shared by tasks, threads and event loops."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Stream] = {}
        self._guard = threading.Lock()

    @contextmanager
    def subscribe(self, key: str, listener: TextListener) -> Iterator[StreamSubscription]:
        """Subscribe to the answer to `key` for the block; text streamed so far is delivered at once."""
        with self._guard:
            stream = self._by_key.setdefault(key, _Stream(self._guard))
            reader = StreamSubscription(listener, stream)
            stream.readers.append(reader)
            streamed = "".join(stream.pieces)
        try:
            reader._receive(streamed)
            yield reader
        finally:
            reader._finished = True
            with self._guard:
                stream.readers.remove(reader)
                if not stream.readers:
                    del self._by_key[key]
