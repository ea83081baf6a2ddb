"""Things that a process has one of, however many threads ask for them at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from typing import Generic, TypeVar

T = TypeVar("T")


class thread_safe_cache(Generic[T]):  # noqa: N801  # used as a decorator
    """A function that is called once for the same arguments; the last 64 results are kept.

    A cache of functools alone lets two threads that ask at the same moment make one each: two limiters for one
    endpoint, or a client that nobody closes. What was asked for while another is made waits for it, so making
    must not ask for another of the same function.
    """

    def __init__(self, make: Callable[..., T]) -> None:
        update_wrapper(self, make)
        self._making = threading.Lock()
        self._cached = lru_cache(maxsize=64)(make)

    def __call__(self, *arguments: Hashable) -> T:
        with self._making:
            return self._cached(*arguments)

    def forget(self) -> None:
        """Make all anew from now on."""
        self._cached.cache_clear()
