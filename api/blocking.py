"""Runs async calls from code without an event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from ..errors import ConfigurationError
from ..models.concurrency import run_async

Result = TypeVar("Result")


def run_blocking(work: Coroutine[Any, Any, Result], twin: str) -> Result:
    """Run a coroutine; inside a running loop raises `ConfigurationError` naming the async twin."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return run_async(work)
    work.close()
    raise ConfigurationError("An event loop is running here.", help=f"Use 'await citeloom.{twin}(...)'.")
