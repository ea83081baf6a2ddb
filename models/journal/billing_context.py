"""Which run pays for what is embedded while it goes on.

Embeddings belong to a library that many runs share, so they are not told their run as chat models are; it is known by
where the call comes from. What is embedded outside of runs, as for `search`, is counted as the library's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from .budget import Budget


@dataclass(frozen=True, slots=True)
class Payer:
    """A run and what it may spend."""

    run: str
    budget: Budget


_payer: ContextVar[Payer | None] = ContextVar("payer", default=None)


def current_payer() -> Payer | None:
    """Who pays for what is done here; None outside of runs."""
    return _payer.get()


@contextmanager
def bill_to(run: str, budget: Budget) -> Iterator[None]:
    """Have `run` pay for what is embedded inside, also in tasks and threads that are started there."""
    token = _payer.set(Payer(run, budget))
    try:
        yield
    finally:
        _payer.reset(token)
