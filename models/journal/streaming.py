"""Hearing an answer while it is made: pieces as they come, and the same text in the end whatever happened meanwhile.

What is heard is a draft of what the journal will hold: an answer whose connection breaks off is asked for again, and
what was heard of it till then is void. Equal calls in flight are one call, and all who wait for it hear it.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Protocol


class TextListener(Protocol):
    """Hears a text piece by piece, in the event loop of the call it was given to; must not raise."""

    def piece(self, text: str) -> None:
        """The text goes on with this."""
        ...

    def restart(self) -> None:
        """What was heard is void: the text begins anew."""
        ...


class StreamSubscription:
    """One who hears one answer, from a call of its own or from an equal one that is under way."""

    def __init__(self, listener: TextListener, spoken: _Spoken) -> None:
        self._listener = listener
        self._spoken = spoken
        self._loop = asyncio.get_running_loop()
        self._heard: list[str] = []
        self._finished = False

    def begin(self) -> None:
        """An answer begins here; what was said of an earlier one is void for all."""
        with self._spoken.guard:
            stale, self._spoken.pieces = bool(self._spoken.pieces), []
            readers = list(self._spoken.readers)
        for reader in readers if stale else ():
            reader._told(self, reader._void)

    def say(self, text: str) -> None:
        """Hand out a piece to all who hear this answer."""
        if not text:
            return
        with self._spoken.guard:
            self._spoken.pieces.append(text)
            readers = list(self._spoken.readers)
        for reader in readers:
            reader._told(self, reader._hear, text)

    def finish(self, text: str) -> None:
        """The answer is `text`: hand out what was not heard of it, all of it anew where something else was heard."""
        heard = "".join(self._heard)
        if not text.startswith(heard):
            self._void()
            heard = ""
        self._hear(text[len(heard) :])
        self._finished = True

    def _told(self, by: StreamSubscription, tell: Callable[..., None], *said: str) -> None:
        if by is self:
            tell(*said)
            return
        with suppress(RuntimeError):  # the loop is closed, and nobody listens any more
            self._loop.call_soon_threadsafe(tell, *said)

    def _hear(self, text: str) -> None:
        if text and not self._finished:
            self._heard.append(text)
            self._listener.piece(text)

    def _void(self) -> None:
        if self._heard and not self._finished:
            self._heard = []
            self._listener.restart()


class _Spoken:
    """What was said so far of one answer, and who hears it."""

    def __init__(self, guard: threading.Lock) -> None:
        self.guard = guard
        self.pieces: list[str] = []
        self.readers: list[StreamSubscription] = []


class Streams:
    """Which answers are heard right now; may be shared by tasks, threads and event loops."""

    def __init__(self) -> None:
        self._by_key: dict[str, _Spoken] = {}
        self._guard = threading.Lock()

    @contextmanager
    def reader(self, key: str, listener: TextListener) -> Iterator[StreamSubscription]:
        """Hear the answer to `key` for as long as this is open; what was said of it already comes at once."""
        with self._guard:
            spoken = self._by_key.setdefault(key, _Spoken(self._guard))
            reader = StreamSubscription(listener, spoken)
            spoken.readers.append(reader)
            so_far = "".join(spoken.pieces)
        try:
            reader._hear(so_far)
            yield reader
        finally:
            reader._finished = True
            with self._guard:
                spoken.readers.remove(reader)
                if not spoken.readers:
                    del self._by_key[key]
