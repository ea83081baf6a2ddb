"""Running model calls together so that none that was paid for is thrown away."""

from __future__ import annotations

import _thread
import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import Awaitable, Coroutine, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Final, TypeVar

T = TypeVar("T")

_THREADS: Final = "citeloom-work"
_HEARD: Final = 1.0  # seconds in which an event loop takes notice of Ctrl-C unless a long step keeps it


async def gather_all(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Results in the order given, after every awaitable has ended; then the first error by that order is raised.

    When one call fails its neighbours in flight still end, and their answers reach the journal. They start one
    after the other: in step, no request would go out before the last of twenty is built, and all answers would
    come at once (210 ms for a search that takes 217 ms so).
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
    """The threads of an event loop, which waits for them when it ends, but not when it was interrupted."""

    interrupted = False

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        super().shutdown(wait and not self.interrupted, cancel_futures=cancel_futures or self.interrupted)


def run_async(work: Coroutine[Any, Any, T]) -> T:
    """`asyncio.run`, with the connections to endpoints closed before the event loop ends.

    Ctrl-C cancels the work, breaks off a step that keeps the loop from taking notice, and does not wait for threads
    that read a text, since none can be stopped: see `threads_ended`.
    """

    async def both() -> T:
        with _heard(asyncio.get_running_loop()):
            try:
                return await work
            finally:
                # Only where an endpoint was used: the module brings the HTTP client with it.
                used = sys.modules.get("citeloom.models.http.client")
                if used is not None:
                    await used.close_connections()

    threads = _Threads(thread_name_prefix=_THREADS)
    with asyncio.Runner() as runner:
        runner.get_loop().set_default_executor(threads)
        try:
            return runner.run(both())
        except KeyboardInterrupt:
            threads.interrupted = True
            raise


@contextlib.contextmanager
def _heard(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """Ctrl-C ends also a step that does not give the loop back: asyncio alone would wait for its end."""
    cancel = signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or not callable(cancel) or cancel is signal.default_int_handler:
        yield
        return

    def press(number: int, frame: object) -> None:
        cancel(number, frame)  # type: ignore[arg-type]
        threading.Thread(target=break_off, daemon=True).start()

    def break_off() -> None:
        noticed = threading.Event()
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(noticed.set)
            if not noticed.wait(_HEARD):
                _thread.interrupt_main()  # the second time asyncio raises KeyboardInterrupt where the step is

    signal.signal(signal.SIGINT, press)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, cancel)


def threads_ended(seconds: float) -> bool:
    """Whether the threads that an interrupt left behind have ended, after so many seconds at most."""
    over = time.monotonic() + seconds
    left = [thread for thread in threading.enumerate() if thread.name.startswith(_THREADS)]
    for thread in left:
        thread.join(max(0.0, over - time.monotonic()))
    return not any(thread.is_alive() for thread in left)
