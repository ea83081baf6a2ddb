"""Binds nodes to a session: each node receives its run's session beside state and runtime.

A node whose prompt was too long for the server runs again with prompts that fit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.runtime import Runtime

from .prompt_fitting import fitted
from .session import Session
from .state import Update

SessionProvider = Callable[[Runtime[Any]], Awaitable[Session]]


def bound(node: Callable[..., Awaitable[Update]], session_of: SessionProvider) -> Callable[..., Awaitable[Update]]:
    """The node as a graph calls it; `session_of` provides library, roles and journal of the run."""

    async def run(state: Any, runtime: Runtime[Any]) -> Update:
        session = await session_of(runtime)
        return await fitted(session, session.run_id(runtime), lambda: node(state, runtime, session))

    run.__name__ = node.__name__
    run.__doc__ = node.__doc__
    return run
