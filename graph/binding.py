"""Nodes bound to what they work with: each is given its run's workbench beside state and runtime.

A node whose prompt was too long for the server runs again with prompts that fit.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from langgraph.runtime import Runtime

from citeloom.graph.fitting import fitted
from citeloom.graph.state import Update
from citeloom.graph.workbench import Workbench

BenchProvider = Callable[[Runtime[Any]], Awaitable[Workbench]]


def bound(node: Callable[..., Awaitable[Update]], workbench: BenchProvider) -> Callable[..., Awaitable[Update]]:
    """The node as a graph calls it; `workbench` gives library, roles and journal of the run."""

    async def run(state: Any, runtime: Runtime[Any]) -> Update:
        bench = await workbench(runtime)
        return await fitted(bench, bench.run_id(runtime), lambda: node(state, runtime, bench))

    run.__name__ = node.__name__
    run.__doc__ = node.__doc__
    return run
