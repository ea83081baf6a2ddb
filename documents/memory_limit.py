"""Bounds the memory of the processes that read files of others."""

from __future__ import annotations


def bound_memory(limit: int) -> None:
    """Let this process use at most `limit` bytes, so that a file that expands endlessly kills it, not the machine.

    Windows has no such limit.
    """
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
