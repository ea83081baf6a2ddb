"""Counts the event streams that are open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .problems import ServerError


class StreamCount:
    """How many event streams are open, of those that are permitted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.open_now = 0

    def require_free(self) -> None:
        """Raise `ServerError` with status 429 when as many are open as are permitted."""
        if self.open_now >= self._most:
            raise ServerError(429, "Too many event streams are open.", help="Close one first.", retry_after=5)

    @contextmanager
    def open(self) -> Iterator[None]:
        """Count a stream for as long as the block runs."""
        self.open_now += 1
        try:
            yield
        finally:
            self.open_now -= 1
