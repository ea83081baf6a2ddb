"""The revision of a library, a number that counts its changes."""

from __future__ import annotations

import threading
from typing import Any


def revise(connection: Any) -> None:
    """Count a change of the library, which also makes other writers wait."""
    connection.execute("UPDATE revision SET number = number + 1")


class SeenRevision:
    """The newest revision that a search of this process has seen; thread-safe.

    A search reads it in its own statement, which saves the round trip of asking for it.
    """

    def __init__(self) -> None:
        self.number = 0
        self._lock = threading.Lock()

    def update(self, number: int) -> None:
        """Take note of the revision that a statement has read."""
        with self._lock:
            self.number = max(self.number, number)
