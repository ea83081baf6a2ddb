"""A thread-safe cache for objects of which a process needs exactly one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from functools import lru_cache, update_wrapper
from typing import Generic, TypeVar

T = TypeVar("T")


class thread_safe_cache(Generic[T]):  # noqa: N801  # used as a decorator
    """Decorator that calls a function once per set of arguments; the last 64 results are cached.

    `functools.lru_cache` lets two threads that call at the same moment create one object each: two limiters for one
    endpoint, or a client that nobody closes. Here calls are serialized, so the function must not call itself.
    """

    def __init__(self, make: Callable[..., T]) -> None:
        update_wrapper(self, make)
        self._making = threading.Lock()
        self._cached = lru_cache(maxsize=64)(make)

    def __call__(self, *arguments: Hashable) -> T:
        with self._making:
            return self._cached(*arguments)

    def forget(self) -> None:
        """Clear the cache."""
        self._cached.cache_clear()
