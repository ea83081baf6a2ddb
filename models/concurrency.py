"""Runs model calls concurrently without losing answers that were paid for."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Hashable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, update_wrapper
from typing import Any, Final, Generic, TypeVar

T = TypeVar("T")

_THREADS: Final = "citeloom-work"
_INTERRUPT_DELAY: Final = 1.0  # seconds within which an event loop notices Ctrl-C unless a long step blocks it


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all awaitables, then return their results in order or raise the first error in that order.

    If one call fails, the others in flight still finish, and their answers reach the journal. They are started one
    after the other with a yield in between, so that the first request goes out before the last of twenty is built.
    """
    tasks: list[asyncio.Future[T]] = []
    try:
        for awaitable in awaitables:
            tasks.append(asyncio.ensure_future(awaitable))
            await asyncio.sleep(0)
    except asyncio.CancelledError:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]


class _Threads(ThreadPoolExecutor):
    """The thread pool of an event loop, which waits for its threads on exit unless it was interrupted."""

    interrupted = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait and not self.interrupted, cancel_futures=cancel_futures or self.interrupted)


async def _close_connections() -> None:
    # Only if an endpoint was used: importing the module would load the HTTP client.
    used = sys.modules.get("citeloom.models.http.client")
    if used is not None:
        await used.close_connections()


def each_async(parts: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """The parts of an asynchronous iteration, for code without an event loop; raises RuntimeError where one runs."""
    with asyncio.Runner() as runner:
        iterator = parts()
        try:
            while True:
                try:
                    yield runner.run(_next(iterator))
                except StopAsyncIteration:
                    return
        finally:
            runner.run(_close_connections())


async def _next(iterator: AsyncIterator[T]) -> T:
    return await anext(iterator)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run` that closes connections to endpoints before the event loop ends.

    Ctrl-C cancels the work, interrupts a step that blocks the loop, and does not wait for worker threads, since they
    cannot be stopped: see `threads_ended`.
    """

    async def work_and_close() -> T:
        with _interruptible(asyncio.get_running_loop()):
            try:
                return await work
            finally:
                await _close_connections()

    threads = _Threads(thread_name_prefix=_THREADS)
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(threads)
        try:
            return runner.run(work_and_close())
        except KeyboardInterrupt:
            threads.interrupted = True
            raise


@contextlib.contextmanager
def _interruptible(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Let Ctrl-C interrupt a step that blocks the loop: asyncio alone would wait for it to finish."""
    cancel = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(cancel) or cancel is signal.default_int_handler:
        yield
        return

    def on_interrupt(number: int, frame: object) -> None:
        cancel(number, frame)  # type: ignore[arg-type]
        threading.Thread(target=interrupt_if_blocked, daemon=True).start()

    def interrupt_if_blocked() -> None:
        noticed = threading.Event()
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(noticed.set)
            if not noticed.wait(_INTERRUPT_DELAY):
                _thread.interrupt_main()  # on the second signal asyncio raises KeyboardInterrupt inside the step

    signal.signal(signal.SIGINT, on_interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, cancel)


def threads_ended(seconds: float) -> bool:
    """Wait at most `seconds` for threads left behind by an interrupt; whether all have ended."""
    deadline = time.monotonic() + seconds
    running = [thread for thread in threading.enumerate() if thread.name.startswith(_THREADS)]
    for thread in running:
        thread.join(max(0.0, deadline - time.monotonic()))
    return not any(thread.is_alive() for thread in running)


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
