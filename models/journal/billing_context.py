"""Attributes embedding costs to the current run.

Embeddings belong to a library that many runs share, so unlike chat models they are not bound to a run; a context
variable identifies it. Embeddings outside of runs, as for `search`, are billed to the library.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from .budget import Budget


@dataclass(frozen=True, slots=True)
class Payer:
    """A run and its budget."""

    run: str
    budget: Budget


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


def current_payer() -> Payer | None:
    """The payer in the current context; None outside of runs."""
    return _payer.get()


@contextmanager
def bill_to(run: str, budget: Budget) -> Iterator[None]:
    """Bill embeddings inside the block to `run`, including those in tasks and threads started there."""
    token = _payer.set(Payer(run, budget))
    try:
        yield
    finally:
        _payer.reset(token)
