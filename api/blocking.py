"""Blocking forms of async calls, for code without an event loop."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec, TypeVar

from ..errors import ConfigurationError
from ..models.concurrency import run_async, run_here, stop_background_loop

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def threaded(call: Callable[Parameters, Result]) -> Callable[Parameters, Coroutine[Any, Any, Result]]:
    """Return an async version of a blocking call, run in a thread; if cancelled, programs that it started are ended."""

    @functools.wraps(call)
    async def threaded_call(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        from ..documents.sandbox import in_thread  # slow import

        return await in_thread(call, *args, **options)

    return threaded_call


def blocking(call: Callable[Parameters, Coroutine[Any, Any, Result]]) -> Callable[Parameters, Result]:
    """Return a blocking version of an async call, named without "a"; raises `ConfigurationError` in an event loop."""

    @functools.wraps(call)
    def twin(*args: Parameters.args, **options: Parameters.kwargs) -> Result:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return run_async(call(*args, **options))
        awaited = f"await citeloom.{call.__qualname__}(...)"
        raise ConfigurationError("An event loop is running here.", help=f"Use '{awaited}'.")

    owner, _, name = call.__qualname__.rpartition(".")
    twin.__name__ = name.removeprefix("a")
    twin.__qualname__ = f"{owner}.{twin.__name__}".lstrip(".")
    twin.__doc__ = f"`{name}` for code without an event loop.\n\n    {call.__doc__}"
    return twin
