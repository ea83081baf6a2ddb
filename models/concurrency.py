"""One background event loop for all blocking calls, and objects shared by the loops of a process.

On that loop, connections, limiters and sessions outlive a blocking call. Callers with an event loop use their own.
"""

from __future__ import annotations

import asyncio
import atexit
import contextvars
import sys
import threading
import time
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait as wait_for
from contextlib import suppress
from functools import lru_cache, wraps
from typing import Any, Final, Generic, ParamSpec, TypeVar
from weakref import WeakKeyDictionary

T = TypeVar("T")
Parameters = ParamSpec("Parameters")

_THREADS: Final = "citeloom-work"
_INTERRUPT_DELAY: Final = 1.0  # seconds within which the loop notices Ctrl-C unless a long step blocks it
_EXIT_TIMEOUT: Final = 2.0  # seconds
_INTERRUPTIBLE: Final = 0.2 if sys.platform == "win32" else None  # seconds per wait, after which Windows sees Ctrl-C


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Wait for all awaitables, then return their results in order or raise the first error in that order.

    If one call fails, the others in flight still finish, so that their answers reach the journal. Each is started after
    a yield, so that the first request goes out before the last of twenty is built.
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


def thread_safe_cache(make: Callable[Parameters, T]) -> Callable[Parameters, T]:
    """Decorator that calls a function once per set of arguments; the last 64 results are cached.

    With `functools.lru_cache`, two threads that call at the same moment create one object each: two limiters for one
    endpoint, or a client that is never closed. Here calls are serialized, so the function must not call itself.
    """
    cached, making = lru_cache(maxsize=64)(make), threading.Lock()

    @wraps(make)
    def get(*arguments: Parameters.args, **options: Parameters.kwargs) -> T:
        with making:
            return cached(*arguments, **options)  # type: ignore[arg-type]  # all arguments are hashable

    return get


class LoopLocal(Generic[T]):
    """A value for each event loop, created on first use: connections and semaphores belong to a loop."""

    def __init__(self, create: Callable[[], T]) -> None:
        self._create = create
        self._values: WeakKeyDictionary[asyncio.AbstractEventLoop, T] = WeakKeyDictionary()

    def get(self) -> T:
        loop = asyncio.get_running_loop()
        if loop not in self._values:
            self._values[loop] = self._create()
        return self._values[loop]

    def pop(self) -> T | None:
        """Remove the value of the running loop and return it; None if there is none."""
        return self._values.pop(asyncio.get_running_loop(), None)


class ThreadSafeEvent:
    """A one-time event that tasks of any event loop can await, and any thread can set."""

    def __init__(self) -> None:
        self._future: Future[None] = Future()
        self._future.set_running_or_notify_cancel()  # a waiting task that is cancelled does not cancel the event
        self.waiters = 0  # so far

    def set(self) -> None:
        """Wake all waiting tasks; to be called once."""
        self._future.set_result(None)

    async def wait(self) -> None:
        self.waiters += 1
        await asyncio.wrap_future(self._future)


class _BackgroundLoop:
    """An event loop in a daemon thread, with a pool of threads for work that blocks."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.workers = ThreadPoolExecutor(thread_name_prefix=_THREADS)
        self.loop.set_default_executor(self.workers)
        self.thread = threading.Thread(target=self.loop.run_forever, name="citeloom-loop", daemon=True)
        self.thread.start()

    def run(self, work: Coroutine[Any, Any, T], context: contextvars.Context) -> T:
        done: Future[T] = Future()
        started: list[asyncio.Task[None]] = []

        async def deliver() -> None:
            try:
                done.set_result(await work)
            except BaseException as error:  # noqa: BLE001 - raised again in the caller's thread
                done.set_exception(error)

        self.loop.call_soon_threadsafe(
            lambda: started.append(self.loop.create_task(deliver(), context=context)), context=context
        )
        try:
            while not wait_for([done], timeout=_INTERRUPTIBLE).done:
                pass
            return done.result()
        except KeyboardInterrupt:
            noticed = threading.Event()

            def cancel() -> None:
                started[0].cancel()
                noticed.set()

            self.loop.call_soon_threadsafe(cancel)
            # A step that blocks the loop is not waited for: the command line ends the process without it.
            if noticed.wait(_INTERRUPT_DELAY):
                with suppress(asyncio.CancelledError):
                    return done.result()
            raise

    async def drain(self) -> None:
        """Cancel running tasks, and close connections to endpoints."""
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await _close_connections()
        await self.loop.shutdown_asyncgens()


_running: Final[list[_BackgroundLoop]] = []  # at most one
_starting: Final = threading.Lock()


def _background_loop() -> _BackgroundLoop:
    with _starting:
        if not _running:
            _running.append(_BackgroundLoop())
            atexit.register(stop_background_loop, _EXIT_TIMEOUT)
        return _running[0]


async def _close_connections() -> None:
    # Only if an endpoint was used: importing the module would load the HTTP client.
    used = sys.modules.get("citeloom.models.http.client")
    if used is not None:
        await used.close_connections()


def _require_no_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    raise RuntimeError("a blocking call inside a running event loop")


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on the background loop and return its result; raises RuntimeError inside a running loop.

    Ctrl-C cancels the work and waits until it has cleaned up, but neither for a step that blocks the loop nor for
    worker threads, which cannot be stopped: see `stop_background_loop`.
    """
    try:
        _require_no_loop()
    except RuntimeError:
        work.close()
        raise
    return _background_loop().run(work, contextvars.copy_context())


def run_here(work: Coroutine[Any, Any, T]) -> T:
    """Run `work` on a loop of this thread, for a shell that handles the signals of its main thread itself."""

    async def work_and_close() -> T:
        try:
            return await work
        finally:
            await _close_connections()

    return asyncio.run(work_and_close())


def iterate_async(parts: Callable[[], AsyncIterator[T]]) -> Iterator[T]:
    """Iterate over an async iterator on the background loop; raises RuntimeError inside a running loop."""
    _require_no_loop()
    iterator, context = parts(), contextvars.copy_context()

    async def advance() -> T:
        return await anext(iterator)

    try:
        while True:
            try:
                yield _background_loop().run(advance(), context)
            except StopAsyncIteration:
                return
    finally:
        if isinstance(iterator, AsyncGenerator):
            _background_loop().run(iterator.aclose(), context)


def stop_background_loop(seconds: float) -> bool:
    """End the background loop and its threads; returns whether all ended in time. A later call starts a new one."""
    if not _running:
        return True
    deadline = time.monotonic() + seconds
    background = _running.pop()
    wait_for([asyncio.run_coroutine_threadsafe(background.drain(), background.loop)], timeout=seconds)
    background.loop.call_soon_threadsafe(background.loop.stop)
    background.workers.shutdown(wait=False, cancel_futures=True)
    threads = [background.thread, *(one for one in threading.enumerate() if one.name.startswith(_THREADS))]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if not background.thread.is_alive():
        background.loop.close()
    return not any(thread.is_alive() for thread in threads)
